/** `audit verify`: prints what is wrong with the ledger, by file and line. */
import { jsonText } from '../output.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import type { ChainReport, Finding, StoredHead } from '../../observability/audit/chain-report.ts'
import { verifyFolder } from '../../observability/audit/verify.ts'
import { printable } from '../../observability/unprintable.ts'
import type { Invocation } from '../command.ts'
import { type LedgerPlace, placeOf, readingFailed } from './place.ts'

export async function audit(invocation: Invocation): Promise<number> {
  const ledger = placeOf(invocation)
  try {
    return await verify(ledger, invocation)
  } finally {
    ledger.close()
  }
}

async function verify(place: LedgerPlace, { json, io }: Invocation): Promise<number> {
  const { folder, keys, headOf, chainsWithHead } = place
  const input = { folder, keys, headOf, chainsWithHead, parse: parseKeepingDigits }
  const reports = await verifyFolder(input).catch((error: unknown) => {
    throw readingFailed(folder, error)
  })
  const code = codeOf(reports)
  if (json) {
    io.stdout.write(jsonText({ folder, verified: code, chains: reports }))
    return code
  }
  if (reports.length === 0) {
    io.stdout.write(`${folder} holds no ledger: no file, or all were deleted\n`)
    return code
  }
  for (const report of reports) io.stdout.write(inWords(report))
  return code
}

/** 1: not as it was written. 3: something cannot be shown. */
function codeOf(reports: readonly ChainReport[]): number {
  const severities = new Set(
    reports.flatMap(({ findings }) => findings.map(({ severity }) => severity))
  )
  if (severities.has('fault')) return 1
  const hasHeads = reports.every(({ head }) => head.from !== 'none')
  return severities.has('warning') || !hasHeads || reports.length === 0 ? 3 : 0
}

function inWords(report: ChainReport): string {
  const { chain, files, lines, since = '', until = '', head, findings, unlisted } = report
  const faults = findings.filter(({ severity }) => severity === 'fault').length
  const verdict = faults === 0 ? ofSoundChain(files) : 'NOT as it was written'
  const inFiles = files === 1 ? '1 file' : `${files} files`
  const period = lines === 0 ? '' : `, ${since} to ${until}`
  return [
    `chain ${chain}: ${verdict} (${lines} lines in ${inFiles}${period})`,
    ...findings.map(findingInWords),
    ...(unlisted > 0 ? [`  and ${unlisted} more`] : []),
    `  end: ${headInWords(head)}`,
    ''
  ].join('\n')
}

function ofSoundChain(files: number): string {
  return files === 0 ? 'nothing of it is here' : 'as it was written'
}

function findingInWords({ severity, file, line, message }: Finding): string {
  return `  ${severity}: ${file}${line === undefined ? '' : `:${line}`}: ${printable(message)}`
}

function headInWords(head: StoredHead): string {
  if (head.from === 'none') return `not verified, since ${printable(head.reason)}`
  const { seq } = head.position
  if (head.from === 'redis') {
    return (
      `held against the head in Redis (line ${seq}): ` +
      'of a cut end, at most the last second would not show'
    )
  }
  return (
    `held against the head beside it (line ${seq}): ` +
    'who can write both files can cut the end unseen'
  )
}

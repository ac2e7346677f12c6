/** `audit search`: prints the lines of the ledger that match. */
import { escapeInJson } from '../../observability/unprintable.ts'
import { endOf, timeText } from '../../config/schema/maintenance.ts'
import { toMilliseconds } from '../../config/schema/primitives.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import { type AuditFilter, type FoundLine, searchLedger } from '../../observability/audit/search.ts'
import { type Invocation, UsageError } from '../command.ts'
import { lineInWords } from './line-in-words.ts'
import { type LedgerPlace, readingFailed } from './place.ts'

const defaultLast = 100

export async function searchCommand(place: LedgerPlace, invocation: Invocation): Promise<number> {
  const { values, io } = invocation
  const last = lastOf(values, defaultLast)
  const { lines } = await findLast(place, filterOf(values), last + 1)
  for (const line of lines.slice(-last)) printLine(line, invocation)
  if (lines.length > last) {
    io.stderr.write(`older lines match too: --last N prints more than ${last}\n`)
  }
  return lines.length === 0 ? 3 : 0
}

/** @throws CommandError */
export async function findLast({ folder, keys }: LedgerPlace, filter: AuditFilter, last: number) {
  const parse = parseKeepingDigits
  try {
    return await searchLedger({ folder, keys, filter, last, maxBytes: Infinity, parse })
  } catch (error) {
    throw readingFailed(folder, error)
  }
}

export function printLine(line: FoundLine, { json, io }: Invocation): void {
  io.stdout.write(`${json ? escapeInJson(JSON.stringify(line)) : lineInWords(line)}\n`)
}

export function filterOf(values: Invocation['values']): AuditFilter {
  const text = (name: string) => {
    const value = values[name]
    return typeof value === 'string' ? value : undefined
  }
  return {
    user: text('user'),
    kind: text('kind'),
    route: text('route'),
    requestId: text('request-id'),
    since: timeOf('since', text('since')),
    until: timeOf('until', text('until'))
  }
}

export function lastOf({ last }: Invocation['values'], otherwise: number): number {
  if (last === undefined) return otherwise
  const number = Number(last)
  if (Number.isInteger(number) && number >= 1 && number <= 1_000_000) return number
  throw new UsageError('--last is a number from 1 to 1000000.')
}

function timeOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const agoMs = toMilliseconds(text)
  if (Number.isFinite(agoMs)) return Date.now() - agoMs
  // Date.parse takes much else: 12 for December, 30 February, and times of the machine's zone.
  const time = timeText.test(text) ? endOf(text) : Number.NaN
  if (Number.isFinite(time)) return time
  throw new UsageError(`--${name} is a time such as 2026-12-01T06:00Z, or a duration such as 24h.`)
}

/**
 * Verifies the chains of a folder: that no line was changed, cut, moved or added, and no file
 * deleted. Linear in the size of the files; memory is bounded by the longest line.
 */
import { closeSync, openSync, readSync } from 'node:fs'
import { basename } from 'node:path'
import { type ChainFile, chainsIn, hasLock, isChainId } from './chain-files.ts'
import type { ChainReport, StoredHead } from './chain-report.ts'
import { type ChainInput, ChainVerifier } from './chain-verifier.ts'
import type { AuditKey, ParseLine } from './line.ts'

const blockBytes = 1024 * 1024
/** Longer lines are not ours. */
const maxLineBytes = 1024 * 1024
const lineBreak = 0x0a

interface FolderInput {
  readonly folder: string
  readonly keys: readonly AuditKey[]
  /** Asked before the files are read: a gateway may be writing them. */
  readonly headOf: (chain: string) => Promise<StoredHead>
  readonly parse: ParseLine
  /** The chains that have a head where all replicas store theirs. */
  readonly chainsWithHead?: () => Promise<readonly string[]>
}

const maxAbsent = 1000

/** @throws when a file cannot be read */
export async function verifyFolder(input: FolderInput): Promise<ChainReport[]> {
  const { folder, keys, headOf, parse } = input
  const reports: ChainReport[] = []
  // Before the files are listed: a chain that begins meanwhile must not seem to be absent.
  const withHead = (await input.chainsWithHead?.()) ?? []
  for (const chain of chainsIn(folder).keys()) {
    const head = await headOf(chain)
    const files = chainsIn(folder).get(chain) ?? []
    reports.push(verifyChain({ chain, keys, head, parse }, files))
  }
  const present = new Set(reports.map(({ chain }) => chain))
  const absent = withHead.filter(chain => isChainId(chain) && !present.has(chain))
  for (const chain of absent.toSorted().slice(0, maxAbsent)) {
    reports.push(absentChain(folder, chain, await headOf(chain)))
  }
  return reports
}

/** A chain without a file: deleted as a whole, or written by a replica into a folder of its own. */
function absentChain(folder: string, chain: string, head: StoredHead): ChainReport {
  const wasHere = hasLock(folder, chain)
  const message = wasHere
    ? 'all files of this chain were deleted'
    : 'no file of this chain is here: its replica writes another folder, or all were deleted'
  return {
    chain,
    files: 0,
    lines: 0,
    bytes: 0,
    lastSeq: 0,
    since: undefined,
    until: undefined,
    head,
    findings: [
      {
        severity: wasHere ? 'fault' : 'warning',
        file: `audit-${chain}`,
        line: undefined,
        message
      }
    ],
    unlisted: 0
  }
}

function verifyChain(input: ChainInput, files: readonly ChainFile[]): ChainReport {
  const verifier = new ChainVerifier(input)
  let bytes = 0
  for (const { path, number } of files) {
    verifier.beginFile(basename(path), number)
    bytes += forEachLine(path, verifier)
    verifier.endFile()
  }
  const { chain, head } = input
  return { chain, files: files.length, bytes, head, ...verifier.end() }
}

interface LineSink {
  readonly line: (bytes: Buffer) => void
  /** Bytes that no line break ends, or more than any line of ours has. */
  readonly fragment: (bytes: Buffer, isLast: boolean) => void
}

/** @returns the size of the file */
function forEachLine(path: string, sink: LineSink): number {
  const file = openSync(path, 'r')
  const block = Buffer.allocUnsafe(blockBytes)
  let rest: Buffer = Buffer.alloc(0)
  let size = 0
  try {
    for (;;) {
      const length = readSync(file, block, 0, blockBytes, null)
      if (length === 0) break
      size += length
      let from = 0
      for (;;) {
        const to = block.subarray(0, length).indexOf(lineBreak, from)
        if (to < 0) break
        const part = block.subarray(from, to)
        sink.line(rest.length === 0 ? part : Buffer.concat([rest, part]))
        rest = Buffer.alloc(0)
        from = to + 1
      }
      if (from < length) rest = Buffer.concat([rest, block.subarray(from, length)])
      if (rest.length > maxLineBytes) {
        sink.fragment(rest, false)
        rest = Buffer.alloc(0)
      }
    }
    if (rest.length > 0) sink.fragment(rest, true)
    return size
  } finally {
    closeSync(file)
  }
}

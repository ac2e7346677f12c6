/** Finds lines of the ledger, the newest first, without reading more than it has to. */
import { type FileHandle, open } from 'node:fs/promises'
import { type ChainFile, chainsIn } from './chain-files.ts'
import { type AuditKey, authenticityOf, type ParseLine, readLine } from './line.ts'

export interface AuditFilter {
  /** A user’s name or id, or an operator’s name. */
  readonly user?: string | undefined
  readonly kind?: string | undefined
  readonly route?: string | undefined
  readonly requestId?: string | undefined
  /** In ms since 1970. */
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** A line as it stands in the file; `signed` is false where its signature does not hold. */
export interface FoundLine {
  readonly chain: string
  readonly signed: boolean
  readonly line: Readonly<Record<string, unknown>>
}

interface SearchResult {
  /** The oldest first. */
  readonly lines: FoundLine[]
  /** Whether all files were read as far as the filter asks. */
  readonly isWhole: boolean
}

interface SearchOptions {
  readonly folder: string
  readonly keys: readonly AuditKey[]
  readonly filter: AuditFilter
  readonly last: number
  readonly parse: ParseLine
  /** Bound of what is read, of all files together. */
  readonly maxBytes: number
}

const blockBytes = 256 * 1024
/** Lines of several processes are not quite in the order of their times. */
const disorderMs = 60_000
/**
 * So many older lines in a row end a search. Fewer stand between newer ones after a step of the
 * clock, or where entries waited for a disk: 20,000 at most wait.
 */
const maxOlderLines = 20_000
const lineBreak = 0x0a

/** @throws when a file cannot be read */
export async function searchLedger(options: SearchOptions): Promise<SearchResult> {
  const { folder, last } = options
  const chains = [...chainsIn(folder)]
  const maxBytes = options.maxBytes / Math.max(1, chains.length)
  const lines: FoundLine[] = []
  let isWhole = true
  for (const [chain, files] of chains) {
    const ofChain = await searchChain(chain, files, { ...options, maxBytes })
    lines.push(...ofChain.lines)
    isWhole &&= ofChain.isWhole
  }
  lines.sort((a, b) => timeOf(a.line) - timeOf(b.line))
  return { lines: last === 0 ? [] : lines.slice(-last), isWhole }
}

async function searchChain(
  chain: string,
  files: readonly ChainFile[],
  { keys, filter, last, maxBytes, parse }: SearchOptions
): Promise<SearchResult> {
  const lines: FoundLine[] = []
  let left = maxBytes
  let older = 0
  for (const { path } of files.toReversed()) {
    let file: FileHandle | undefined
    try {
      file = await open(path, 'r')
      for await (const bytes of linesBackwards(file)) {
        left -= bytes.length
        if (lines.length >= last || left < 0) {
          return { lines: lines.toReversed(), isWhole: left >= 0 }
        }
        const result = match(bytes, { filter, keys, parse })
        if (result === 'forged') continue
        older = result === 'older' ? older + 1 : 0
        if (older > maxOlderLines) return { lines: lines.toReversed(), isWhole: true }
        if (typeof result === 'object') lines.push({ chain, ...result })
      }
    } catch (error) {
      // Pruned meanwhile.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    } finally {
      await file?.close()
    }
  }
  return { lines: lines.toReversed(), isWhole: true }
}

function match(
  bytes: Buffer,
  { filter, keys, parse }: Pick<SearchOptions, 'filter' | 'keys' | 'parse'>
): Omit<FoundLine, 'chain'> | 'older' | 'forged' | undefined {
  const head = readLine(bytes)
  if (head === undefined) return 'forged'
  const at = Date.parse(head.at)
  if (filter.since !== undefined && at < filter.since - disorderMs) {
    // Nobody else may end a search by a line with an old time.
    return authenticityOf(bytes, head, keys) === 'genuine' ? 'older' : 'forged'
  }
  if (filter.kind !== undefined && head.kind !== filter.kind) return undefined
  const line = parsedLine(bytes, parse)
  if (line === undefined || !matchesFilter(line, filter)) return undefined
  return { line, signed: authenticityOf(bytes, head, keys) === 'genuine' }
}

export function matchesFilter(
  line: Readonly<Record<string, unknown>>,
  { user, kind, route, requestId, since, until }: AuditFilter
): boolean {
  const at = timeOf(line)
  if (since !== undefined && at < since) return false
  if (until !== undefined && at > until) return false
  if (kind !== undefined && line['kind'] !== kind) return false
  if (route !== undefined && line['route'] !== route) return false
  if (requestId !== undefined && line['requestId'] !== requestId) return false
  return (
    user === undefined ||
    line['user'] === user ||
    line['userId'] === user ||
    line['operator'] === user
  )
}

function timeOf({ at }: Readonly<Record<string, unknown>>): number {
  return Date.parse(String(at))
}

/** @returns undefined for a line that somebody wrote in our place, and that is no JSON */
export function parsedLine(bytes: Buffer, parse: ParseLine): FoundLine['line'] | undefined {
  try {
    return parse(bytes.toString('utf8')) as FoundLine['line']
  } catch {
    return undefined
  }
}

/** The lines of a file, the last first. A line longer than a block is skipped. */
async function* linesBackwards(file: FileHandle): AsyncGenerator<Buffer> {
  let { size: end } = await file.stat()
  let rest: Buffer = Buffer.alloc(0)
  while (end > 0) {
    const start = Math.max(0, end - blockBytes)
    const block = Buffer.alloc(end - start)
    const { bytesRead } = await file.read(block, 0, block.length, start)
    const bytes = Buffer.concat([block.subarray(0, bytesRead), rest])
    let to = bytes.length
    for (;;) {
      const lineStart = to === 0 ? -1 : bytes.lastIndexOf(lineBreak, to - 1)
      if (lineStart < 0) break
      if (lineStart + 1 < to) yield bytes.subarray(lineStart + 1, to)
      to = lineStart
    }
    rest = to > blockBytes ? Buffer.alloc(0) : bytes.subarray(0, to)
    end = start
  }
  if (rest.length > 0) yield rest
}

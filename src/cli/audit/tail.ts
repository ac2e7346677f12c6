/** `audit tail`: the last lines of the ledger, and with -f those that are written from then on. */
import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import { chainsIn } from '../../observability/audit/chain-files.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import { authenticityOf, readLine } from '../../observability/audit/line.ts'
import {
  type AuditFilter,
  type FoundLine,
  matchesFilter,
  parsedLine
} from '../../observability/audit/search.ts'
import type { Invocation } from '../command.ts'
import type { LedgerPlace } from './place.ts'
import { filterOf, findLast, lastOf, printLine } from './search.ts'

const defaultLast = 10
const pollMs = 300
const maxReadBytes = 1024 * 1024
const lineBreak = 0x0a

export async function tailCommand(place: LedgerPlace, invocation: Invocation): Promise<number> {
  const { values } = invocation
  const filter = filterOf(values)
  // Before the search: a line that comes meanwhile is printed twice rather than never.
  const follower = values['follow'] === true ? new Follower(place) : undefined
  const { lines } = await findLast(place, filter, lastOf(values, defaultLast))
  for (const line of lines) printLine(line, invocation)
  if (follower !== undefined) await printAdded(follower, filter, invocation)
  return 0
}

/** Runs until the process is ended. */
async function printAdded(
  follower: Follower,
  filter: AuditFilter,
  invocation: Invocation
): Promise<never> {
  for (;;) {
    const added = [...follower.read()].filter(({ line }) => matchesFilter(line, filter))
    for (const line of added) printLine(line, invocation)
    await wait(pollMs)
  }
}

/** Reads what is added to the files of a folder. */
class Follower {
  readonly #place: LedgerPlace
  /** Bytes that were read of each file: of its chain and number, since it is renamed at its end. */
  readonly #offsets = new Map<string, number>()

  constructor(place: LedgerPlace) {
    this.#place = place
    for (const [chain, files] of chainsIn(place.folder)) {
      for (const { path, number } of files) this.#offsets.set(`${chain} ${number}`, sizeOf(path))
    }
  }

  *read(): Generator<FoundLine> {
    for (const [chain, files] of chainsIn(this.#place.folder)) {
      for (const { path, number } of files) {
        const file = `${chain} ${number}`
        const offset = this.#offsets.get(file) ?? 0
        const bytes = readFrom(path, offset)
        const end = bytes.lastIndexOf(lineBreak) + 1
        // Bytes without a line break that are longer than any line of the ledger are skipped.
        const isLine = end > 0 || bytes.length < maxReadBytes
        this.#offsets.set(file, offset + (isLine ? end : bytes.length))
        yield* this.#linesOf(chain, bytes.subarray(0, end))
      }
    }
  }

  *#linesOf(chain: string, bytes: Buffer): Generator<FoundLine> {
    let from = 0
    while (from < bytes.length) {
      const to = bytes.indexOf(lineBreak, from)
      const text = bytes.subarray(from, to)
      from = to + 1
      const head = readLine(text)
      const line = head && parsedLine(text, parseKeepingDigits)
      if (head === undefined || line === undefined) continue
      yield { chain, signed: authenticityOf(text, head, this.#place.keys) === 'genuine', line }
    }
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0
}

/** Empty where nothing was added, or the file was deleted meanwhile. */
function readFrom(path: string, offset: number): Buffer {
  const length = Math.min(sizeOf(path) - offset, maxReadBytes)
  if (length <= 0) return Buffer.alloc(0)
  const bytes = Buffer.allocUnsafe(length)
  const file = openSync(path, 'r')
  try {
    return bytes.subarray(0, readSync(file, bytes, 0, length, offset))
  } finally {
    closeSync(file)
  }
}

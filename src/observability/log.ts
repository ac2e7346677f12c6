/**
 * Writes log lines to standard output with their time. Most requests write one, so both must be
 * cheap.
 */
import type { DestinationStream, Logger } from 'pino'
import { escapeInJson } from './unprintable.ts'
import { WriteQueue } from './write-queue.ts'

const pageBytes = 64 * 1024
const sparePages = 8
/** Less is copied, and its page reused. */
const smallBytes = 8 * 1024
const droppedText = 'lines of the log were dropped, since nothing took them in time'
/** The most bytes of a character: six for an escape such as `\u202e`, three for UTF-8. */
const maxBytesOfUnit = 6

/**
 * Collects the lines of a moment into one write, since each write wakes another thread; the rest is
 * written at the end of the process.
 */
export function standardOutput(): DestinationStream & { flushSync: () => void } {
  // As bytes at once: a string is in pieces until it is written, and by then they are far apart in
  // memory.
  let page: Buffer = Buffer.allocUnsafeSlow(pageBytes)
  let filled = 0
  const handed: Buffer[] = []
  const free: Buffer[] = []
  // New pages would be garbage that only a full collection takes away.
  const onIdle = () => void free.push(...handed.splice(0).slice(0, sparePages - free.length))
  const timestamp = isoTime()
  const onDropped = (bytes: number) => {
    const members = JSON.stringify({ event: 'log.dropped', bytes, msg: droppedText })
    append(`{"level":"warn"${timestamp()},${members.slice(1)}\n`)
  }
  const queue = new WriteQueue({ fd: 1, onIdle, onDropped })
  function turn() {
    if (filled === 0) return
    const written = page.subarray(0, filled)
    // Where the output stands still, pages would hold far more than what is written in them.
    if (filled < smallBytes || handed.length === sparePages) queue.write(Buffer.from(written))
    else {
      queue.write(written)
      handed.push(page)
      page = free.pop() ?? Buffer.allocUnsafeSlow(pageBytes)
    }
    filled = 0
  }
  function append(line: string): void {
    const maxBytes = line.length * maxBytesOfUnit
    if (filled + maxBytes > pageBytes) turn()
    if (maxBytes > pageBytes) return queue.write(Buffer.from(escapeInJson(line)))
    const length = page.write(line, filled)
    // perf: ASCII has one byte for each character, and nothing to escape: maxBytes lines are not
    // searched.
    if (length === line.length) filled += length
    else filled += page.write(escapeInJson(line), filled)
  }
  const flushSync = () => {
    turn()
    queue.flushSync()
    // The line of what was dropped.
    turn()
    queue.flushSync()
  }
  setInterval(turn, 50).unref()
  process.on('beforeExit', turn)
  process.on('exit', flushSync)
  return { write: append, flushSync }
}

/** perf: two comparisons, where padStart would make another string for each line. */
function padding(milli: number): string {
  if (milli >= 100) return ''
  return milli < 10 ? '00' : '0'
}

/** As pino's own function, but the date is only written when the second has changed. */
export function isoTime(now: () => number = Date.now): () => string {
  let second = NaN
  let date = ''
  return () => {
    const time = now()
    const milli = time % 1000
    if (time - milli !== second) {
      second = time - milli
      date = new Date(second).toISOString().slice(0, -4)
    }
    return `,"time":"${date}${padding(milli)}${milli}Z"`
  }
}

/** The destination of a logger's JSON lines, and the members of each. */
interface LineOutput {
  readonly output: DestinationStream
  /** The member `time`, after a comma. */
  readonly timestamp: () => string
  readonly base: Readonly<Record<string, unknown>>
}

const lineOutputs = new WeakMap<Logger, LineOutput>()

/** Lets lines of a logger of JSON be written without it, as `infoWriter` does. */
export function addLineOutput(logger: Logger, output: LineOutput): void {
  lineOutputs.set(logger, output)
}

/**
 * Writes lines of one message and of level `info`, which the caller has found to be enabled, from
 * members that are JSON text, each after a comma: the bytes of `logger.info`, at less cost.
 * @param parse for a logger that writes no JSON
 */
export function infoWriter(
  logger: Logger,
  message: string,
  parse: (json: string) => unknown
): (members: string) => void {
  const lines = lineOutputs.get(logger)
  if (lines === undefined) {
    return members => logger.info(parse(`{${members.slice(1)}}`), message)
  }
  const { output, timestamp } = lines
  const base = membersOf(lines.base)
  const end = `${membersOf({ msg: message })}}\n`
  return members => output.write(`{"level":"info"${timestamp()}${base}${members}${end}`)
}

function membersOf(object: Readonly<Record<string, unknown>>): string {
  const json = JSON.stringify(object).slice(1, -1)
  return json === '' ? '' : `,${json}`
}

/** Logs each text once: a fault of every response must not fill the log. */
export function oncePerText(log: (text: string) => void): (text: string) => void {
  const logged = new Set<string>()
  return text => {
    if (logged.has(text)) return
    logged.add(text)
    log(text)
  }
}

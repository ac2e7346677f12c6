/**
 * Writes log lines to standard output with their time. Most requests write one, so both must be
 * cheap.
 */
import pino, { type DestinationStream, type Logger } from 'pino'
import { adopt } from './emitters.ts'
import { escapeInJson } from './unprintable.ts'

const pageBytes = 64 * 1024
const sparePages = 8
/** Less is copied, and its page reused. */
const smallBytes = 8 * 1024
/** The most bytes of a character: six for an escape such as `\u202e`, three for UTF-8. */
const maxBytesOfUnit = 6

/**
 * Collects the lines of a moment into one write, since each write wakes another thread; the rest is
 * written at the end of the process.
 */
export function standardOutput(): DestinationStream & { flushSync: () => void } {
  // Before pino's own for the same moments, which write what the destination has by then.
  for (const moment of ['beforeExit', 'exit']) process.on(moment, () => turn())
  // A reader that went away or stands still, or a full disk, costs log lines, not the service.
  const output = adopt(
    pino.destination({
      dest: 1,
      sync: false,
      maxLength: 16 * 1024 * 1024,
      contentMode: 'buffer'
    })
  )
  // As bytes at once: a string is in pieces until it is written, and by then they are far apart in
  // memory.
  let page: Buffer = Buffer.allocUnsafeSlow(pageBytes)
  let filled = 0
  const handed: Buffer[] = []
  const free: Buffer[] = []
  output.on('drain', () => {
    // All of them are written. New ones would be garbage that only a full collection takes away.
    free.push(...handed.splice(0).slice(0, sparePages - free.length))
  })
  function turn() {
    if (filled === 0) return
    const written = page.subarray(0, filled)
    if (filled < smallBytes) output.write(Buffer.from(written) as never)
    else {
      output.write(written as never)
      handed.push(page)
      page = free.pop() ?? Buffer.allocUnsafeSlow(pageBytes)
    }
    filled = 0
  }
  setInterval(turn, 50).unref()
  const append = (line: string): void => {
    const maxBytes = line.length * maxBytesOfUnit
    if (filled + maxBytes > pageBytes) turn()
    if (maxBytes > pageBytes) return void output.write(Buffer.from(escapeInJson(line)) as never)
    const length = page.write(line, filled)
    // perf: ASCII has one byte for each character, and nothing to escape: maxBytes lines are not
    // searched.
    if (length === line.length) filled += length
    else filled += page.write(escapeInJson(line), filled)
  }
  return {
    write: append,
    flushSync: () => {
      turn()
      output.flushSync()
    }
  }
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

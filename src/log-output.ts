/** How log lines reach standard output, and the time in them: most requests write one, so both have to be cheap. */
import pino, { type DestinationStream } from 'pino'

/** Lines of a moment in one write, since each wakes another thread; at the end of the process the rest is written too. */
export function standardOutput (): DestinationStream & { flushSync: () => void } {
  const output = pino.destination({ dest: 1, sync: false, minLength: 60 * 1024, maxWrite: 64 * 1024, periodicFlush: 50, maxLength: 16 * 1024 * 1024, contentMode: 'buffer' })
  // A reader that went away or stands still, or a full disk, costs log lines, not the service.
  output.on('error', () => {})
  // As bytes at once: a string is in pieces until it is written, and by then they are far apart in memory.
  return { write: line => { output.write(Buffer.from(line) as never) }, flushSync: () => output.flushSync() }
}

/** What pino's own does, but the date is only written anew when the second has changed. */
export function isoTime (now: () => number = Date.now): () => string {
  let second = NaN
  let date = ''
  return () => {
    const time = now()
    const milli = time % 1000
    if (time - milli !== second) {
      second = time - milli
      date = new Date(second).toISOString().slice(0, -4)
    }
    return `,"time":"${date}${milli < 10 ? '00' : milli < 100 ? '0' : ''}${milli}Z"`
  }
}

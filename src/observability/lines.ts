/** Lines in their order, each whole. A reader that stands still costs lines, not the service. */
import { writeSync } from 'node:fs'
import { escapeInJson } from './unprintable.ts'

const everyMs = 50
/** The pause where the reader takes no more for the moment: a pipe holds 64 KiB. */
const retryMs = 5
/** So many characters are written at once. */
const soonLength = 32_768
const maxWaiting = 16_000_000
/** The time for a reader to take the rest at the end, and the pause between two tries. */
const patienceMs = 1000
const pauseMs = 10

const droppedText = 'lines of the log were dropped, since nothing took them in time'

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/** @param fd of a pipe that does not block, of a file or of a terminal */
export function createLineWriter(fd: number) {
  /** The rest of what is being written; empty unless the reader takes no more. */
  let begun: Buffer = Buffer.alloc(0)
  let waiting = ''
  let dropped = 0
  let timer: NodeJS.Timeout | undefined

  /** @returns whether nothing waits any more; else it is tried again later */
  function writeAll(): boolean {
    clearTimeout(timer)
    timer = undefined
    while (begun.length > 0 || waiting !== '') {
      if (begun.length === 0) {
        begun = Buffer.from(escapeInJson(waiting))
        waiting = ''
      }
      try {
        begun = begun.subarray(writeSync(fd, begun))
      } catch (error) {
        // Without a reader nobody will ever take them.
        if ((error as NodeJS.ErrnoException).code === 'EPIPE') drop()
        timer = setTimeout(writeAll, retryMs).unref()
        return false
      }
      if (begun.length === 0 && dropped > 0) tellDropped()
    }
    return true
  }

  function drop(): void {
    for (const part of [begun.toString('latin1'), waiting]) dropped += part.split('\n').length - 1
    begun = Buffer.alloc(0)
    waiting = ''
  }

  function tellDropped(): void {
    const line = { level: 'warn', time: new Date().toISOString(), event: 'log.dropped' }
    waiting += `${JSON.stringify({ ...line, lines: dropped, msg: droppedText })}\n`
    dropped = 0
  }

  /** Writes what waits, as far as it is taken within a second: for the end of the process. */
  function flush(): void {
    const giveUpAt = performance.now() + patienceMs
    while (!writeAll() && performance.now() < giveUpAt) Atomics.wait(sleeper, 0, 0, pauseMs)
  }

  return {
    write: (line: string): void => {
      if (waiting.length > maxWaiting) {
        dropped++
        return
      }
      waiting += line
      if (waiting.length > soonLength && begun.length === 0) writeAll()
      else timer ??= setTimeout(writeAll, everyMs).unref()
    },
    flush
  }
}

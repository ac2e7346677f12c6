/**
 * Writes the lines of the log to a descriptor: those of 50 ms at once, in their order, each whole.
 * A reader that stands still or went away, or a full disk, costs lines, not the service.
 */
import { writeSync } from 'node:fs'
import { escapeInJson } from './unprintable.ts'

const everyMs = 50
/** The pause where the reader takes no more for the moment: a pipe holds 64 KiB. */
const retryMs = 5
/** So many characters are written at once. */
const soonLength = 32_768
/** More lines are dropped. */
const maxWaiting = 16_000_000
/** The time for a reader to take the rest at the end, and the pause between two tries. */
const patienceMs = 1000
const pauseMs = 10

const droppedText = 'lines of the log were dropped, since nothing took them in time'

const sleeper = new Int32Array(new SharedArrayBuffer(4))

export class LineWriter {
  readonly #fd: number
  /** The rest of what is being written; empty unless the reader takes no more. */
  #begun: Buffer = Buffer.alloc(0)
  #waiting = ''
  #dropped = 0
  #timer: NodeJS.Timeout | undefined

  /** @param fd of a pipe that does not block, of a file or of a terminal */
  constructor(fd: number) {
    this.#fd = fd
  }

  write(line: string): void {
    if (this.#waiting.length > maxWaiting) {
      this.#dropped++
      return
    }
    this.#waiting += line
    if (this.#waiting.length > soonLength && this.#begun.length === 0) this.#writeAll()
    else this.#timer ??= setTimeout(() => this.#writeAll(), everyMs).unref()
  }

  /** Writes what waits, as far as it is taken within a second: for the end of the process. */
  flushSync(): void {
    const giveUpAt = performance.now() + patienceMs
    while (!this.#writeAll() && performance.now() < giveUpAt) {
      Atomics.wait(sleeper, 0, 0, pauseMs)
    }
  }

  /** @returns whether nothing waits any more; else it is tried again later */
  #writeAll(): boolean {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#begun.length > 0 || this.#waiting !== '') {
      if (this.#begun.length === 0) {
        this.#begun = Buffer.from(escapeInJson(this.#waiting))
        this.#waiting = ''
      }
      try {
        this.#begun = this.#begun.subarray(writeSync(this.#fd, this.#begun))
      } catch (error) {
        // Without a reader nobody will ever take them.
        if ((error as NodeJS.ErrnoException).code === 'EPIPE') this.#drop()
        this.#timer = setTimeout(() => this.#writeAll(), retryMs).unref()
        return false
      }
      if (this.#begun.length === 0) this.#tellDropped()
    }
    return true
  }

  #drop(): void {
    for (const part of [this.#begun.toString('latin1'), this.#waiting]) {
      this.#dropped += part.split('\n').length - 1
    }
    this.#begun = Buffer.alloc(0)
    this.#waiting = ''
  }

  #tellDropped(): void {
    if (this.#dropped === 0) return
    const line = { level: 'warn', time: new Date().toISOString(), event: 'log.dropped' }
    this.#waiting += `${JSON.stringify({ ...line, lines: this.#dropped, msg: droppedText })}\n`
    this.#dropped = 0
  }
}

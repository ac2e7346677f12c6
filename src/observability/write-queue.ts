/**
 * Writes chunks to a descriptor in their order: by threads while the process runs, by itself at the
 * end. A reader that went away or stands still, or a full disk, costs chunks, not the service.
 */
import { writev, writevSync } from 'node:fs'

interface Options {
  readonly fd: number
  /** Called when nothing waits: the memory of all chunks may be used again. */
  readonly onIdle: () => void
  /** Called with the bytes of dropped chunks once the rest is written, thus once it can be told. */
  readonly onDropped: (bytes: number) => void
}

/** Chunks beyond it are dropped. */
const maxBytes = 16 * 1024 * 1024
/** Of chunks that are written together. */
const maxTogether = 16 * 1024
/** The pause after which a failed write is tried again. */
const retryMs = 100
/** The time for a reader to take the rest at the end, and the pause between two tries. */
const flushMs = 1000
const flushRetryMs = 10

export class WriteQueue {
  readonly #options: Options
  readonly #waiting: Buffer[] = []
  /** With those that a thread writes. */
  #bytes = 0
  #dropped = 0
  #isWriting = false

  constructor(options: Options) {
    this.#options = options
  }

  write(chunk: Buffer): void {
    if (this.#bytes + chunk.length > maxBytes) {
      this.#dropped += chunk.length
      return
    }
    this.#bytes += chunk.length
    this.#waiting.push(chunk)
    this.#next()
  }

  /** Waits for a reader that takes nothing for a short time only, and for no other fault. */
  flushSync(): void {
    const giveUpAt = performance.now() + flushMs
    while (this.#waiting.length > 0) {
      const chunks = this.#take()
      try {
        this.#onWritten(chunks, writevSync(this.#options.fd, chunks))
      } catch (error) {
        this.#onError(chunks, error as NodeJS.ErrnoException)
        const isFull = (error as NodeJS.ErrnoException).code === 'EAGAIN'
        if (!isFull || performance.now() > giveUpAt) return
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, flushRetryMs)
      }
    }
  }

  #next(): void {
    if (this.#isWriting || this.#waiting.length === 0) return
    const chunks = this.#take()
    this.#isWriting = true
    writev(this.#options.fd, chunks, (error, written) => {
      this.#isWriting = false
      if (error === null) {
        this.#onWritten(chunks, written)
        this.#next()
      } else {
        this.#onError(chunks, error)
        setTimeout(() => this.#next(), retryMs).unref()
      }
    })
  }

  #take(): Buffer[] {
    let bytes = 0
    const end = this.#waiting.findIndex(({ length }, index) => {
      bytes += length
      return index > 0 && bytes > maxTogether
    })
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end)
  }

  #onWritten(chunks: readonly Buffer[], written: number): void {
    let left = written
    const rest = chunks.flatMap(chunk => {
      const taken = Math.min(left, chunk.length)
      left -= taken
      return taken === chunk.length ? [] : [chunk.subarray(taken)]
    })
    this.#waiting.unshift(...rest)
    this.#release(written)
    if (this.#dropped === 0 || this.#bytes > 0) return
    const dropped = this.#dropped
    this.#dropped = 0
    this.#options.onDropped(dropped)
  }

  #onError(chunks: readonly Buffer[], { code }: NodeJS.ErrnoException): void {
    this.#waiting.unshift(...chunks)
    // Without a reader nobody will ever take them.
    if (code !== 'EPIPE') return
    for (const { length } of this.#waiting.splice(0)) {
      this.#dropped += length
      this.#release(length)
    }
  }

  #release(bytes: number): void {
    this.#bytes -= bytes
    if (this.#bytes === 0) this.#options.onIdle()
  }
}

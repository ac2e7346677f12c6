/** Bounds how much of a costly work runs at a time; the rest waits in order. */
import { GatewayError } from '../errors/errors.ts'

const maxWaitMs = 10_000

export class Slots {
  running = 0
  readonly #slots: number
  readonly #queue: number
  readonly #onWaited: ((ms: number) => void) | undefined
  /** In their order: what starts each. */
  readonly #waiting = new Set<() => void>()

  /** @param onWaited for each that leaves the queue, whatever became of it */
  constructor(slots: number, queue: number, onWaited?: (ms: number) => void) {
    this.#slots = slots
    this.#queue = queue
    this.#onWaited = onWaited
  }

  get waiting(): number {
    return this.#waiting.size
  }

  tryTake(): boolean {
    if (this.running >= this.#slots) return false
    this.running++
    return true
  }

  /** @throws GatewayError `overloaded`, or the reason of `signal` */
  async take(signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryTake()) return
    const waiting = this.#waiting
    if (waiting.size >= this.#queue) throw overloaded('too many wait already', 'queue')
    const startedAt = performance.now()
    const { promise, resolve: start, reject } = Promise.withResolvers<void>()
    const refuse = (error: unknown) => {
      waiting.delete(start)
      reject(error)
    }
    const late = () => refuse(overloaded('nothing was free in time', 'queueTimeout'))
    const onAbort = () => refuse(signal?.reason)
    const timer = setTimeout(late, maxWaitMs).unref()
    signal?.addEventListener('abort', onAbort)
    waiting.add(start)
    try {
      await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
      this.#onWaited?.(performance.now() - startedAt)
    }
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    await this.take()
    try {
      return await work()
    } finally {
      this.release()
    }
  }

  release(): void {
    const [next] = this.#waiting
    // The slot goes on to the next one without being free in between.
    if (next === undefined) return void this.running--
    this.#waiting.delete(next)
    next()
  }
}

export function overloaded(reason: string, limit: string): GatewayError {
  return new GatewayError('overloaded', { retryAfter: 1, cause: new Error(reason), limit })
}

/** Bounds the requests that an upstream gets at a time; the others wait in order. */
import { GatewayError } from '../errors/errors.ts'

export interface SlotBounds {
  readonly slots: number
  /** Requests that may wait. */
  readonly queue: number
}

const maxWaitMs = 10_000

interface Waiting {
  readonly start: () => void
  readonly refuse: (error: unknown) => void
}

export class Slots {
  readonly #bounds: SlotBounds
  readonly #onWaited: (ms: number) => void
  /** In the order in which they came. */
  readonly #waiting = new Set<Waiting>()
  #running = 0

  /** @param onWaited called for each request that leaves the queue, whatever became of it */
  constructor(bounds: SlotBounds, onWaited: (ms: number) => void) {
    this.#bounds = bounds
    this.#onWaited = onWaited
  }

  get running(): number {
    return this.#running
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** @returns whether a slot was free, which is now taken until `release()` */
  tryTake(): boolean {
    if (this.#running >= this.#bounds.slots) return false
    this.#running++
    return true
  }

  /**
   * Waits for a slot.
   * @param signal aborted when nobody needs it any more
   * @throws GatewayError `overloaded`, or the reason of `signal`
   */
  async take(signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    if (this.tryTake()) return
    const waiting = this.#waiting
    if (waiting.size >= this.#bounds.queue) {
      throw overloaded('too many requests wait for the upstream', 'queue')
    }
    const onWaited = this.#onWaited
    const startedAt = performance.now()
    await new Promise<void>((resolve, reject) => {
      const onAbort = () => refuse(signal?.reason)
      const timer = setTimeout(expire, maxWaitMs).unref()
      const self = { start, refuse }
      signal?.addEventListener('abort', onAbort)
      waiting.add(self)

      function start(): void {
        leave()
        resolve()
      }
      function refuse(error: unknown): void {
        leave()
        reject(error)
      }
      function expire(): void {
        refuse(overloaded('no connection to the upstream was free in time', 'queueTimeout'))
      }
      function leave(): void {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
        waiting.delete(self)
        onWaited(performance.now() - startedAt)
      }
    })
  }

  release(): void {
    const [next] = this.#waiting
    // The slot goes on to the next one without being free in between.
    if (next === undefined) this.#running--
    else next.start()
  }

  close(error: GatewayError): void {
    for (const waiting of this.#waiting) waiting.refuse(error)
  }
}

/** @param limit the bound that refused */
export function overloaded(reason: string, limit: string): GatewayError {
  return new GatewayError('overloaded', { retryAfter: 1, cause: new Error(reason), limit })
}

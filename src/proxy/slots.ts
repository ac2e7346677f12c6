/** Bounds the requests that an upstream gets at a time; the others wait in order. */
import { GatewayError } from '../errors.ts'

export interface SlotBounds {
  readonly slots: number
  /** Requests that may wait. */
  readonly queue: number
  /** Milliseconds. */
  readonly queueTimeout: number
}

/** A request that waits. */
export interface Waiter {
  /** It has a slot, until `release()`. */
  readonly start: () => void
  readonly refuse: (error: GatewayError) => void
}

export class Slots {
  readonly #bounds: SlotBounds
  readonly #onWaited: (ms: number) => void
  /** In the order in which they came. */
  readonly #waiting = new Map<Waiter, () => void>()
  #running = 0
  #isStarting = false

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

  /** @returns whether a slot was free, which is now taken */
  tryTake(): boolean {
    if (this.#running >= this.#bounds.slots) return false
    this.#running++
    return true
  }

  /**
   * Waits for a slot.
   * @returns a function that takes the request out of the queue
   * @throws GatewayError `overloaded`
   */
  wait(waiter: Waiter): () => void {
    const { queue, queueTimeout } = this.#bounds
    if (this.#waiting.size >= queue) {
      throw overloaded('too many requests wait for the upstream', 'queue')
    }
    const startedAt = performance.now()
    const timer = setTimeout(() => this.#expire(waiter), queueTimeout).unref()
    const leave = () => {
      clearTimeout(timer)
      if (this.#waiting.delete(waiter)) this.#onWaited(performance.now() - startedAt)
    }
    this.#waiting.set(waiter, leave)
    return leave
  }

  release(): void {
    this.#running--
    // One that fails at once releases its slot within start(): the running loop goes on.
    if (this.#isStarting) return
    this.#isStarting = true
    try {
      for (const [waiter, leave] of this.#waiting) {
        if (!this.tryTake()) break
        leave()
        waiter.start()
      }
    } finally {
      this.#isStarting = false
    }
  }

  #expire(waiter: Waiter): void {
    this.#waiting.get(waiter)?.()
    waiter.refuse(overloaded('no connection to the upstream was free in time', 'queueTimeout'))
  }

  /** Refuses all that wait. */
  close(error: GatewayError): void {
    for (const [waiter, leave] of this.#waiting) {
      leave()
      waiter.refuse(error)
    }
  }
}

/** @param limit the key of the upstream's config that refused */
export function overloaded(reason: string, limit: string): GatewayError {
  return new GatewayError('overloaded', { retryAfter: 1, cause: new Error(reason), limit })
}

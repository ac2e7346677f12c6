/** The time-outs of calls to upstreams: one sweep over all that are running. */
import type { UpstreamConfig } from '../config/schema/routes.ts'

/** Of one route at its upstream. */
export interface TimeOuts {
  /** The longest pause of a body, from the upstream or to the client. */
  readonly idleMs: number
  /** The same for an event stream. */
  readonly streamIdleMs: number
  /** From the connection to the last byte; not for event streams. */
  readonly totalMs: number
}

/** The keys of a route that count in the place of its upstream's. */
export type TimeOutOverrides = Partial<
  Pick<UpstreamConfig, 'idleTimeout' | 'streamIdle' | 'totalTimeout'>
>

export function timeOutsOf(upstream: UpstreamConfig, route: TimeOutOverrides = {}): TimeOuts {
  return {
    idleMs: route.idleTimeout ?? upstream.idleTimeout,
    streamIdleMs: route.streamIdle ?? upstream.streamIdle,
    totalMs: route.totalTimeout ?? upstream.totalTimeout
  }
}

/** A call that is running. */
export interface SweptCall {
  /** Its place in the sweep, which alone sets it; -1 outside. */
  slot: number
  /**
   * @param elapsedMs since the last one
   * @param now as of `performance.now()`
   */
  readonly onSweep: (elapsedMs: number, now: number) => void
}

const sweepEveryMs = 100

/**
 * One timer for all calls: a timer for each would be set and cleared with every response. A call
 * is ended up to two sweeps late, never early.
 */
class Sweep {
  readonly #calls: SweptCall[] = []
  #timer: NodeJS.Timeout | undefined
  #sweptAt = 0

  get size(): number {
    return this.#calls.length
  }

  add(call: SweptCall): void {
    call.slot = this.#calls.push(call) - 1
    if (this.#timer !== undefined) return
    this.#sweptAt = performance.now()
    this.#timer = setInterval(() => this.#run(), sweepEveryMs).unref()
  }

  remove(call: SweptCall): void {
    const { slot } = call
    if (slot < 0) return
    call.slot = -1
    const last = this.#calls.pop()
    if (last === undefined || last === call) return
    this.#calls[slot] = last
    last.slot = slot
  }

  #run(): void {
    const now = performance.now()
    // After a late turn of the event loop, bytes may wait unread: that time is nobody's fault.
    const elapsedMs = Math.min(now - this.#sweptAt, 2 * sweepEveryMs)
    this.#sweptAt = now
    // Backwards: one that is ended gives its place to one that was already swept.
    for (let slot = this.#calls.length - 1; slot >= 0; slot--) {
      this.#calls[slot]?.onSweep(elapsedMs, now)
    }
    if (this.#calls.length > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

/** Of this process. */
export const sweep = new Sweep()

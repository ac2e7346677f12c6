/**
 * The clock of state that is kept in memory: the wall clock as it was at the start, continued by
 * the monotonic clock. A step of the wall clock (NTP, `date -s`) neither prolongs nor shortens what
 * goes by it.
 */
import { uptime } from 'node:os'

interface Sources {
  readonly ticks?: () => number
  readonly wall?: () => number
  readonly uptimeMs?: () => number
}

const lookEveryMs = 1000
/** The uptime is exact to 10 ms, and both are not read at once. */
const minSleepMs = 1000
/** Shown times are for people: they shall not tremble by what lies between two readings. */
const minStepMs = 500

export class SteadyClock {
  readonly #ticks: () => number
  readonly #wall: () => number
  readonly #uptimeMs: () => number
  #offsetMs: number
  #asleepMs: number
  #lookedAt: number
  #aheadMs = 0

  constructor({
    ticks = () => performance.now(),
    wall = () => Date.now(),
    uptimeMs = machineUptimeMs
  }: Sources = {}) {
    this.#ticks = ticks
    this.#wall = wall
    this.#uptimeMs = uptimeMs
    const time = ticks()
    this.#offsetMs = wall() - time
    this.#asleepMs = uptimeMs() - time
    this.#lookedAt = time
  }

  /** Whole milliseconds since the epoch, by the wall clock at the start. */
  now(): number {
    const ticks = this.#ticks()
    if (ticks - this.#lookedAt >= lookEveryMs) this.#look(ticks)
    return Math.floor(ticks + this.#offsetMs)
  }

  /**
   * By how much the wall clock is ahead: 0 unless it was set since the start. Added to times that
   * people read.
   */
  aheadMs(): number {
    const aheadMs = this.#wall() - this.now()
    if (Math.abs(aheadMs - this.#aheadMs) >= minStepMs) this.#aheadMs = aheadMs
    return this.#aheadMs
  }

  /** The time asleep counts: else a session would be as fresh after a night as before. */
  #look(ticks: number): void {
    this.#lookedAt = ticks
    const uptimeMs = this.#uptimeMs()
    // Read after the uptime, so that a pause between the two never counts as sleep.
    const sleptMs = uptimeMs - this.#ticks() - this.#asleepMs
    if (sleptMs < minSleepMs) return
    this.#asleepMs += sleptMs
    this.#offsetMs += sleptMs
  }
}

/** 0 where the system does not say: no time asleep counts then. */
function machineUptimeMs(): number {
  try {
    return uptime() * 1000
  } catch {
    return 0
  }
}

/** Of this process. */
export const steadyClock: SteadyClock = new SteadyClock()

export const steadyNow = (): number => steadyClock.now()

/** By how much the wall clock is ahead of `now`: 0 of other clocks than the steady one. */
export function aheadOf(now: () => number): number {
  return now === steadyNow ? steadyClock.aheadMs() : 0
}

/**
 * The clock of state that is kept in memory: the wall clock as it was at the start, continued by
 * the monotonic clock. A step of the wall clock (NTP, `date -s`) neither prolongs nor shortens what
 * goes by it.
 */

/** Shown times are for people: they shall not tremble by what lies between two readings. */
const stepMs = 1000

export const steadyClock = {
  /** Whole milliseconds since the epoch, by the wall clock at the start. */
  now: (): number => Math.floor(performance.timeOrigin + performance.now()),
  /** By how much the wall clock is ahead: added to times that people read. */
  aheadMs: (): number => Math.round((Date.now() - steadyClock.now()) / stepMs) * stepMs
}

export const steadyNow = (): number => steadyClock.now()

/** For people: the time of the steady clock as the wall clock has it now. */
export const wallTime = (time: number): number => time + steadyClock.aheadMs()

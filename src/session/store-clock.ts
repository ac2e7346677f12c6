/**
 * The session store's time in this process: measured regularly, and continued by the monotonic
 * clock. All replicas judge life-times by it, so that a wrong or jumping wall clock neither ends
 * sessions early nor keeps them alive.
 */
import type { Duration } from '../config/schema/primitives.ts'

export interface StoreClock {
  /** Whole milliseconds since the epoch. */
  readonly now: () => number
  /** By how much the wall clock of this process is ahead of the store's. */
  readonly skewMs: () => number
  /** Asks the store now; a store that cannot answer changes nothing. */
  readonly measure: () => Promise<void>
  readonly close: () => void
}

interface Options {
  /** The store's own time, in milliseconds since the epoch. */
  readonly askTime: () => Promise<number>
  /**
   * Called when the wall clock begins to differ by more than `alarmMs`, and when it no longer does.
   */
  readonly onSkew: (skewMs: number, isSkewed: boolean) => void
  readonly everyMs?: Duration
  readonly wall?: () => number
  readonly ticks?: () => number
}

/** Above what NTP leaves between machines, far below any life-time. */
const alarmMs: Duration = 5000
/** A smaller difference than this is no news: answers take their time. */
const toleranceMs: Duration = 20

export function createStoreClock({
  askTime,
  onSkew,
  everyMs = 5000,
  wall = Date.now,
  ticks = () => performance.now()
}: Options): StoreClock {
  let offset = wall() - ticks()
  let isMeasured = false
  let isSkewed = false

  const now = () => Math.floor(ticks() + offset)
  const skewMs = () => (isMeasured ? wall() - now() : 0)

  async function measure(): Promise<void> {
    const sentAt = ticks()
    const time = await askTime().catch(() => undefined)
    if (time === undefined) return
    const receivedAt = ticks()
    // The store read its clock between sending and receipt: exact to half of the round trip.
    const measured = time - (sentAt + receivedAt) / 2
    const isNews = Math.abs(measured - offset) > (receivedAt - sentAt) / 2 + toleranceMs
    if (isNews || !isMeasured) offset = measured
    isMeasured = true
    judgeSkew()
  }

  function judgeSkew(): void {
    const skew = skewMs()
    // Back to normal only below half of it: otherwise a clock at the limit would alarm repeatedly.
    const isOver = Math.abs(skew) > (isSkewed ? alarmMs / 2 : alarmMs)
    if (isOver === isSkewed) return
    isSkewed = isOver
    onSkew(skew, isSkewed)
  }

  const timer = setInterval(() => {
    void measure()
  }, everyMs)
  timer.unref()
  return { now, skewMs, measure, close: () => clearInterval(timer) }
}

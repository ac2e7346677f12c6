/** Whether Redis is asked, or left alone for a moment: a hanging one must not cost each request its time-out. */

const pauseAfterFailureMs = 1000

/** Runs `shared`, or `local` where that fails, and for a second after a failure. */
export type Switch = <T>(shared: () => Promise<T>, local: () => Promise<T>) => Promise<T>

/** @param onAway told when it turns local, and when it is shared again */
export function createSwitch(
  onAway: (away: boolean) => void,
  now: () => number = () => performance.now()
): Switch {
  let pausedUntil = -Infinity
  let isAway = false
  const turn = (away: boolean) => {
    if (away !== isAway) onAway(away)
    isAway = away
  }
  return async (shared, local) => {
    if (now() < pausedUntil) return await local()
    try {
      const answer = await shared()
      turn(false)
      return answer
    } catch {
      pausedUntil = now() + pauseAfterFailureMs
      turn(true)
      return await local()
    }
  }
}

/** What Redis has to be told once it is back, such as what was given back while it was away. */
export interface Settlements {
  readonly add: (settlement: () => Promise<unknown>) => void
  /** Asks Redis once it was told what it missed. */
  readonly first: <T>(ask: () => Promise<T>) => Promise<T>
  readonly close: () => void
}

/** Bounded: an outage may last. */
const maxSettlements = 10_000
const settleEveryMs = 1000

export function createSettlements(choose: Switch): Settlements {
  let due: Array<() => Promise<unknown>> = []
  let settling: Promise<void> | undefined

  async function settleAll(): Promise<void> {
    const settlements = due
    due = []
    const results = await Promise.allSettled(settlements.map(async settle => await settle()))
    const failed = settlements.filter((_, index) => results[index]?.status === 'rejected')
    due.unshift(...failed)
    if (failed.length > 0) throw new Error('Redis is unavailable again')
  }

  async function first<T>(ask: () => Promise<T>): Promise<T> {
    if (due.length > 0)
      settling ??= settleAll().finally(() => {
        settling = undefined
      })
    if (settling !== undefined) await settling
    return await ask()
  }

  const tell = () => {
    if (due.length > 0)
      void choose(
        () => first(async () => {}),
        async () => {}
      )
  }
  const timer = setInterval(tell, settleEveryMs)
  timer.unref()
  return {
    add: settlement => {
      if (due.length >= maxSettlements) due.shift()
      due.push(settlement)
    },
    first,
    close: () => clearInterval(timer)
  }
}

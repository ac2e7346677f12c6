/** Whether Redis is asked, or left alone for a moment: a hanging one must not cost each request its time-out. */

const pauseAfterFailureMs = 1000

/** Runs `shared`, or `local` where that fails, and for a second after a failure. */
export type Switch = <T>(shared: () => Promise<T>, local: () => Promise<T>) => Promise<T>

/** @param onAway told when it turns local, and when it is shared again */
export function createSwitch (onAway: (away: boolean) => void, now: () => number = () => performance.now()): Switch {
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

/** Switches to local counting while Redis is away, until it answers again. */

/** A hanging Redis must not cost each request its timeout: it is not asked for so long. */
const pauseAfterFailureMs = 1000

/** Runs `shared`, or `local` where that fails, and for a second after a failure. */
export type Switch = <T>(shared: () => Promise<T>, local: () => Promise<T>) => Promise<T>

/** @param onAway called when it turns local, and when it is shared again */
export function createSwitch(
  onAway: (away: boolean) => void,
  now: () => number = () => performance.now()
): Switch {
  let pausedUntil = -Infinity
  let isAway = false
  const setAway = (away: boolean) => {
    if (away !== isAway) onAway(away)
    isAway = away
  }
  return async (shared, local) => {
    if (now() < pausedUntil) return await local()
    try {
      const result = await shared()
      setAway(false)
      return result
    } catch {
      pausedUntil = now() + pauseAfterFailureMs
      setAway(true)
      return await local()
    }
  }
}

/** Calls, such as refunds, that Redis missed while it was away. */
export interface Settlements {
  readonly add: (settlement: () => Promise<unknown>) => void
  /** Runs `ask` after Redis has received every missed call. */
  readonly first: <T>(ask: () => Promise<T>) => Promise<T>
  readonly close: () => void
}

/** Bounded, since an outage may last; the oldest is dropped. */
const maxSettlements = 10_000
const settleEveryMs = 1000

export function createSettlements(choose: Switch): Settlements {
  let due: Array<() => Promise<unknown>> = []
  let settling: Promise<void> | undefined
  /** Runs only while calls are due. */
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function settleAll(): Promise<void> {
    const settlements = due
    due = []
    const results = await Promise.allSettled(settlements.map(async settle => await settle()))
    const failed = settlements.filter((_, index) => results[index]?.status === 'rejected')
    due.unshift(...failed)
    if (failed.length > 0) throw new Error('Redis is unavailable again')
  }

  async function first<T>(ask: () => Promise<T>): Promise<T> {
    if (due.length > 0) {
      settling ??= settleAll().finally(() => {
        settling = undefined
      })
    }
    if (settling !== undefined) await settling
    return await ask()
  }

  function stop(): void {
    clearInterval(timer)
    timer = undefined
  }

  function settleOrStop(): void {
    if (due.length === 0) return settling === undefined ? stop() : undefined
    void choose(
      () => first(async () => {}),
      async () => {}
    )
  }

  return {
    add: settlement => {
      if (due.length >= maxSettlements) due.shift()
      due.push(settlement)
      if (!isClosed) timer ??= setInterval(settleOrStop, settleEveryMs).unref()
    },
    first,
    close: () => {
      isClosed = true
      stop()
    }
  }
}

export interface Fallback {
  /**
   * Runs `shared`, after the calls that Redis missed; after a failure, and for a second more,
   * `local`.
   */
  readonly run: Switch
  /** Keeps a call for Redis until it is back. */
  readonly settleLater: Settlements['add']
  readonly close: () => void
}

export interface FallbackOptions {
  /** Called when counting turns local, and when it is shared again. */
  readonly onAway: (away: boolean) => void
  readonly now?: (() => number) | undefined
}

export function createFallback({ onAway, now }: FallbackOptions): Fallback {
  const choose = createSwitch(onAway, now)
  const settlements = createSettlements(choose)
  return {
    run: (shared, local) => choose(() => settlements.first(shared), local),
    settleLater: settlements.add,
    close: settlements.close
  }
}

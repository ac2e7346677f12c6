/** The one way to go on while Redis is away: in this process, until Redis answers again. */

/** A hanging Redis must not cost each request its time-out: it is left alone for so long. */
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

/** Calls that Redis missed while it was away, such as a refund. */
export interface Settlements {
  readonly add: (settlement: () => Promise<unknown>) => void
  /** Runs `ask` once Redis has had every call that it missed. */
  readonly first: <T>(ask: () => Promise<T>) => Promise<T>
  readonly close: () => void
}

/** Bounded: an outage may last. The oldest gives way. */
const maxSettlements = 10_000
const settleEveryMs = 1000

export function createSettlements(choose: Switch): Settlements {
  let due: Array<() => Promise<unknown>> = []
  let settling: Promise<void> | undefined
  /** Runs only while something is due. */
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
  /** Runs `shared`, once Redis has had what it missed; where that fails, and for a second after it, `local`. */
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

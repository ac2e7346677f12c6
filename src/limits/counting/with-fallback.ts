/** Switches to local counting while Redis is away, until it answers again. */

/** A hanging Redis must not cost each request its timeout: it is not asked for so long. */
export const pauseAfterFailureMs = 1000

/** What Redis says of a key that holds something of another program. */
const ofForeignKeys = ['WRONGTYPE', 'value is not an integer']

function isOfForeignKey(error: unknown): error is Error {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return false
  return ofForeignKeys.some(words => error.message.includes(words))
}

/** Of keys that hold something of another program, while the others of a call were counted. */
export class ForeignKeyError extends Error {
  readonly keys: readonly string[]

  constructor(keys: readonly string[]) {
    super('WRONGTYPE: the key holds another kind of value')
    this.keys = keys
  }
}

/**
 * Runs `shared`, or `local` where that fails, and for a second after a failure; where only a key is
 * at fault, for this call.
 */
export type Switch = <T>(shared: () => Promise<T>, local: () => Promise<T>) => Promise<T>

interface SwitchOptions {
  /** Called when it turns local, and when it is shared again. */
  readonly onAway: (away: boolean) => void
  /** Called for each call that is local since something else stands under its key in Redis. */
  readonly onForeignKey?: ((error: Error) => void) | undefined
  readonly now?: (() => number) | undefined
}

export function createSwitch({
  onAway,
  onForeignKey = () => {},
  now = () => performance.now()
}: SwitchOptions): Switch {
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
    } catch (error) {
      if (isOfForeignKey(error)) {
        setAway(false)
        onForeignKey(error)
      } else {
        pausedUntil = now() + pauseAfterFailureMs
        setAway(true)
      }
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

/** Redis, or a part of a Cluster, cannot do it now; in scripts the code follows other words. */
const passingCodes = [
  'ASK',
  'BUSY',
  'CLUSTERDOWN',
  'LOADING',
  'MASTERDOWN',
  'MISCONF',
  'MOVED',
  'NOAUTH',
  'NOPERM',
  'NOREPLICAS',
  'NOSCRIPT',
  'OOM',
  'READONLY',
  'TRYAGAIN',
  'WRONGPASS'
]

/** Whether Redis answered that it will never do it, such as for a key of another type. */
function isRefusedForGood(error: unknown): error is Error {
  if (!(error instanceof Error) || error.name !== 'ReplyError') return false
  return !passingCodes.some(code => error.message.includes(code))
}

/** @param onDropped called for each missed call that Redis refuses for good */
export function createSettlements(
  choose: Switch,
  onDropped: (error: Error) => void = () => {}
): Settlements {
  let due: Array<() => Promise<unknown>> = []
  let settling: Promise<void> | undefined
  /** Runs only while calls are due. */
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  async function settleAll(): Promise<void> {
    const settlements = due
    due = []
    const results = await Promise.allSettled(settlements.map(async settle => await settle()))
    const failed: typeof due = []
    results.forEach((result, index) => {
      if (result.status === 'fulfilled') return
      // Kept, it would keep all others from Redis for good.
      if (isRefusedForGood(result.reason)) onDropped(result.reason)
      else failed.push(settlements[index] as (typeof due)[number])
    })
    due = [...failed, ...due].slice(-maxSettlements)
    if (failed.length > 0) throw new Error('Redis is unavailable again')
  }

  async function first<T>(ask: () => Promise<T>): Promise<T> {
    // More may be missed while Redis is told.
    while (due.length > 0 || settling !== undefined) {
      settling ??= settleAll().finally(() => {
        settling = undefined
      })
      await settling
    }
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

export interface FallbackOptions extends SwitchOptions {
  /** Called for each call kept for Redis that it refuses for good. */
  readonly onDropped?: ((error: Error) => void) | undefined
}

export function createFallback({ onDropped, ...options }: FallbackOptions): Fallback {
  const choose = createSwitch(options)
  const settlements = createSettlements(choose, onDropped)
  return {
    run: (shared, local) => choose(() => settlements.first(shared), local),
    settleLater: settlements.add,
    close: settlements.close
  }
}

/**
 * Sessions: who is signed in, since when, until when. Puts lookup, opening, use, lists and ends
 * together.
 */
import type { Duration } from '../config/schema/primitives.ts'
import { aheadOf, steadyNow } from '../steady-clock.ts'
import type { SessionTimes } from './describe.ts'
import { createCensus } from './census.ts'
import { createEnding, type EndCause, type Revoked } from './ending.ts'
import { type ForgottenEpoch, guardEpoch } from './epoch.ts'
import {
  type CachedRecord,
  createEvaluator,
  type Evaluation,
  type Live,
  withIdleEnd
} from './evaluate.ts'
import { createIdleClock, createTouches } from './idle-clock.ts'
import { createExpiries } from './expiries.ts'
import { createLists } from './lists.ts'
import { createEpochCheck, createLookup } from './lookup.ts'
import { createOpening, type LifeTimes, type SessionCap } from './opening.ts'
import { createRecordFormat } from './record-format.ts'
import { createRefresh } from './refresh.ts'
import { createRenewals } from './renewals.ts'
import { noReview, type Reviewer } from './review.ts'
import { createReviewWriter } from './review-writer.ts'
import type { Seal } from './seal.ts'
import { SessionCache } from './session-cache.ts'
import type { SessionStore } from './store.ts'

interface Options {
  readonly store: SessionStore
  readonly seal: Seal
  readonly lifeTimes: LifeTimes
  readonly perUser: SessionCap
  /** The longest that the end of a session can go unnoticed by another replica. */
  readonly maxStalenessMs: Duration
  /** Holds sessions against what their source says of their users now. */
  readonly reviewer?: Reviewer
  /**
   * The store's time: every replica evaluates sessions by the same. Without it the store is in
   * memory.
   */
  readonly now?: () => number
  /** Runs on whatever happens to the clock; `now` without it. */
  readonly ticks?: () => number
  /** Called when the idle clock could not be set; the request goes on. */
  readonly onTouchFailed?: (error: unknown) => void
  /** Called when the store has forgotten how often everyone's sessions were ended. */
  readonly onEpochForgotten?: (forgotten: ForgottenEpoch) => void
  readonly onOpened?: (source: string) => void
  /**
   * Called for sessions that were ended, or found over by their own time; not for those of
   * everyone, whose number is unknown.
   */
  readonly onEnded?: (cause: EndCause, count: number) => void
  /** Called for sessions that were ended, except by sign-outs, operators and their own time. */
  readonly onRevoked?: (revoked: Revoked) => void
}

export type { EndCause, Revoked } from './ending.ts'

export type { LifeTimes, NewSession } from './opening.ts'
export type Sessions = ReturnType<typeof createSessions>

/**
 * The sessions of a gateway. `secretId` is the cookie's value, of which the store only ever sees a
 * hash.
 */
export function createSessions(options: Options) {
  const { seal, lifeTimes, perUser, maxStalenessMs, reviewer = noReview } = options
  const { now = steadyNow, ticks = now, onTouchFailed = () => {} } = options
  const { onEpochForgotten = () => {}, onOpened = () => {} } = options
  const { onEnded = () => {}, onRevoked = () => {} } = options
  const store = guardEpoch(options.store, onEpochForgotten)
  const format = createRecordFormat(seal)
  const evaluator = createEvaluator(format, now, reviewer)
  const { parse } = evaluator
  const touchedAt = createTouches()
  const onChanged = (key: string) => touchedAt.delete(key)
  const cache = new SessionCache<CachedRecord>({ store, maxStalenessMs, ticks, parse, onChanged })
  const drop = (key: string) => cache.drop(key)
  const forget = (key: string) => {
    cache.drop(key)
    touchedAt.delete(key)
  }

  const { evaluateCurrent, readStored } = createEpochCheck({ store, cache, evaluator })
  const { use, extend, mayBeLater } = createIdleClock({
    store,
    touchedAt,
    drop,
    read: readStored,
    onSet: (key, idleEnd) => cache.update(key, record => withIdleEnd(record, idleEnd)),
    now,
    ticks,
    onFailed: onTouchFailed
  })
  const { endKeys, ...ending } = createEnding({ store, drop: forget, onEnded, onRevoked })
  const { settle, reviewOf } = createReviewWriter({
    ...evaluator,
    store,
    format,
    reviewer,
    endKeys,
    drop,
    onFailed: onTouchFailed
  })
  const noteExpiry = createExpiries(reason => onEnded(reason, 1))
  const stored = { store, cache, evaluator, evaluateCurrent }
  const { look, ...lists } = createLists({ store, parse, evaluate: evaluateCurrent })

  return {
    ...createLookup({ ...stored, settle, noteExpiry, mayBeLater }),
    ...createRenewals({ store, format, read: readStored, onWritten: drop, now }),
    ...ending,
    open: createOpening({
      store,
      format,
      lifeTimes,
      perUser,
      look,
      endKeys,
      drop,
      onOpened,
      now
    }),
    use,
    extend,
    mayBeLater,
    refresh: createRefresh({ store, read: readStored, extend, onWritten: forget }),
    /** The session as the store has it now, past the cache. @throws StoreUnavailable */
    reread: async ({ key }: Live): Promise<Evaluation> => (await readStored(key)).evaluation,
    reviewOf,
    forgetReviews: () => cache.clear(),
    ...lists,
    signedIn: store.signedIn.bind(store),
    countAlive: createCensus({ store, list: lists.list }),
    lock: store.lock.bind(store),
    fence: store.fence.bind(store),
    unlock: store.unlock.bind(store),
    now,
    ...createTimes(now),
    /** Whether the store tells of changes now; otherwise only asking it does. */
    hasNews: () => cache.isFresh,
    stats: cache.stats
  }
}

/** The time of a store outside is wall time. */
function createTimes(now: () => number) {
  return {
    /** The present for people: replicas with a store outside agree on it. */
    wallNow: (): number => now() + aheadOf(now),
    times: (): SessionTimes => ({ now: now(), aheadMs: aheadOf(now) }),
    /** A time of sessions, such as their end, for people and browsers. */
    toWall: (time: number): number => time + aheadOf(now)
  }
}

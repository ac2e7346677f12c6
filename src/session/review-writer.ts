/** Writes into the store what has become of users: their sessions end, or get other roles. */
import { isDeepStrictEqual } from 'node:util'
import type { createEvaluator, CachedRecord, CachedSession, Evaluation } from './evaluate.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import type { EndReason, Session } from './record.ts'
import type { RecordFormat } from './record-format.ts'
import type { Reviewer } from './review.ts'
import type { SessionStore } from './store.ts'

/**
 * How many sessions of a user were closed, and how many have other roles or another profile now.
 */
interface Reviewed {
  readonly closed: number
  readonly renewed: number
}

/** `noted`: the user is as before, and the session says now what the file says of the user. */
type Written = 'closed' | 'renewed' | 'noted' | undefined

const isSameIdentity = (a: Session, b: Session) => isDeepStrictEqual(a.identity, b.identity)

interface Options extends ReturnType<typeof createEvaluator> {
  readonly store: SessionStore
  readonly format: RecordFormat
  readonly reviewer: Reviewer
  /** @returns how many were alive */
  readonly endKeys: (keys: readonly string[], reason: EndReason) => Promise<number>
  readonly drop: (key: string) => void
  /** Called when the store could not be written. */
  readonly onFailed: (error: unknown) => void
}

export function createReviewWriter(options: Options) {
  const { store, format, reviewer, parse, evaluate, endKeys, drop, onFailed } = options

  /** @throws StoreUnavailable */
  async function write(record: CachedSession): Promise<Written> {
    const {
      live: { key },
      sealed,
      stored,
      epoch,
      review
    } = record
    if (review === 'unchanged' || !(await reviewer.isLatest(stored.source))) return undefined
    if (review === 'refused') return (await endKeys([key], 'revoked')) === 1 ? 'closed' : undefined
    const renewed = format.close(key, { session: review.renewed, epoch })
    const isWritten = await store.replace(key, sealed, renewed)
    drop(key)
    if (!isWritten) return undefined
    return isSameIdentity(stored, review.renewed) ? 'noted' : 'renewed'
  }

  /** What becomes of a session that somebody uses, once the store has been told of it. */
  async function settle(
    record: CachedRecord | undefined,
    evaluation: Evaluation
  ): Promise<Evaluation> {
    if (record === undefined || !('live' in record) || record.review === 'unchanged') {
      return evaluation
    }
    // The session is refused, or its roles are narrowed, whether the store can be told or not.
    const done = await write(record).catch(onFailed)
    const isWritten = done === 'renewed' || done === 'noted'
    if (!isWritten || typeof record.review !== 'object') return evaluation
    return { live: { ...record.live, session: record.review.renewed } }
  }

  /**
   * Holds all sessions of a user against what their source says now, past the cache.
   * @throws StoreUnavailable
   */
  async function reviewOf(user: IdentityKey): Promise<Reviewed> {
    const [keys, epoch] = await Promise.all([store.sessionKeysOf(user), store.epoch()])
    const done = await Promise.all(
      keys.map(async key => {
        const stored = await store.read(key)
        const record = stored && parse(key, stored)
        if (record === undefined || !('live' in record)) return undefined
        const isTheirs = identityKey(record.stored) === user
        const isAlive = 'live' in evaluate({ ...record, review: 'unchanged' }, epoch)
        return isTheirs && isAlive ? await write(record) : undefined
      })
    )
    const count = (what: string) => done.filter(each => each === what).length
    return { closed: count('closed'), renewed: count('renewed') }
  }

  return { settle, reviewOf }
}

/** Writes the results of reviews into the store: sessions end, or get new roles. */
import type { End } from './ending.ts'
import type { createEvaluator, CachedRecord, CachedSession, Evaluation } from './evaluate.ts'
import type { IdentityKey } from './identity-key.ts'
import type { EndReason } from './record.ts'
import type { RecordFormat } from './record-format.ts'
import type { Reviewer } from './review.ts'
import type { SessionStore } from './store.ts'

/**
 * The number of a user's sessions that were closed, and that got other roles or another profile.
 */
interface Reviewed {
  readonly closed: number
  readonly renewed: number
}

type Written = 'closed' | 'renewed' | undefined

interface Options extends ReturnType<typeof createEvaluator> {
  readonly store: SessionStore
  readonly format: RecordFormat
  readonly reviewer: Reviewer
  /** @returns how many were alive */
  readonly endKeys: (keys: readonly string[], reason: EndReason, end: End) => Promise<number>
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
    if (review === 'refused') {
      const revoker = { user: stored, by: 'users-file' } as const
      return (await endKeys([key], 'revoked', { revoker })) === 1 ? 'closed' : undefined
    }
    const renewed = format.close(key, { session: review.renewed, epoch })
    const isWritten = await store.replace(key, sealed, renewed)
    drop(key)
    return isWritten ? 'renewed' : undefined
  }

  /** Writes the review of a session that is being used. @returns its evaluation after that */
  async function settle(
    record: CachedRecord | undefined,
    evaluation: Evaluation
  ): Promise<Evaluation> {
    if (record === undefined || !('live' in record) || record.review === 'unchanged') {
      return evaluation
    }
    // The session is refused or narrowed even where the store cannot be written.
    const done = await write(record).catch(onFailed)
    if (done !== 'renewed' || typeof record.review !== 'object') return evaluation
    return { live: { ...record.live, session: record.review.renewed } }
  }

  /**
   * Reviews all sessions of a user, past the cache.
   * @throws StoreUnavailable
   */
  async function reviewOf(user: IdentityKey): Promise<Reviewed> {
    const [keys, epoch] = await Promise.all([store.sessionKeysOf(user), store.epoch()])
    const done = await Promise.all(
      keys.map(async key => {
        const stored = await store.read(key)
        const record = stored && parse(key, stored)
        if (record === undefined || !('live' in record)) return undefined
        const isAlive = 'live' in evaluate({ ...record, review: 'unchanged' }, epoch)
        return isAlive ? await write(record) : undefined
      })
    )
    const count = (what: string) => done.filter(each => each === what).length
    return { closed: count('closed'), renewed: count('renewed') }
  }

  return { settle, reviewOf }
}

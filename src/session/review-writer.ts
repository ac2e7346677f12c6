/** Writes into the store what has become of users: their sessions end, or get other roles. */
import { isDeepStrictEqual } from 'node:util'
import type { createEvaluator, CachedRecord, CachedSession, Evaluation } from './evaluate.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import type { EndReason, Session } from './record.ts'
import type { RecordFormat } from './record-format.ts'
import type { Reviewer } from './review.ts'
import type { SessionStore } from './store.ts'

/** How many sessions of a user were closed, and how many have other roles or another profile now. */
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
  /** Told when the store could not be. */
  readonly onFailed: (error: unknown) => void
}

export function createReviewWriter(options: Options) {
  const { store, format, reviewer, parse, evaluate, endKeys, drop, onFailed } = options

  /** @throws StoreUnavailable */
  async function write(known: CachedSession): Promise<Written> {
    const {
      live: { key },
      sealed,
      stored,
      epoch,
      review
    } = known
    if (review === 'unchanged' || !(await reviewer.isLatest(stored.source))) return undefined
    if (review === 'refused') return (await endKeys([key], 'revoked')) === 1 ? 'closed' : undefined
    const record = format.close(key, { session: review.renewed, epoch })
    const isWritten = await store.replace(key, sealed, record)
    drop(key)
    if (!isWritten) return undefined
    return isSameIdentity(stored, review.renewed) ? 'noted' : 'renewed'
  }

  /** What is known of a session that somebody uses, once the store has been told of it. */
  async function settle(
    known: CachedRecord | undefined,
    resolved: Evaluation
  ): Promise<Evaluation> {
    if (known === undefined || !('live' in known) || known.review === 'unchanged') return resolved
    // The session is refused, or its roles are narrowed, whether the store can be told or not.
    const done = await write(known).catch(onFailed)
    const isWritten = done === 'renewed' || done === 'noted'
    if (!isWritten || typeof known.review !== 'object') return resolved
    return { live: { ...known.live, session: known.review.renewed } }
  }

  /**
   * Holds all sessions of a user against what their source says now, past whatever is remembered.
   * @throws StoreUnavailable
   */
  async function reviewOf(user: IdentityKey): Promise<Reviewed> {
    const [keys, epoch] = await Promise.all([store.sessionKeysOf(user), store.epoch()])
    const done = await Promise.all(
      keys.map(async key => {
        const found = await store.read(key)
        const known = found && parse(key, found)
        if (known === undefined || !('live' in known)) return undefined
        const isTheirs = identityKey(known.stored) === user
        const isAlive = 'live' in evaluate({ ...known, review: 'unchanged' }, epoch)
        return isTheirs && isAlive ? await write(known) : undefined
      })
    )
    const count = (what: string) => done.filter(each => each === what).length
    return { closed: count('closed'), renewed: count('renewed') }
  }

  return { settle, reviewOf }
}

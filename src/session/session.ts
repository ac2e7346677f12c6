/** Sessions: who is signed in, since when, until when. Opens, resolves, lists and closes them over a store. */
import type { Duration } from '../config/schema/primitives.ts'
import { GatewayError } from '../errors.ts'
import type { Listed } from './describe.ts'
import { type ForgottenEpoch, guardEpoch } from './epoch.ts'
import {
  createEvaluator,
  tombstoneMs,
  type CachedRecord,
  type Live,
  type Evaluation
} from './evaluate.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import { type EndReason, keyOf, publicId, type Session, signedInOf } from './record.ts'
import { createRecordFormat, newestRecordVersion, type RecordVersion } from './record-format.ts'
import { createLists } from './lists.ts'
import { recentlyUsed } from './recently-used.ts'
import { createSessionCache } from './session-cache.ts'
import { createRenewals } from './renewals.ts'
import { noReview, type Reviewer } from './review.ts'
import { createReviewWriter } from './review-writer.ts'
import { countEnded } from './rounded-id.ts'
import type { Seal } from './seal.ts'
import { tombstoneMark, type IndexEntry, type SessionStore } from './store.ts'

export interface LifeTimes {
  readonly idle: Duration
  readonly absolute: Duration
  readonly remembered: { readonly idle?: Duration; readonly absolute?: Duration }
}

/** Of a user's sessions one, by its public id, or all but one. */
interface Which {
  readonly only?: string
  readonly except?: string
}

export type NewSession = Pick<
  Session,
  'identity' | 'source' | 'credential' | 'remembered' | 'address' | 'agent' | 'file'
>

interface Options {
  readonly store: SessionStore
  readonly seal: Seal
  readonly lifeTimes: LifeTimes
  /** How many sessions a user may have, and what a further sign-in does. */
  readonly perUser: { readonly max: number; readonly over: 'evict-oldest' | 'refuse' }
  /** The longest that the end of a session can go unnoticed by another replica. */
  readonly maxStalenessMs: Duration
  /** The format in which records are written; the older one without it. */
  readonly records?: RecordVersion
  /** Holds sessions against what their source says of their users now. */
  readonly reviewer?: Reviewer
  /** The store's time: every replica judges by the same. */
  readonly now?: () => number
  /** Runs on whatever happens to the clock; `now` without it. */
  readonly ticks?: () => number
  /** Told when the idle clock could not be set; the request goes on. */
  readonly onTouchFailed?: (error: unknown) => void
  /** Told when the store has forgotten how often everyone's sessions were ended. */
  readonly onEpochForgotten?: (forgotten: ForgottenEpoch) => void
  /** Told how many sessions were ended because a former version had rounded their users' ids. */
  readonly onRoundedEnded?: (count: number) => void
}

export type Sessions = ReturnType<typeof createSessions>

const touchAtMostEveryMs: Duration = 60_000
const maxHashes = 10_000
const maxTouches = 50_000

/** The sessions of a gateway. `secretId` is the cookie's value, of which the store only ever sees a hash. */
export function createSessions({
  store: unguarded,
  seal,
  lifeTimes,
  perUser,
  maxStalenessMs,
  records = 1,
  reviewer = noReview,
  now = Date.now,
  ticks = now,
  onTouchFailed = () => {},
  onEpochForgotten = () => {},
  onRoundedEnded = () => {}
}: Options) {
  const store = guardEpoch(unguarded, onEpochForgotten)
  const format = createRecordFormat(seal, records)
  const { parse, evaluate } = createEvaluator(format, now, reviewer)
  const cache = createSessionCache<CachedRecord>({ store, maxStalenessMs, ticks, parse })
  const endRounded = countEnded(endKeys, onRoundedEnded)
  /** The hashes of ids that were alive: only arithmetic that need not be done again, and no word on whether they still are. */
  const hashes = recentlyUsed<string>(maxHashes)
  /** When this process last set a session's idle clock: not part of what is remembered, which each touch makes forget. */
  const touchedAt = recentlyUsed<number>(maxTouches)

  const { renew, withHeld } = createRenewals({
    store,
    format,
    read: readStored,
    onWritten: cache.drop,
    now
  })

  async function readStored(key: string) {
    const [found, epoch] = await Promise.all([store.read(key), store.epoch()])
    const known = found && parse(key, found)
    return { known, resolved: await evaluateCurrent(known, epoch) }
  }

  const { look, inspect } = createLists({ store, parse, evaluate: evaluateCurrent })
  const { settle, reviewOf } = createReviewWriter({
    store,
    format,
    reviewer,
    parse,
    evaluate,
    endKeys,
    drop: cache.drop,
    onFailed: onTouchFailed
  })

  /** @throws StoreUnavailable; GatewayError `login.too-many` where another session would be one too many */
  async function open(secretId: string, given: NewSession): Promise<Live> {
    const createdAt = now()
    const absolute =
      (given.remembered ? lifeTimes.remembered.absolute : undefined) ?? lifeTimes.absolute
    const idleMs = Math.min(
      (given.remembered ? lifeTimes.remembered.idle : undefined) ?? lifeTimes.idle,
      absolute
    )
    const key = keyOf(secretId)
    const session: Session = {
      ...given,
      id: publicId(key),
      createdAt,
      absoluteEnd: createdAt + absolute,
      idleMs,
      recordVersion: newestRecordVersion
    }
    // As the store has it now: with what is remembered, a session could be over before it begins.
    const epoch = await store.epoch()
    await store.create(key, format.close(key, { session, epoch }), idleMs + tombstoneMs)
    // Noted afterwards: a note without a session would be thrown away by whoever looks.
    const user = identityKey(session)
    const [notes] = await Promise.all([
      store.indexSession(user, key, session.absoluteEnd),
      store.addSignedIn(signedInOf(session), session.absoluteEnd)
    ]).catch(async (error: unknown) => {
      // Nobody could find it again to end it.
      await endKeys([key], 'revoked').catch(() => {})
      throw error
    })
    cache.drop(key)
    await holdToCap(key, user, notes)
    return { session, key, idleEnd: createdAt + idleMs }
  }

  /**
   * After the fact, by the order in which the store noted the sessions: each sign-in sees all that
   * came before it, so that of several at once, at whatever replicas, not one too many stays.
   */
  async function holdToCap(
    key: string,
    user: IdentityKey,
    notes: readonly IndexEntry[]
  ): Promise<void> {
    // Each live session has a note.
    if (notes.length <= perUser.max) return
    const { entries } = await look(user, notes)
    const place = entries.findIndex(each => each.key === key)
    // Somebody has ended it since: it takes no place. Later sign-ins hold to the cap themselves.
    if (place === -1) return
    const older = entries.slice(0, place)
    const over = older.length + 1 - perUser.max
    if (over <= 0) return
    if (perUser.over === 'evict-oldest') {
      await endKeys(
        older.slice(0, over).map(each => each.key),
        'replaced'
      )
    } else {
      await endKeys([key], 'revoked')
      throw new GatewayError('login.too-many')
    }
  }

  /**
   * The session behind an id, or why there is none. Looking does not keep it from going idle.
   * @throws StoreUnavailable
   */
  async function get(secretId: string): Promise<Evaluation> {
    const key = keyOf(secretId)
    const [known, epoch] = await Promise.all([cache.read(key), cache.epoch()])
    if (known !== undefined && 'isRounded' in known) await endRounded([key], 'revoked')
    const resolved = await evaluateCurrent(known, epoch)
    if (known === undefined || !('live' in known)) return resolved
    if ('live' in resolved) return await settle(known, resolved)
    // What was remembered says that it is over: nobody is turned away before the store has said so itself.
    cache.drop(key)
    const fresh = await cache.read(key)
    return await settle(fresh, await evaluateCurrent(fresh, await store.epoch()))
  }

  /** Asks the store where a session is ahead of the epoch. @throws StoreUnavailable */
  async function evaluateCurrent(
    known: CachedRecord | undefined,
    epoch: number
  ): Promise<Evaluation> {
    const isAhead = known !== undefined && 'live' in known && known.epoch > epoch
    if (!isAhead) return evaluate(known, epoch)
    cache.dropEpoch()
    return evaluate(known, await store.epochAtLeast(known.epoch))
  }

  /** What `resolve` would say, where this process knows it without asking. */
  function getCached(secretId: string): Live | undefined {
    const hashed = hashes.get(secretId)
    const key = hashed ?? keyOf(secretId)
    const known = cache.getCached(key)
    if (known === undefined) return undefined
    const resolved = evaluate(known.value, known.epoch)
    if (!('live' in resolved)) return undefined
    if (hashed === undefined) hashes.set(secretId, key)
    return resolved.live
  }

  /**
   * Notes that a session is used: sets its idle clock anew, at the cost of one write a minute at most.
   * The idle clock runs on beyond the absolute end, which is judged apart: it tells the last use, and
   * a session that is used up to its absolute end must not be called idle before.
   * @returns when it ends now unless it is used
   */
  function use({ session, key, idleEnd }: Live): number {
    const full = now() + session.idleMs
    const every = Math.min(touchAtMostEveryMs, session.idleMs / 4)
    const isTouched = ticks() - (touchedAt.get(key) ?? -Infinity) < every
    if (full - idleEnd < every || isTouched) return idleEnd
    touchedAt.set(key, ticks())
    store.touch(key, session.idleMs + tombstoneMs, tombstoneMs).catch(onTouchFailed)
    return full
  }

  /** Sets the idle clock anew now. @throws StoreUnavailable */
  async function extend({ session, key }: Live): Promise<number> {
    await store.touch(key, session.idleMs + tombstoneMs, tombstoneMs)
    cache.drop(key)
    touchedAt.set(key, ticks())
    return now() + session.idleMs
  }

  /**
   * Ends a session for good; one that is not there stays so.
   * @returns whether it was alive
   * @throws StoreUnavailable
   */
  async function close(secretId: string, reason: EndReason): Promise<boolean> {
    return (await endKeys([keyOf(secretId)], reason)) === 1
  }

  async function endKeys(keys: readonly string[], reason: EndReason): Promise<number> {
    const ended = await Promise.all(
      keys.map(async key => {
        const did = await store.end(key, tombstoneMark + reason, tombstoneMs)
        cache.drop(key)
        touchedAt.delete(key)
        return did
      })
    )
    return ended.filter(Boolean).length
  }

  /** @throws StoreUnavailable */
  const list = async (user: IdentityKey): Promise<Listed[]> => (await inspect(user)).listed

  /**
   * Ends sessions of a user: one by its public id, all but one, or all.
   * @returns how many were alive
   * @throws StoreUnavailable
   */
  async function closeOf(user: IdentityKey, { only, except }: Which = {}): Promise<number> {
    const keys = (await store.sessionKeysOf(user)).filter(
      key =>
        (only === undefined || publicId(key) === only) &&
        (except === undefined || publicId(key) !== except)
    )
    const isOfAnother = await Promise.all(keys.map(async key => await isSurelyOfAnother(key, user)))
    const closed = await endKeys(
      keys.filter((_, index) => isOfAnother[index] === false),
      'revoked'
    )
    // What an earlier attempt ended, and answered 503, may have no note any more.
    if (closed === 0) await store.confirmEnds()
    return closed
  }

  /** What cannot be read may be the user's, and is closed with the rest. */
  async function isSurelyOfAnother(key: string, user: IdentityKey): Promise<boolean> {
    const found = await store.read(key)
    const known = found && parse(key, found)
    return known !== undefined && 'live' in known && identityKey(known.live.session) !== user
  }

  /** Ends all sessions of everyone. @throws StoreUnavailable */
  const closeAll = async (): Promise<void> => {
    await store.bumpEpoch()
  }

  /** The session as the store has it now, past whatever is remembered. @throws StoreUnavailable */
  const reread = async ({ key }: Live): Promise<Evaluation> => (await readStored(key)).resolved

  /** Ends a live session. @throws StoreUnavailable */
  const end = async ({ key }: Live, reason: EndReason): Promise<boolean> =>
    (await endKeys([key], reason)) === 1

  return {
    open,
    getCached,
    get,
    reread,
    reviewOf,
    forgetReviews: cache.forgetAll,
    signedIn: store.signedIn.bind(store),
    use,
    extend,
    close,
    end,
    inspect,
    list,
    closeOf,
    closeAll,
    renew,
    withHeld,
    now,
    lock: store.lock.bind(store),
    fence: store.fence.bind(store),
    unlock: store.unlock.bind(store),
    stats: cache.stats
  }
}

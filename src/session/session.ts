/** Sessions: who is signed in, since when, until when. Opens, resolves, lists and closes them over a store. */
import type { Duration } from '../config/primitives.ts'
import { GatewayError } from '../errors.ts'
import type { Listed } from './describe.ts'
import { createJudge, epitaphMs, type Known, type Live, type Resolved } from './judge.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import { type Credential, type EndReason, keyOf, publicId, type Session } from './record.ts'
import { createRecordFormat, newestRecordVersion, type RecordVersion } from './record-format.ts'
import { createRemembered } from './remembered.ts'
import type { Seal } from './seal.ts'
import { epitaphMark, type SessionStore } from './store.ts'

export interface LifeTimes {
  readonly idle: Duration
  readonly absolute: Duration
  readonly remembered: { readonly idle?: Duration, readonly absolute?: Duration }
}

/** Of a user's sessions one, by its public id, or all but one. */
interface Which {
  readonly only?: string
  readonly except?: string
}

export type NewSession = Pick<Session, 'identity' | 'source' | 'credential' | 'remembered' | 'address' | 'agent'>

interface Options {
  readonly store: SessionStore
  readonly seal: Seal
  readonly lifeTimes: LifeTimes
  /** How many sessions a user may have, and what a further sign-in does. */
  readonly perUser: { readonly max: number, readonly over: 'evict-oldest' | 'refuse' }
  /** The longest that the end of a session can go unnoticed by another replica. */
  readonly boundMs: Duration
  /** The format in which records are written; the older one without it. */
  readonly records?: RecordVersion
  readonly now?: () => number
  /** Told when the idle clock could not be set; the request goes on. */
  readonly onTouchFailed?: (error: unknown) => void
}

export type Sessions = ReturnType<typeof createSessions>

const touchAtMostEveryMs: Duration = 60_000
const maxHashes = 10_000

/** The sessions of a gateway. `secretId` is the cookie's value, of which the store only ever sees a hash. */
export function createSessions ({
  store,
  seal,
  lifeTimes,
  perUser,
  boundMs,
  records = 1,
  now = Date.now,
  onTouchFailed = () => {}
}: Options) {
  const format = createRecordFormat(seal, records)
  const { parse, judge } = createJudge(format, now)
  const remembered = createRemembered<Known>({ store, boundMs, now, parse: (key, found) => parse(key, found) })
  /** The hashes of ids that were alive: only arithmetic that need not be done again, and no word on whether they still are. */
  const hashes = new Map<string, string>()
  /** When this process last set a session's idle clock: not part of what is remembered, which each touch makes forget. */
  const touchedAt = new Map<string, number>()

  /** @throws StoreUnavailable; GatewayError `login.too-many` where another session would be one too many */
  async function open (secretId: string, given: NewSession): Promise<Live> {
    const createdAt = now()
    const absolute = (given.remembered ? lifeTimes.remembered.absolute : undefined) ?? lifeTimes.absolute
    const idleMs = Math.min((given.remembered ? lifeTimes.remembered.idle : undefined) ?? lifeTimes.idle, absolute)
    const key = keyOf(secretId)
    const session: Session = {
      ...given,
      id: publicId(key),
      createdAt,
      absoluteEnd: createdAt + absolute,
      idleMs,
      recordVersion: newestRecordVersion
    }
    const epoch = await remembered.epoch()
    await store.create(key, format.close(key, { session, epoch }), idleMs + epitaphMs)
    // Noted afterwards: a note without a session is taken for one whose session is over, and thrown away by whoever looks.
    const user = identityKey(session)
    await store.note(user, key, session.absoluteEnd).catch(async (error: unknown) => {
      // Nobody could find it again to end it.
      await endKeys([key], 'revoked').catch(() => {})
      throw error
    })
    remembered.drop(key)
    await holdToCap(key, user)
    return { session, key, idleEnd: createdAt + idleMs }
  }

  /** After the fact, so that of several sign-ins at once not one too many stays. */
  async function holdToCap (key: string, user: IdentityKey): Promise<void> {
    const listed = await alive(user)
    const over = listed.length - perUser.max
    if (over <= 0) return
    if (perUser.over === 'evict-oldest') return void await endKeys(listed.slice(0, over).map(each => each.key).filter(each => each !== key), 'replaced')
    if (listed.slice(perUser.max).some(each => each.key === key)) {
      await endKeys([key], 'revoked')
      throw new GatewayError('login.too-many')
    }
  }

  /**
   * The session behind an id, or why there is none. Looking does not keep it from going idle.
   * @throws StoreUnavailable
   */
  async function resolve (secretId: string): Promise<Resolved> {
    const key = keyOf(secretId)
    const [known, epoch] = await Promise.all([remembered.read(key), remembered.epoch()])
    const resolved = judge(known, epoch)
    if ('live' in resolved || known === undefined || !('live' in known)) return resolved
    // What was remembered says that it is over: nobody is turned away before the store has said so itself.
    remembered.drop(key)
    return judge(await remembered.read(key), await store.epoch())
  }

  /** What `resolve` would say, where this process knows it without asking. */
  function peek (secretId: string): Live | undefined {
    const hashed = hashes.get(secretId)
    const key = hashed ?? keyOf(secretId)
    const known = remembered.peek(key)
    if (known === undefined) return undefined
    const resolved = judge(known.value, known.epoch)
    if (!('live' in resolved)) return undefined
    if (hashed === undefined) {
      if (hashes.size >= maxHashes) hashes.clear()
      hashes.set(secretId, key)
    }
    return resolved.live
  }

  /**
   * Notes that a session is used: sets its idle clock anew, at the cost of one write a minute at most.
   * @returns when it ends now unless it is used
   */
  function use ({ session, key, idleEnd }: Live): number {
    const time = now()
    const full = Math.min(session.idleMs, session.absoluteEnd - time)
    const every = Math.min(touchAtMostEveryMs, session.idleMs / 4)
    if (full - (idleEnd - time) < every || time - (touchedAt.get(key) ?? 0) < every) return idleEnd
    if (touchedAt.size >= 50_000) touchedAt.clear()
    touchedAt.set(key, time)
    store.touch(key, full + epitaphMs, epitaphMs).catch(onTouchFailed)
    return time + full
  }

  /** Sets the idle clock anew now. @throws StoreUnavailable */
  async function extend ({ session, key }: Live): Promise<number> {
    const time = now()
    const full = Math.min(session.idleMs, session.absoluteEnd - time)
    await store.touch(key, full + epitaphMs, epitaphMs)
    remembered.drop(key)
    touchedAt.set(key, time)
    return time + full
  }

  /**
   * Ends a session for good; one that is not there stays so.
   * @returns whether it was alive
   * @throws StoreUnavailable
   */
  async function close (secretId: string, reason: EndReason): Promise<boolean> {
    return await endKeys([keyOf(secretId)], reason) === 1
  }

  async function endKeys (keys: readonly string[], reason: EndReason): Promise<number> {
    const ended = await Promise.all(keys.map(async key => {
      const did = await store.end(key, epitaphMark + reason, epitaphMs)
      remembered.drop(key)
      touchedAt.delete(key)
      return did
    }))
    return ended.filter(Boolean).length
  }

  /** The live sessions of a user, oldest first. Asks the store itself, past whatever is remembered. */
  async function alive (user: IdentityKey): Promise<Array<Listed & { readonly key: string }>> {
    const [keys, epoch] = await Promise.all([store.keysOf(user), store.epoch()])
    const judged = await Promise.all(keys.map(async key => {
      const found = await store.read(key)
      // Only what the store no longer has is surely over: what cannot be read may live on elsewhere.
      const isGone = found === undefined || found.record.startsWith(epitaphMark)
      return { key, isGone, resolved: judge(found && parse(key, found), epoch) }
    }))
    const gone = judged.filter(({ isGone }) => isGone).map(({ key }) => key)
    if (gone.length > 0) await store.forget(user, gone)
    return judged
      .flatMap(({ key, resolved }) => {
        if (!('live' in resolved) || identityKey(resolved.live.session) !== user) return []
        const { session, idleEnd } = resolved.live
        return [{ key, session, idleEnd, lastUsedAt: idleEnd - session.idleMs }]
      })
      .toSorted((a, b) => a.session.createdAt - b.session.createdAt || (a.key < b.key ? -1 : 1))
  }

  /** @throws StoreUnavailable */
  async function list (user: IdentityKey): Promise<Listed[]> {
    return await alive(user)
  }

  /**
   * Ends sessions of a user: one by its public id, all but one, or all.
   * @returns how many were alive
   * @throws StoreUnavailable
   */
  async function closeOf (user: IdentityKey, { only, except }: Which = {}): Promise<number> {
    const keys = (await store.keysOf(user)).filter(key => (only === undefined || publicId(key) === only) && (except === undefined || publicId(key) !== except))
    const isOfAnother = await Promise.all(keys.map(async key => await isSurelyOfAnother(key, user)))
    return await endKeys(keys.filter((_, index) => isOfAnother[index] === false), 'revoked')
  }

  /** What cannot be read may be the user's, and is closed with the rest. */
  async function isSurelyOfAnother (key: string, user: IdentityKey): Promise<boolean> {
    const found = await store.read(key)
    const known = found && parse(key, found)
    return known !== undefined && 'live' in known && identityKey(known.live.session) !== user
  }

  /** Ends all sessions of everyone. @throws StoreUnavailable */
  const closeAll = async (): Promise<void> => { await store.raiseEpoch() }

  /**
   * Puts another credential into a session, unless it was closed or changed meanwhile.
   * @returns the session as it is now
   */
  async function renew (live: Live, credential: Credential): Promise<Live> {
    const found = await store.read(live.key)
    const known = found && parse(live.key, found)
    if (known === undefined || !('live' in known)) return live
    const session = { ...known.live.session, credential }
    const sealed = format.close(live.key, { session, epoch: known.epoch })
    await store.replace(live.key, known.sealed, sealed)
    remembered.drop(live.key)
    return { ...live, session }
  }

  /** The session as the store has it now, past whatever is remembered. @throws StoreUnavailable */
  async function reread ({ key }: Live): Promise<Resolved> {
    const [found, epoch] = await Promise.all([store.read(key), store.epoch()])
    return judge(found && parse(key, found), epoch)
  }

  /** Ends a live session. @throws StoreUnavailable */
  const end = async ({ key }: Live, reason: EndReason): Promise<boolean> => await endKeys([key], reason) === 1

  return { open, peek, resolve, reread, use, extend, close, end, list, closeOf, closeAll, renew, lock: store.lock.bind(store), unlock: store.unlock.bind(store), stats: remembered.stats }
}

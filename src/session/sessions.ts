import type { GatewayConfig } from '../config/schema/gateway.ts'
import { RecentlyUsed } from '../bounded-map.ts'
import type { Duration } from '../config/schema/primitives.ts'
import { GatewayError } from '../errors/errors.ts'
import { steadyNow } from '../steady-clock.ts'
import { Credentials } from './credentials.ts'
import { addToProvider } from './provider-sessions.ts'
import type { Seal } from './seal.ts'
import type { SessionStore, Stored } from './store.ts'
import {
  type End,
  type EndReason,
  type Evaluation,
  keyOf,
  type Live,
  type NewSession,
  type Opened,
  publicId,
  type Revoked,
  type Session,
  type SignedIn,
  signedInOf,
  type UserId
} from './types.ts'

interface Options {
  readonly store: SessionStore
  readonly seal: Seal
  readonly config: Pick<GatewayConfig['session'], 'idle' | 'absolute' | 'remembered' | 'perUser'>
  /** The session as its users file has it now; undefined where that refuses the user. */
  readonly review?: (session: Session) => Session | undefined
  /** For sessions that were ended, except by sign-outs, operators and their own time. */
  readonly onRevoked?: (revoked: Revoked) => void
}

const touchAtMostEveryMs: Duration = 60_000
const retryMs: Duration = 1000
const maxCached = 50_000

/** Use within this time of a write is not written again. */
const touchEveryMs = ({ idleMs }: Session) => Math.min(touchAtMostEveryMs, idleMs / 4)

/** A `secretId` is the value of a cookie. Async methods each @throws StoreUnavailable */
export class Sessions {
  readonly #options: Options
  readonly store: SessionStore
  /** Live ones: requests need no round trip while the store announces every change. */
  readonly #cache = new RecentlyUsed<Live>(maxCached)
  /** The latest read of each key, until the record changes: then its result is not kept. */
  readonly #reading = new Map<string, Promise<Evaluation>>()
  readonly credentials: Credentials

  constructor(options: Options) {
    this.#options = options
    this.store = options.store
    this.store.follow({ onChanged: key => this.#drop(key), onReset: () => this.forget() })
    this.credentials = new Credentials(this)
  }

  /** As the store has it now. It does not count as use. */
  async read(key: string): Promise<Evaluation> {
    const reading = this.#evaluate(key)
    this.#reading.set(key, reading)
    const isLatest = () => this.#reading.get(key) === reading
    try {
      const evaluation = await reading
      if (!isLatest() || !this.store.isFollowed()) return evaluation
      if ('live' in evaluation) this.#cache.set(key, evaluation.live)
      else this.#cache.delete(key)
      return evaluation
    } finally {
      if (isLatest()) this.#reading.delete(key)
    }
  }

  async #evaluate(key: string): Promise<Evaluation> {
    const { review } = this.#options
    const stored = await this.store.read(key)
    if (stored === undefined) return { ended: 'unknown' }
    if ('ended' in stored) return stored
    const opened = this.#opened(key, stored.sealed)
    if (opened === undefined) return { ended: 'unknown' }
    if (stored.absoluteMs <= 0) return { ended: 'absolute' }
    if (stored.idleMs <= 0) return { ended: 'idle' }
    const session = review === undefined ? opened : review(opened)
    if (session === undefined) return { ended: 'revoked' }
    return { live: this.#liveFor(key, session, stored) }
  }

  #opened(key: string, sealed: string): Session | undefined {
    const session = this.#options.seal.open(key, sealed) as Session | undefined
    return session?.identity ? session : undefined
  }

  #close(key: string, session: Session): string {
    return this.#options.seal.close(key, session)
  }

  #liveFor(key: string, session: Session, { sealed, idleMs, absoluteMs }: Stored): Live {
    const now = steadyNow()
    return { session, key, sealed, idleEnd: now + idleMs, absoluteEnd: now + absoluteMs }
  }

  cached(key: string): Live | undefined {
    const live = this.store.isFollowed() ? this.#cache.get(key) : undefined
    if (live === undefined) return undefined
    // Only the store knows whether another replica has prolonged it.
    return steadyNow() < Math.min(live.idleEnd, live.absoluteEnd) ? live : undefined
  }

  /** @throws GatewayError `login.too-many`, `login.blocked-by-operator`, `session.upstream` */
  async open(
    secretId: string,
    opening: NewSession,
    former?: Live,
    requestId?: string
  ): Promise<Opened> {
    const key = keyOf(secretId)
    const { idle, absolute: absoluteMs, max, over } = this.#boundsOf(opening)
    const idleMs = Math.min(idle, absoluteMs)
    const { address, provider } = opening
    const session = { ...opening, id: publicId(key), createdAt: Date.now(), idleMs }
    const stored = { sealed: this.#close(key, session), idleMs, absoluteMs }
    // The first use of a key is written at once, whatever it is, so that lists tell of it.
    if (session.key !== undefined) stored.idleMs -= touchEveryMs(session)
    const user = signedInOf(session)
    if (provider !== undefined) await addToProvider(this.store, key, provider, absoluteMs)
    const ended = await this.store.open({
      key,
      stored,
      user,
      max,
      refuse: over === 'refuse',
      former: former && { key: former.key, user: signedInOf(former.session) }
    })
    if (ended === 'full') throw new GatewayError('login.too-many')
    if (ended === 'blocked') throw new GatewayError('login.blocked-by-operator')
    const replaced = [...ended].flatMap(([each, sealed]) => {
      this.#drop(each)
      const gone = this.#opened(each, sealed) ?? (each === former?.key ? former.session : undefined)
      const whose = signedInOf(gone ?? session)
      this.#report(whose, [each], 'replaced', { by: 'sign-in', address, requestId })
      return gone === undefined ? [] : [this.#latestOf({ key: each, session: gone })]
    })
    return { ...this.#liveFor(key, session, stored), replaced }
  }

  /** With what its back-end changed a moment ago. */
  readonly #latestOf = (live: Pick<Live, 'key' | 'session'>): Session =>
    this.credentials.withHeld(live).session

  /** How long a session may live, and how many its user may have. Each name has one key. */
  #boundsOf({ key, remembered }: NewSession) {
    const { config } = this.#options
    if (key !== undefined) {
      return { idle: key.forMs, absolute: key.forMs, max: 1, over: 'refuse' } as const
    }
    return { ...config, ...(remembered && config.remembered), ...config.perUser }
  }

  /** Whether another replica may have prolonged it by more than `use` leaves unwritten. */
  mayBeLater({ session, idleEnd }: Live): boolean {
    return steadyNow() + session.idleMs - idleEnd >= touchEveryMs(session)
  }

  /** Writes at most once a minute. Up to its absolute end a session must not count as idle. */
  use(live: Live): void {
    if (!this.mayBeLater(live)) return
    const { key, session } = live
    live.idleEnd = steadyNow() + session.idleMs
    this.#touch(live).then(
      isAlive => {
        if (!isAlive) this.#drop(key)
      },
      () => {
        // Later use has to be written, but a Redis that takes no writes is not asked each time.
        live.idleEnd -= Math.max(0, touchEveryMs(session) - retryMs)
      }
    )
  }

  async #touch(live: Live): Promise<boolean> {
    const { key, session, sealed } = live
    // A key may live longer than the secret that sealed it.
    const isOlder = session.key !== undefined && !this.#options.seal.isNewest(sealed)
    if (isOlder) await this.replace(live, session)
    return await this.store.touch(key, session.idleMs, signedInOf(session))
  }

  async extend(live: Live): Promise<Evaluation> {
    await this.#touch(live)
    return await this.read(live.key)
  }

  async replace(live: Live, session: Session): Promise<boolean> {
    const { key, sealed } = live
    const isDone = await this.store.replace(key, sealed, this.#close(key, session))
    this.#drop(key)
    return isDone
  }

  async list(user: UserId): Promise<Live[]> {
    const keys = await this.store.keysOf(user)
    const found = await Promise.all(keys.map(key => this.#evaluate(key)))
    const live = found.flatMap(each => ('live' in each ? [each.live] : []))
    return live.toSorted((a, b) => a.session.createdAt - b.session.createdAt)
  }

  async end({ session, key }: Live, reason: EndReason, end: End = {}) {
    return await this.#end(signedInOf(session), [key], reason, end)
  }

  /** @param isMeant gets the public id of each */
  async endOf(user: SignedIn, end: End = {}, isMeant: (id: string) => boolean = () => true) {
    const keys = await this.store.keysOf(user)
    const meant = keys.filter(key => isMeant(publicId(key)))
    return await this.#end(user, meant, 'revoked', end)
  }

  /** Ends those that the users file refuses. */
  async endRefused(user: SignedIn) {
    const refused: string[] = []
    for (const key of await this.store.keysOf(user)) {
      const found = await this.#evaluate(key)
      if ('ended' in found && found.ended === 'revoked') refused.push(key)
    }
    return await this.#end(user, refused, 'revoked', { by: 'users-file' })
  }

  /** @returns how many were alive, and those that can be read, with what back-ends changed last */
  async #end(user: SignedIn, keys: readonly string[], reason: EndReason, end: End) {
    const ended = await this.store.end(user, keys, reason).finally(() => {
      for (const key of keys) this.#drop(key)
    })
    this.#report(user, [...ended.keys()], reason, end)
    const sessions = [...ended].flatMap(([each, sealed]) => {
      const session = this.#opened(each, sealed)
      return session === undefined ? [] : [this.#latestOf({ key: each, session })]
    })
    return { closed: ended.size, sessions }
  }

  #report(user: SignedIn, keys: readonly string[], reason: EndReason, end: End): void {
    if (keys.length === 0 || end.by === undefined) return
    this.#options.onRevoked?.({ ...end, user, reason, sessions: keys.map(publicId) })
  }

  #drop(key: string): void {
    this.#cache.delete(key)
    this.#reading.delete(key)
  }

  forget(): void {
    this.#cache.clear()
    this.#reading.clear()
  }
}

/** Sessions: who is signed in, since when, until when. Opens, resolves and closes them over a store. */
import { createHash, randomBytes } from 'node:crypto'
import type { Duration } from '../config/primitives.ts'
import { GatewayError } from '../errors.ts'

export interface Identity {
  readonly id: string
  readonly username: string
  /** For people. */
  readonly name: string
  readonly roles: readonly string[]
  /** What else the credential source knows; feeds the profile. */
  readonly profile: Readonly<Record<string, unknown>>
}

/** What a back-end gave at its own sign-in. Never leaves the gateway but to upstreams that ask for it. */
export interface Credential {
  readonly token?: string
  /** A `Cookie` field's value. */
  readonly cookies?: string
}

export interface Session {
  /** Public: names the session in logs and lists; opens nothing. */
  readonly id: string
  readonly identity: Identity
  /** The credential source that vouched. */
  readonly source: string
  readonly credential?: Credential
  readonly remembered: boolean
  /** Milliseconds since the epoch, as all times here. */
  readonly createdAt: number
  readonly absoluteEnd: number
  readonly idleMs: Duration
}

/** Why a session is no longer one. */
export type EndReason = 'unknown' | 'idle' | 'absolute' | 'revoked' | 'replaced'
export type Resolved = { readonly live: Session } | { readonly ended: EndReason }

/** Thrown by a store that cannot answer. It never means "no such session". */
export class StoreUnavailable extends GatewayError {
  constructor (cause: unknown) {
    super('session.unavailable', { cause, retryAfter: 2 })
  }
}

/**
 * Where records live. Every method throws {@link StoreUnavailable} when it cannot tell.
 * None but `create` brings a record into being, so that nothing that is late can revive a closed session.
 */
export interface SessionStore {
  /** Writes a record that is not there yet. */
  create (key: string, record: string, ttlMs: number): Promise<void>
  read (key: string): Promise<{ readonly record: string, readonly ttlMs: number } | undefined>
  /** Sets the time left of a record that is there. */
  touch (key: string, ttlMs: number): Promise<void>
  /** Puts `epitaph` in the place of a record, unless none or another epitaph is there; says whether it did. */
  end (key: string, epitaph: string, ttlMs: number): Promise<boolean>
  /** Whether the store answers now. */
  ping (): Promise<boolean>
  close (): Promise<void>
}

/** What a store keeps of an ended session: this mark, then the reason. Records are JSON and never begin so. */
export const epitaphMark = '!'
/** How long the reason of an end is remembered, so that a late request can be told. */
const epitaphMs: Duration = 10 * 60_000
const touchAtMostEveryMs: Duration = 60_000

export interface LifeTimes {
  readonly idle: Duration
  readonly absolute: Duration
  readonly remembered: { readonly idle?: Duration, readonly absolute?: Duration }
}

export interface NewSession {
  readonly identity: Identity
  readonly source: string
  readonly credential?: Credential
  readonly remembered: boolean
}

export type Sessions = ReturnType<typeof createSessions>

interface Options {
  readonly store: SessionStore
  readonly lifeTimes: LifeTimes
  readonly now?: () => number
  /** Told when the idle clock could not be set; the request goes on. */
  readonly onTouchFailed?: (error: unknown) => void
}

/** The sessions of a gateway. `secretId` is the cookie's value, of which the store only ever sees a hash. */
export function createSessions ({ store, lifeTimes, now = Date.now, onTouchFailed = () => {} }: Options) {
  /**
   * Opens a session under an id that nobody had before.
   * @throws StoreUnavailable
   */
  async function open (secretId: string, { identity, source, credential, remembered }: NewSession): Promise<Session> {
    const createdAt = now()
    const absolute = (remembered ? lifeTimes.remembered.absolute : undefined) ?? lifeTimes.absolute
    const idleMs = Math.min((remembered ? lifeTimes.remembered.idle : undefined) ?? lifeTimes.idle, absolute)
    const session: Session = {
      id: randomBytes(9).toString('base64url'), identity, source, remembered, createdAt, absoluteEnd: createdAt + absolute, idleMs, ...(credential && { credential })
    }
    await store.create(keyOf(secretId), JSON.stringify(session), idleMs + epitaphMs)
    return session
  }

  /**
   * The session behind an id, or why there is none.
   * @param touch whether this use keeps it from going idle
   * @throws StoreUnavailable
   */
  async function resolve (secretId: string, touch = true): Promise<Resolved> {
    const key = keyOf(secretId)
    const found = await store.read(key)
    if (found === undefined) return { ended: 'unknown' }
    if (found.record.startsWith(epitaphMark)) return { ended: found.record.slice(1) as EndReason }
    const live = parseRecord(found.record)
    if (live === undefined) return { ended: 'unknown' }
    const time = now()
    if (time >= live.absoluteEnd) return { ended: 'absolute' }
    // The store's own clock tells how long ago the session was used: each use sets the time left anew.
    const idleLeft = found.ttlMs - epitaphMs
    if (idleLeft <= 0) return { ended: 'idle' }
    const full = Math.min(live.idleMs, live.absoluteEnd - time)
    if (touch && full - idleLeft >= Math.min(touchAtMostEveryMs, live.idleMs / 4)) store.touch(key, full + epitaphMs).catch(onTouchFailed)
    return { live }
  }

  /**
   * Ends a session for good; one that is not there stays so.
   * @returns whether it was alive
   * @throws StoreUnavailable
   */
  async function close (secretId: string, reason: EndReason): Promise<boolean> {
    return await store.end(keyOf(secretId), epitaphMark + reason, epitaphMs)
  }

  return { open, resolve, close }
}

/** The store's key: a hash, so that whoever reads the store cannot replay a session (OWASP session cheat sheet). */
function keyOf (secretId: string): string {
  return createHash('sha256').update(secretId).digest('base64url')
}

/** A record that is not ours, or was damaged, is no session. */
function parseRecord (record: string): Session | undefined {
  try {
    const { id, identity, source, credential, remembered, createdAt, absoluteEnd, idleMs } = JSON.parse(record) as Session
    const sound = typeof id === 'string' && typeof identity.id === 'string' && typeof identity.username === 'string' && typeof identity.name === 'string' &&
      Array.isArray(identity.roles) && identity.roles.every(role => typeof role === 'string') &&
      Number.isFinite(createdAt) && Number.isFinite(absoluteEnd) && Number.isFinite(idleMs)
    if (!sound) return undefined
    return { id, identity, source, remembered, createdAt, absoluteEnd, idleMs, ...(credential && { credential }) }
  } catch {
    return undefined
  }
}

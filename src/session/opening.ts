/** Opens sessions, and holds each user to the number of sessions that config allows. */
import type { Duration } from '../config/schema/primitives.ts'
import { GatewayError } from '../errors/errors.ts'
import type { End } from './ending.ts'
import { type Live, tombstoneMs } from './evaluate.ts'
import { identityKey } from './identity-key.ts'
import type { createLists } from './lists.ts'
import { type EndReason, keyOf, publicId, type Session, signedInOf } from './record.ts'
import type { RecordFormat } from './record-format.ts'
import type { IndexEntry, SessionStore } from './store.ts'

export interface LifeTimes {
  readonly idle: Duration
  readonly absolute: Duration
  readonly remembered: { readonly idle?: Duration; readonly absolute?: Duration }
}

export type NewSession = Pick<
  Session,
  'identity' | 'source' | 'credential' | 'remembered' | 'address' | 'agent' | 'file'
>

/** The maximum of a user's sessions, and the effect of a further sign-in. */
export interface SessionCap {
  readonly max: number
  readonly over: 'evict-oldest' | 'refuse'
}

interface Options {
  readonly store: SessionStore
  readonly format: RecordFormat
  readonly lifeTimes: LifeTimes
  readonly perUser: SessionCap
  readonly look: ReturnType<typeof createLists>['look']
  readonly endKeys: (keys: readonly string[], reason: EndReason, end?: End) => Promise<number>
  readonly drop: (key: string) => void
  readonly onOpened: (source: string) => void
  readonly now: () => number
}

export function createOpening(options: Options) {
  const { store, format, lifeTimes, perUser, look, endKeys, drop, onOpened, now } = options

  /**
   * @throws StoreUnavailable; GatewayError `login.too-many` where another session would be one too
   * many
   */
  async function open(secretId: string, opening: NewSession): Promise<Live> {
    const key = keyOf(secretId)
    const session = sessionOf(key, opening, lifeTimes, now())
    const { createdAt, idleMs } = session
    // Read from the store: with a cached epoch a session could be ended before it begins.
    const epoch = await store.epoch()
    const record = format.close(key, { session, epoch })
    await store.create(key, record, idleMs + tombstoneMs)
    // Indexed afterwards: readers of the index remove entries without a session.
    const user = identityKey(session)
    const [entries] = await Promise.all([
      store.indexSession(user, key, session.absoluteEnd),
      store.addSignedIn(signedInOf(session), session.absoluteEnd)
      // Not indexed, it could not be found again to be ended.
    ]).catch(async error => await abandon(key, error))
    drop(key)
    onOpened(session.source)
    // Nobody gets its cookie: it would take a place of the user's other sessions.
    await holdToCap(key, session, entries).catch(async error => await abandon(key, error))
    return { session, key, idleEnd: createdAt + idleMs }
  }

  /** Ends a session that nobody gets. @throws the error */
  async function abandon(key: string, error: unknown): Promise<never> {
    try {
      await endKeys([key], 'revoked')
    } catch {
      // It ends by itself.
    }
    throw error
  }

  /**
   * Runs after the session is open, by the order in which the store indexed the sessions: each
   * sign-in sees all that came before it, so that of several at once, at any replicas, not one too
   * many stays.
   */
  async function holdToCap(
    key: string,
    session: Session,
    indexed: readonly IndexEntry[]
  ): Promise<void> {
    // Each live session is in the index.
    if (indexed.length <= perUser.max) return
    const { live } = await look(identityKey(session), indexed)
    const place = live.findIndex(each => each.key === key)
    // Ended meanwhile: it takes no place. Later sign-ins check the maximum themselves.
    if (place === -1) return
    const excess = place + 1 - perUser.max
    if (excess <= 0) return
    if (perUser.over === 'evict-oldest') {
      const evicted = live.slice(0, excess).map(each => each.key)
      const revoker = { user: session, by: 'sign-in', address: session.address } as const
      await endKeys(evicted, 'replaced', { revoker })
    } else {
      await endKeys([key], 'revoked')
      throw new GatewayError('login.too-many')
    }
  }

  return open
}

function sessionOf(
  key: string,
  opening: NewSession,
  { idle, absolute, remembered }: LifeTimes,
  createdAt: number
): Session {
  const absoluteMs = (opening.remembered ? remembered.absolute : undefined) ?? absolute
  const idleMs = (opening.remembered ? remembered.idle : undefined) ?? idle
  return {
    ...opening,
    id: publicId(key),
    createdAt,
    absoluteEnd: createdAt + absoluteMs,
    idleMs: Math.min(idleMs, absoluteMs)
  }
}

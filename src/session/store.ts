/** The contract of session stores. A session lives while its record and its user's list have it. */
import type { Duration } from '../config/schema/primitives.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Block, BlockedName } from './blocked-users.ts'
import type { Ended, EndReason, SignedIn, UserId } from './types.ts'

/** Thrown by a store that cannot answer. It never means "no such session". */
export class StoreUnavailable extends GatewayError {
  constructor(cause: unknown) {
    super('session.unavailable', { cause, retryAfter: 2 })
  }
}

/** A record with the time left by the store's clock; the absolute end is that of the record. */
export interface Stored {
  readonly sealed: string
  /** 0 or less: the session is over. */
  readonly idleMs: number
  readonly absoluteMs: number
}

export interface Opening {
  readonly key: string
  readonly stored: Stored
  readonly user: SignedIn
  /** The number of sessions that a user may have. */
  readonly max: number
  /** Whether a session too many is refused, rather than takes the place of another. */
  readonly refuse: boolean
  /** The key of the browser's former session, which the new one replaces. */
  readonly former?: string | undefined
}

/** Every method throws {@link StoreUnavailable} when it cannot tell. */
export interface SessionStore {
  /**
   * Opens a session in one step: no number of sign-ins at once leaves more than `max`.
   * @returns the keys of sessions that gave way: the former one, and those that would be idle
   *   first; `full` where a user may have no more; `blocked` where an operator keeps the user out
   */
  open(opening: Opening): Promise<readonly string[] | 'full' | 'blocked'>
  read(key: string): Promise<Stored | Ended | undefined>
  /** Sets the idle end of a live session, announced to nobody. @returns whether it lives */
  touch(key: string, idleMs: number, user: SignedIn): Promise<boolean>
  /** Puts a record in the place of exactly `from`. @returns whether it did */
  replace(key: string, from: string, to: string): Promise<boolean>
  /** Ends sessions of a user for good. @returns the keys of those that were alive */
  end(user: SignedIn, keys: readonly string[], reason: EndReason): Promise<readonly string[]>
  /** Ends a session that the store does not know at present, and may know after a failover. */
  endUnknown(key: string): Promise<void>
  /** The keys of a user's sessions; some may be over. */
  keysOf(user: UserId): Promise<readonly string[]>
  /** Ends the sessions of everyone. */
  endAll(): Promise<void>
  /** Users who have a session, at most so many of them, and their number. */
  signedIn(max: number): Promise<{ readonly total: number; readonly users: SignedIn[] }>
  /** Opens no more sessions of users with this name or id. Those that they have live on. */
  block(name: BlockedName, forMs: number | undefined): Promise<void>
  /** @returns whether there was such a block */
  unblock(name: BlockedName): Promise<boolean>
  blocked(): Promise<readonly Block[]>
  /** Takes a lock that ends by itself. @returns whether it was free */
  lock(name: string, owner: string, ttlMs: number): Promise<boolean>
  /** Frees a lock, if `owner` holds it. */
  unlock(name: string, owner: string): Promise<void>
  /** Announces every change by anyone, but by `touch`. At most one follows a store. */
  follow(follower: Follower): void
  /** Whether changes are announced now: only then what was read before counts. */
  isFollowed(): boolean
  close(): void
}

export interface Follower {
  readonly onChanged: (key: string) => void
  /** Changes may have been missed, or all sessions have changed. */
  readonly onReset: () => void
}

/** The store keeps the reason of an end for so long, for the answer to late requests. */
export const tombstoneMs: Duration = 10 * 60_000

const endReasons: ReadonlySet<string> = new Set<EndReason>([
  'idle',
  'absolute',
  'revoked',
  'replaced',
  'upstream'
])

/** A reason in the store; one that nobody knows says that somebody ended it. */
export function endReasonOf(written: string): EndReason {
  return endReasons.has(written) ? (written as EndReason) : 'revoked'
}

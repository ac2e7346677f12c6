/**
 * The contract of session stores: records, the index of users' sessions, and announcements of
 * changes.
 */
import { GatewayError } from '../errors/errors.ts'
import type { IdentityKey } from './identity-key.ts'
import type { SignedIn } from './record.ts'

/** Thrown by a store that cannot answer. It never means "no such session". */
export class StoreUnavailable extends GatewayError {
  constructor(cause: unknown) {
    super('session.unavailable', { cause, retryAfter: 2 })
  }
}

/** Thrown by `end` where the session has ended, but not every replica has confirmed it. */
export class EndUnconfirmed extends StoreUnavailable {}

export interface StoredRecord {
  readonly record: string
  /** That of the idle clock; of a tombstone its own. */
  readonly ttlMs: number
}

/** Only `create` makes a record, so that no late write can revive a closed session. */
export interface RecordStore {
  /** Writes a record that is not there yet; refuses, as one that cannot answer, where one is. */
  create(key: string, record: string, ttlMs: number): Promise<void>
  read(key: string): Promise<StoredRecord | undefined>
  /**
   * Sets the time left of a record that has more than `aboveMs` left; says whether it did. It is
   * announced to nobody.
   */
  touch(key: string, ttlMs: number, aboveMs: number): Promise<boolean>
  /**
   * A touch that changes nothing unless a touch by `touch` came after the last one of this kind; it
   * is announced.
   */
  touchAfterUse(key: string, ttlMs: number, aboveMs: number): Promise<boolean>
  /**
   * Puts a record in the place of exactly `from`, with the time that has left; says whether it did.
   */
  replace(key: string, from: string, to: string): Promise<boolean>
  /**
   * Puts `tombstone` in the place of a record, unless none or another tombstone is there; says
   * whether it did.
   * @throws EndUnconfirmed where it did, and a failover may undo it
   */
  end(key: string, tombstone: string, ttlMs: number): Promise<boolean>
}

export interface IndexEntry {
  readonly key: string
  /**
   * Microseconds since the epoch by the store's clock, of no two entries of a user the same: the
   * order of their sign-ins, whatever the clocks of replicas say.
   */
  readonly at: number
}

/** Finds the sessions of a user. */
export interface SessionIndex {
  /**
   * Records that a key is of a user, until a time of the store's clock. An entry may outlive its
   * record.
   * @returns all entries of the user as they were at this very moment, this one among them
   */
  indexSession(user: IdentityKey, key: string, until: number): Promise<readonly IndexEntry[]>
  /** The entries of a user, oldest first, but those whose time is over. As for `sessionKeysOf`. */
  indexEntriesOf(user: IdentityKey): Promise<readonly IndexEntry[]>
  /** Their keys. */
  sessionKeysOf(user: IdentityKey): Promise<string[]>
  /** Takes back entries whose records are gone. */
  unindex(user: IdentityKey, keys: readonly string[]): Promise<void>
}

export interface SignedInSample {
  /** Users who have sessions, those outside the sample included. */
  readonly total: number
  readonly users: readonly SignedIn[]
}

export interface UserStore {
  /** Records that a user has sessions until a time, so that operators find them by name. */
  addSignedIn(user: SignedIn, until: number): Promise<void>
  /** Users who have sessions, at most so many; a session of theirs may be over. */
  signedIn(max: number): Promise<SignedIn[]>
  /** All users who have sessions where they are at most so many, else a random sample of them. */
  sampleSignedIn(max: number): Promise<SignedInSample>
  /**
   * Says which state of a source's users a replica has read, by a digest, and the one before where
   * it saw the change: known states stand in the order in which they came.
   * @returns whether no replica knows a later one
   */
  announceUsers(source: string, digest: string, before?: string): Promise<boolean>
}

export interface EpochStore {
  /** Resolves once no failover undoes the ends that were written so far, by anyone. */
  confirmEnds(): Promise<void>
  /** The number of times that everyone's sessions were ended. */
  epoch(): Promise<number>
  /** Makes the epoch greater than it is, and than `above`. */
  bumpEpoch(above?: number): Promise<number>
  /** Makes the epoch at least so great, wherever it is kept. */
  restoreEpoch(epoch: number): Promise<void>
}

export interface Fence {
  /** Greater than that of each earlier holder of the lock, by the store's clock. */
  readonly number: number
  /** An earlier holder never freed the lock as settled: it may still write its result. */
  readonly isContested: boolean
}

/** A holder that never freed the lock as settled makes it contested for so long. */
export const contestedMs = 120_000

export interface LockStore {
  /** Takes a lock that ends by itself; says whether it was free. */
  lock(name: string, owner: string, ttlMs: number): Promise<boolean>
  /**
   * Confirms that `owner` still holds a lock, holds it for another `ttlMs`, and numbers the holder.
   * @returns undefined where the lock was lost
   */
  fence(name: string, owner: string, ttlMs: number): Promise<Fence | undefined>
  /**
   * Frees a lock, if `owner` holds it.
   * @param isSettled whether all that was done under it is written; a fence contests it otherwise
   */
  unlock(name: string, owner: string, isSettled?: boolean): Promise<void>
}

/** Every method throws {@link StoreUnavailable} when it cannot tell. */
export interface SessionStore extends RecordStore, SessionIndex, UserStore, EpochStore, LockStore {
  /**
   * Announces every change of a record or the epoch by anyone, but by `touch`. At most one
   * follows a store.
   */
  follow(follower: Follower): void
  /** Whether the store answers now. */
  ping(): Promise<boolean>
  close(): Promise<void>
}

export interface Follower {
  /** From now on every change is announced. */
  readonly onUp: () => void
  /** Changes may be missed from now on, or were: whatever is cached may be wrong. */
  readonly onDown: () => void
  readonly onChanged: (key: string) => void
  readonly onEpoch: () => void
  /**
   * All changes until `agoMs` milliseconds ago have been announced. No wall clock has a part in it.
   */
  readonly onHeartbeat: (agoMs: number) => void
}

/** A tombstone is this mark, then the reason. Records never begin with it. */
export const tombstoneMark = '!'

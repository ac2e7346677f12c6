/** The contract of session stores. A session lives while its record and its user's list have it. */
import { randomUUID } from 'node:crypto'
import type { Duration } from '../config/schema/primitives.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Ended, EndReason, Evaluation, Live, SignedIn, UserId } from './types.ts'

/** Thrown by a store that cannot answer. It never means "no such session". */
export class StoreUnavailable extends GatewayError {
  constructor(cause: unknown) {
    super('session.unavailable', { cause, retryAfter: 2 })
  }
}

/** The session that a store has just read. @throws GatewayError where it is none any more */
export function liveIn(evaluation: Evaluation): Live {
  if ('live' in evaluation) return evaluation.live
  throw new GatewayError(`session.${evaluation.ended}`)
}

/** A record with the times that are left by the store's clock. */
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
  readonly max: number
  readonly refuse: boolean
  readonly former?: { readonly key: string; readonly user: SignedIn } | undefined
}

/** Sessions that were alive until now: their sealed records, by key. */
export type EndedRecords = ReadonlyMap<string, string>

/** Every method throws {@link StoreUnavailable} when it cannot tell. */
export interface SessionStore {
  /**
   * Opens a session in one step: no number of sign-ins at once leaves more than `max`.
   * @returns those that gave way: the former, and those that would be idle first
   */
  open(opening: Opening): Promise<EndedRecords | 'full' | 'blocked'>
  read(key: string): Promise<Stored | Ended | undefined>
  /** Sets the idle end of a live session, announced to nobody. @returns whether it lives */
  touch(key: string, idleMs: number, user: SignedIn): Promise<boolean>
  /** Puts a record in the place of exactly `from`. @returns whether it did */
  replace(key: string, from: string, to: string): Promise<boolean>
  /** @param user undefined if it is not known */
  end(user: SignedIn | undefined, keys: readonly string[], reason: EndReason): Promise<EndedRecords>
  /** The keys of a user's sessions; some may be over. */
  keysOf(user: UserId): Promise<readonly string[]>
  /** Ends the sessions of everyone; keys for scripts live on. */
  endAll(): Promise<void>
  /** The users who signed in last, and the number of all; or the keys for scripts. */
  signedIn(
    max: number,
    of?: 'users' | 'keys'
  ): Promise<{ total: number; users: readonly SignedIn[] }>
  /** @param text users without it in their name or id may be left out; one may come twice */
  scan(text: string): AsyncIterable<readonly SignedIn[]>
  /** Adds a member for a time, in one step. @returns all members, with the time that they have */
  addTo(set: string, member: string, ttlMs: number): Promise<ReadonlyMap<string, number>>
  removeFrom(set: string, member: string): Promise<boolean>
  membersOf(set: string): Promise<ReadonlyMap<string, number>>
  /** Announces every change by anyone, but by `touch`. At most one follows a store. */
  follow(follower: Follower): void
  /** Whether changes are announced now: only then what was read before counts. */
  isFollowed(): boolean
}

/** Takes a lock that ends by itself. @param owner of this call alone @returns whether it did */
export async function lock(
  store: SessionStore,
  name: string,
  ttlMs: number,
  owner: string = randomUUID()
): Promise<boolean> {
  const owners = await store.addTo(name, owner, ttlMs)
  if (owners.size > 1) await store.addTo(name, owner, 0)
  return owners.size === 1
}

export interface Follower {
  readonly onChanged: (key: string) => void
  /** Changes may have been missed, or all sessions have changed. */
  readonly onReset: () => void
}

/** The store keeps the reason of an end for so long, for the answer to late requests. */
export const tombstoneMs: Duration = 10 * 60_000

/** Finds the signed-in user that an operator names, by id or user name, of any credential source. */
import type { SessionStore } from '../session/store.ts'
import { type SignedIn, type UserId, userKey } from '../session/types.ts'
import type { NamedUser } from './request-schemas.ts'

export interface FoundUsers {
  /** The users that fit. */
  readonly users: readonly SignedIn[]
  /** The users that would fit with a name read as an id, or an id as a name. */
  readonly near: readonly SignedIn[]
}

/** Bounds the list of signed-in users. */
export const maxSignedIn = 100_000

export function createUserFinder(store: Pick<SessionStore, 'signedIn'>) {
  /** @throws StoreUnavailable */
  async function find({ user, by, source }: NamedUser): Promise<FoundUsers> {
    // The name may have changed between two sign-ins.
    const users = eachOnce((await store.signedIn(maxSignedIn)).users)
    const ids = users.filter(({ id }) => id === user)
    const names = users.filter(({ username }) => username === user)
    const isWanted = (each: SignedIn) => source === undefined || each.source === source
    if (by === 'id') return { users: ids.filter(isWanted), near: names }
    if (by === 'name') return { users: names.filter(isWanted), near: ids }
    const all = [...new Set([...ids, ...names])]
    return { users: all.filter(isWanted), near: all }
  }

  return { find }
}

/** Finds users who may have no session. */
export interface KnownUsers {
  /** The names of the credential sources. */
  readonly sources: () => readonly string[]
  /** The ids of users with this name in users files. */
  readonly idsOf: (name: string) => readonly string[]
}

/** The users whom an operator may mean by an id, or by a name that a users file has. */
export function possibleUsers({ sources, idsOf }: KnownUsers, named: string): UserId[] {
  const ids = [named, ...idsOf(named)]
  return sources().flatMap(source => ids.map(id => ({ source, id })))
}

/** Of a user who is there several times, the first. */
export function eachOnce<T extends UserId>(users: readonly T[]): T[] {
  return Array.from(Map.groupBy(users, userKey).values(), ([first]) => first as T)
}

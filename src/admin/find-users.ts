/** Finds the user that an operator names, by id or user name, of any credential source. */
import { identityKey } from '../session/identity-key.ts'
import type { SignedIn } from '../session/record.ts'
import type { Sessions } from '../session/session.ts'
import type { NamedUser } from './request-schemas.ts'

export interface FoundUsers {
  /** The users that fit. */
  readonly users: readonly SignedIn[]
  /** The users that would fit with a name read as an id, or an id as a name. */
  readonly near: readonly SignedIn[]
}

interface Options {
  readonly sessions: Pick<Sessions, 'signedIn' | 'inspect'>
  /** The names of the credential sources. */
  readonly sources: readonly string[]
}

/** Bounds the list of signed-in users; others are still found by id. */
export const maxSignedIn = 100_000

export function createUserFinder({ sessions, sources }: Options) {
  const hasSessions = async ({ source, id }: SignedIn): Promise<boolean> =>
    (await sessions.inspect(identityKey({ source, identity: { id } }))).isKnown

  /** Users whom the bounded list leaves out are found too. */
  async function byId(id: string): Promise<SignedIn[]> {
    const users = await Promise.all(
      sources.map(async source => {
        const { listed, isKnown } = await sessions.inspect(
          identityKey({ source, identity: { id } })
        )
        const username = listed[0]?.session.identity.username ?? ''
        return isKnown ? [{ source, id, username }] : []
      })
    )
    return users.flat()
  }

  async function byName(username: string): Promise<SignedIn[]> {
    const named = (await sessions.signedIn(maxSignedIn)).filter(user => user.username === username)
    const present = await Promise.all(named.map(hasSessions))
    return named.filter((_, index) => present[index] === true)
  }

  /** @throws StoreUnavailable */
  async function find({ user, by, source }: NamedUser): Promise<FoundUsers> {
    const [ids, names] = await Promise.all([byId(user), byName(user)])
    const isWanted = (each: SignedIn) => source === undefined || each.source === source
    if (by === 'id') return { users: ids.filter(isWanted), near: names }
    if (by === 'name') return { users: names.filter(isWanted), near: ids }
    const isSame = (a: SignedIn, b: SignedIn) => a.source === b.source && a.id === b.id
    const isNew = (each: SignedIn) => !ids.some(other => isSame(other, each))
    const all = [...ids, ...names.filter(isNew)]
    return { users: all.filter(isWanted), near: all }
  }

  return { find }
}

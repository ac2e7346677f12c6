/**
 * The number of live sessions: counted exactly up to some hundred users, and estimated from a
 * sample of the users beyond, so that the cost does not grow with them.
 */
import { type IdentityKey, identityKey } from './identity-key.ts'
import type { Listed } from './describe.ts'
import type { UserStore } from './store.ts'

export interface Census {
  /** Live sessions. */
  readonly sessions: number
  /** Users who have one. */
  readonly users: number
}

interface Options {
  readonly store: Pick<UserStore, 'sampleSignedIn'>
  /** Reads the store, past the cache. */
  readonly list: (user: IdentityKey) => Promise<Listed[]>
}

const maxUsers = 500
/** Users that are looked at at once: requests take turns with them. */
const atOnce = 20

export function createCensus({ store, list }: Options) {
  /** @throws StoreUnavailable */
  async function countAlive(): Promise<Census> {
    const { total, users } = await store.sampleSignedIn(maxUsers)
    // A user who changed names is listed under each.
    const keys = new Set(users.map(({ source, id }) => identityKey({ source, identity: { id } })))
    const sample = [...keys]
    let sessions = 0
    let usersAlive = 0
    for (let index = 0; index < sample.length; index += atOnce) {
      const some = await Promise.all(sample.slice(index, index + atOnce).map(list))
      for (const listed of some) {
        sessions += listed.length
        if (listed.length > 0) usersAlive++
      }
    }
    const factor = users.length === 0 ? 0 : total / users.length
    return { sessions: Math.round(sessions * factor), users: Math.round(usersAlive * factor) }
  }

  return countAlive
}

/** The sessions of each user in Redis, and the users who have any. */
import type { IdentityKey } from './identity-key.ts'
import type { SignedIn } from './record.ts'
import { isListOfTexts, nonsense, orUnavailable, type RedisContext } from './redis-context.ts'
import type { IndexEntry, SessionIndex, UserStore } from './store.ts'

export function createRedisIndex({ redis, keys, write }: RedisContext): SessionIndex {
  async function indexEntriesOf(user: IdentityKey): Promise<readonly IndexEntry[]> {
    return entriesIn(await orUnavailable(redis.sessionNotes(keys.index(user))))
  }

  return {
    async indexSession(user, key, until) {
      const index = keys.index(user)
      return entriesIn(
        await write(index, 'connected', async on => await on.sessionNote(index, until, key))
      )
    },
    indexEntriesOf,
    sessionKeysOf: async user => (await indexEntriesOf(user)).map(({ key }) => key),
    async unindex(user, sessionKeys) {
      if (sessionKeys.length === 0) return
      await orUnavailable(redis.hdel(keys.index(user), ...sessionKeys))
    }
  }
}

/** Oldest first. */
function entriesIn(flat: unknown): readonly IndexEntry[] {
  if (!isListOfTexts(flat)) throw nonsense()
  const entries: IndexEntry[] = []
  for (let index = 0; index < flat.length; index += 2) {
    entries.push({ key: flat[index] ?? '', at: Number(flat[index + 1]) })
  }
  return entries.toSorted((a, b) => a.at - b.at)
}

export function createRedisUsers({ redis, keys }: RedisContext): UserStore {
  return {
    async addSignedIn(user, until) {
      const member = JSON.stringify([user.source, user.id, user.username])
      await orUnavailable(redis.usersEnter(keys.signedIn, until, member))
    },
    async signedIn(max) {
      const members: unknown = await orUnavailable(redis.usersPresent(keys.signedIn, max))
      if (!Array.isArray(members)) throw nonsense()
      return members.flatMap(readSignedIn)
    },
    async sampleSignedIn(max) {
      const present: unknown = await orUnavailable(redis.usersPresent(keys.signedIn, max + 1))
      if (!Array.isArray(present)) throw nonsense()
      if (present.length <= max) {
        const users = present.flatMap(readSignedIn)
        return { total: users.length, users }
      }
      const [total, members] = await orUnavailable(
        Promise.all([redis.zcard(keys.signedIn), redis.zrandmember(keys.signedIn, max)])
      )
      return { total, users: [members].flat().flatMap(readSignedIn) }
    },
    async announceUsers(source, digest, before = '') {
      return (await orUnavailable(redis.usersAnnounce(keys.users(source), digest, before))) === 1
    }
  }
}

/** A member that we did not write names nobody. */
function readSignedIn(member: unknown): SignedIn[] {
  try {
    const entry = JSON.parse(String(member)) as unknown[]
    if (!isListOfTexts(entry)) return []
    const [source, id, username] = entry
    if (source === undefined || id === undefined || username === undefined) return []
    return [{ source, id, username }]
  } catch {
    return []
  }
}

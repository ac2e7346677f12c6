/** The sessions of each user in Redis, and the users who have any. */
import type { FormerIndex } from './former-index.ts'
import type { IdentityKey } from './identity-key.ts'
import type { SignedIn } from './record.ts'
import { isListOfTexts, nonsense, orUnavailable, type RedisContext } from './redis-context.ts'
import type { IndexEntry, SessionIndex, UserStore } from './store.ts'

export function createRedisIndex(
  { redis, keys, write }: RedisContext,
  formerIndex: FormerIndex
): SessionIndex {
  async function readFormer(user: IdentityKey): Promise<unknown> {
    if (!formerIndex.areRead()) return []
    return await orUnavailable(redis.sessionFormerNotes(keys.formerIndex(user)))
  }

  /** @returns all entries that former versions know of the user */
  async function addFormer(user: IdentityKey, key: string, until: number): Promise<unknown> {
    if (!formerIndex.areWritten) return await readFormer(user)
    const former = keys.formerIndex(user)
    return await write(former, 'connected', async on => {
      const [, entries] = await Promise.all([
        on.sessionFormerNote(former, until, key),
        on.sessionFormerNotes(former)
      ])
      return entries
    })
  }

  async function indexEntriesOf(user: IdentityKey): Promise<readonly IndexEntry[]> {
    const [flat, former] = await Promise.all([
      orUnavailable(redis.sessionNotes(keys.index(user))),
      readFormer(user)
    ])
    return mergeEntries(flat, former)
  }

  return {
    async indexSession(user, key, until) {
      const index = keys.index(user)
      const [flat, former] = await Promise.all([
        write(index, 'connected', async on => await on.sessionNote(index, until, key)),
        addFormer(user, key, until)
      ])
      return mergeEntries(flat, former)
    },
    indexEntriesOf,
    sessionKeysOf: async user => (await indexEntriesOf(user)).map(({ key }) => key),
    async unindex(user, sessionKeys) {
      if (sessionKeys.length === 0) return
      await orUnavailable(
        Promise.all([
          redis.hdel(keys.index(user), ...sessionKeys),
          ...(formerIndex.areRead() ? [redis.zrem(keys.formerIndex(user), ...sessionKeys)] : [])
        ])
      )
    }
  }
}

/** Entries of both kinds, oldest first; those of former versions, whose order is unknown, lead. */
function mergeEntries(flat: unknown, former: unknown): readonly IndexEntry[] {
  if (!isListOfTexts(flat) || !isListOfTexts(former)) throw nonsense()
  const entries: Array<Required<IndexEntry>> = []
  for (let index = 0; index < flat.length; index += 2) {
    entries.push({ key: flat[index] ?? '', at: Number(flat[index + 1]) })
  }
  const indexed = new Set(entries.map(({ key }) => key))
  return [
    ...former.filter(key => !indexed.has(key)).map(key => ({ key })),
    ...entries.toSorted((a, b) => a.at - b.at)
  ]
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

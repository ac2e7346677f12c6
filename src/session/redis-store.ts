/** Sessions in Redis: one string a session, its time to live the idle clock. */
import type { Cluster, Redis } from 'ioredis'
import { alwaysFormerNotes, type FormerNotes } from './former-notes.ts'
import { type IdentityKey, idOf } from './identity-key.ts'
import type { SignedIn } from './record.ts'
import { defineCommands, scripts } from './redis-scripts.ts'
import { createRevocationJournal, revocationsKeptMs } from './revocation-journal.ts'
import {
  contestedMs,
  tombstoneMark,
  type Follower,
  type IndexEntry,
  type SessionStore,
  StoreUnavailable
} from './store.ts'

interface Options {
  readonly redis: Redis | Cluster
  /** What every key begins with. */
  readonly prefix: string
  /** Brings the news of changes; see redis-invalidation.ts. */
  readonly follow: (
    follower: Follower,
    names: { readonly tracked: string; readonly session: string; readonly epoch: string }
  ) => void
  /** Without it a write counts as soon as the primary has it. */
  readonly replicated?: ReplicatedWrites
  /** Tells when a server may be another one than before, before anything else is asked of it. */
  readonly onPrimary?: (listener: () => void) => void
  /** A key on each primary of a Cluster, as its slots are now. */
  readonly keysOnEach?: (plain: string) => readonly string[]
  /** Written and read without it. */
  readonly formerNotes?: FormerNotes
}

/** What a write waits for. */
interface ReplicatedWrites {
  readonly run: <T>(
    key: string,
    confirmation: 'every' | 'connected',
    write: (on: Redis) => Promise<T>
  ) => Promise<T>
}

/** The store does not own the client: whoever made it closes it. */
export function createRedisStore(options: Options): SessionStore {
  const {
    redis,
    prefix,
    follow,
    replicated,
    onPrimary = () => {},
    keysOnEach = key => [key]
  } = options
  const { formerNotes = alwaysFormerNotes } = options
  defineCommands(redis)
  // One beginning for all that has to be told when it changes.
  const tracked = `${prefix}session`
  const session = `${tracked}:`
  const epochKey = `${tracked}-epoch`
  const placeOf = (user: IdentityKey) => `${prefix}identity:${user}`
  /** Replicas of a version that did not tell credential sources apart note and look here. */
  const formerPlaceOf = (user: IdentityKey) => `${prefix}user:${idOf(user)}`
  const signedInKey = `${prefix}signed-in`
  const lockKey = (name: string) => `${prefix}lock:${name}`
  /** In the slot of the lock, whose key is the hash tag; it begins as all keys do, for ACL users. */
  const fenceKey = (name: string) => `${prefix}fence:{${lockKey(name)}}`
  const journal = createRevocationJournal()
  const write = async <T>(
    key: string,
    confirmation: 'every' | 'connected',
    work: (on: Redis | Cluster) => Promise<T>
  ) =>
    await answer(replicated === undefined ? work(redis) : replicated.run(key, confirmation, work))

  const epochKeys = () => keysOnEach(epochKey)
  let lastRaise = { epoch: 0, at: -Infinity }

  async function writeEpoch(keys: readonly string[], epoch: number): Promise<void> {
    await Promise.all(
      keys.map(
        async key => await write(key, 'every', async on => await on.sessionEpoch(key, epoch, 0))
      )
    )
  }

  // Sent before any read over the same connection. In full, since a script that has to be loaded first would come later.
  onPrimary(() => {
    for (const { key, tombstone, ttlMs } of journal.recent()) {
      redis
        .eval(scripts.sessionEnd, 1, session + key, tombstone, ttlMs, tombstoneMark)
        .catch(() => {})
    }
    if (performance.now() - lastRaise.at > revocationsKeptMs) return
    for (const key of epochKeys())
      redis.eval(scripts.sessionEpoch, 1, key, lastRaise.epoch, 0).catch(() => {})
  })

  async function readFormerNotes(user: IdentityKey): Promise<unknown> {
    if (!formerNotes.areRead()) return []
    return await answer(redis.sessionFormerNotes(formerPlaceOf(user)))
  }

  /** @returns all former notes of the user */
  async function noteAsFormerly(user: IdentityKey, key: string, until: number): Promise<unknown> {
    if (!formerNotes.areWritten) return await readFormerNotes(user)
    const former = formerPlaceOf(user)
    return await write(former, 'connected', async on => {
      const [, found] = await Promise.all([
        on.sessionFormerNote(former, until, key),
        on.sessionFormerNotes(former)
      ])
      return found
    })
  }

  async function notesOf(user: IdentityKey): Promise<readonly IndexEntry[]> {
    const [noted, former] = await Promise.all([
      answer(redis.sessionNotes(placeOf(user))),
      readFormerNotes(user)
    ])
    return mergeNotes(noted, former)
  }

  return {
    async create(key, record, ttlMs) {
      const name = session + key
      const written = await write(
        name,
        'connected',
        async on => await on.set(name, record, 'PX', ttlMs, 'NX')
      )
      if (written !== 'OK') throw alreadyThere()
    },
    async read(key) {
      let found: [string, number] | null
      try {
        found = await redis.sessionRead(session + key)
      } catch (error) {
        // A key of another type is surely no session of ours.
        if (error instanceof Error && error.message.includes('WRONGTYPE')) return undefined
        throw new StoreUnavailable(error)
      }
      if (
        found !== null &&
        (!Array.isArray(found) || typeof found[0] !== 'string' || typeof found[1] !== 'number')
      )
        throw nonsense()
      // Without a time to live it is not ours either: we never write such.
      return found === null || found[1] < 0 ? undefined : { record: found[0], ttlMs: found[1] }
    },
    async touch(key, ttlMs, aboveMs) {
      await answer(redis.sessionTouch(session + key, Math.ceil(ttlMs), aboveMs))
    },
    async replace(key, from, to) {
      return (await answer(redis.sessionReplace(session + key, from, to))) === 1
    },
    async end(key, tombstone, ttlMs) {
      const name = session + key
      journal.add({ key, tombstone, ttlMs })
      return (
        (await write(
          name,
          'every',
          async on => await on.sessionEnd(name, tombstone, ttlMs, tombstoneMark)
        )) === 1
      )
    },
    async indexSession(user, key, until) {
      const place = placeOf(user)
      const [noted, former] = await Promise.all([
        write(place, 'connected', async on => await on.sessionNote(place, until, key)),
        noteAsFormerly(user, key, until)
      ])
      return mergeNotes(noted, former)
    },
    indexEntriesOf: notesOf,
    sessionKeysOf: async user => (await notesOf(user)).map(({ key }) => key),
    async unindex(user, keys) {
      if (keys.length === 0) return
      await answer(
        Promise.all([
          redis.hdel(placeOf(user), ...keys),
          ...(formerNotes.areRead() ? [redis.zrem(formerPlaceOf(user), ...keys)] : [])
        ])
      )
    },
    async addSignedIn(user, until) {
      const member = JSON.stringify([user.source, user.id, user.username])
      await answer(redis.usersEnter(signedInKey, until, member))
    },
    async signedIn(max) {
      const members: unknown = await answer(redis.usersPresent(signedInKey, max))
      if (!Array.isArray(members)) throw nonsense()
      return members.flatMap(readSignedIn)
    },
    async announceUsers(source, digest, before = '') {
      return (await answer(redis.usersAnnounce(`${prefix}users:${source}`, digest, before))) === 1
    },
    async epoch() {
      const keys = epochKeys()
      const found = await answer(Promise.all(keys.map(async key => await redis.get(key))))
      const epochs = found.map(value => Number(value ?? 0))
      // No session could be told from one that was ended.
      if (!epochs.every(Number.isSafeInteger))
        throw new StoreUnavailable(new Error(`${epochKey} in Redis is not a number`))
      const greatest = Math.max(...epochs)
      // A primary that is new, or forgot: the others know.
      const behind = keys.filter((_key, index) => epochs[index] !== greatest)
      if (behind.length > 0) writeEpoch(behind, greatest).catch(() => {})
      return greatest
    },
    async bumpEpoch() {
      const [home = epochKey, ...others] = epochKeys()
      const greatest = await this.epoch()
      const raised = await write(
        home,
        'every',
        async on => await on.sessionEpoch(home, greatest, 1)
      )
      lastRaise = { epoch: raised, at: performance.now() }
      await writeEpoch(others, raised)
      return raised
    },
    async confirmEnds() {
      await Promise.all(epochKeys().map(async key => await write(key, 'every', async () => {})))
    },
    async restoreEpoch(epoch) {
      await writeEpoch(epochKeys(), epoch)
    },
    async lock(name, owner, ttlMs) {
      return (await answer(redis.set(lockKey(name), owner, 'PX', ttlMs, 'NX'))) === 'OK'
    },
    async fence(name, owner, ttlMs) {
      const keys = [lockKey(name), fenceKey(name)] as const
      const found = await answer(redis.sessionFence(...keys, owner, ttlMs, contestedMs))
      if (found === null) return undefined
      const number = Number(found[0])
      if (!Number.isSafeInteger(number)) throw nonsense()
      return { number, isContested: found[1] === 1 }
    },
    async unlock(name, owner, isSettled = true) {
      const keys = [lockKey(name), fenceKey(name)] as const
      await answer(redis.sessionUnlock(...keys, owner, isSettled ? 1 : 0))
    },
    follow(follower) {
      follow(follower, { tracked, session, epoch: epochKey })
    },
    async ping() {
      return await redis.ping().then(
        () => true,
        () => false
      )
    },
    async close() {}
  }
}

function alreadyThere() {
  return new StoreUnavailable(new Error('a session with this id exists already'))
}

/** Notes of both kinds, oldest first; those of former versions, whose order is unknown, lead. */
function mergeNotes(flat: unknown, former: unknown): readonly IndexEntry[] {
  if (!isListOfTexts(flat) || !isListOfTexts(former)) throw nonsense()
  const notes: Array<Required<IndexEntry>> = []
  for (let index = 0; index < flat.length; index += 2) {
    notes.push({ key: flat[index] ?? '', at: Number(flat[index + 1]) })
  }
  const known = new Set(notes.map(({ key }) => key))
  return [
    ...former.filter(key => !known.has(key)).map(key => ({ key })),
    ...notes.toSorted((a, b) => a.at - b.at)
  ]
}

function isListOfTexts(given: unknown): given is string[] {
  return Array.isArray(given) && given.every(each => typeof each === 'string')
}

/** What is no entry of ours names nobody. */
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

/** A connection whose answers are out of step says things that no command of ours is answered with. */
function nonsense() {
  return new StoreUnavailable(new Error('Redis gave an answer that makes no sense'))
}

async function answer<T>(command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (error) {
    throw new StoreUnavailable(error)
  }
}

/** Sessions in Redis: one string a session, its time to live the idle clock. Every script touches one key, as a Cluster demands. */
import type { Cluster, Redis, Result } from 'ioredis'
import { type IdentityKey, idOf } from './identity-key.ts'
import type { SignedIn } from './record.ts'
import { createRevocationJournal } from './revocation-journal.ts'
import {
  epitaphMark,
  type Follower,
  type Note,
  type SessionStore,
  StoreUnavailable
} from './store.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    sessionRead (key: string): Result<[string, number] | null, Context>
    sessionTouch (key: string, ttlMs: number, aboveMs: number): Result<number, Context>
    sessionEnd (key: string, epitaph: string, ttlMs: number, mark: string): Result<number, Context>
    sessionReplace (key: string, from: string, to: string): Result<number, Context>
    sessionNote (key: string, until: number, member: string): Result<string[], Context>
    sessionNotes (key: string): Result<string[], Context>
    sessionFormerNote (key: string, until: number, member: string): Result<number, Context>
    sessionFormerNotes (key: string): Result<string[], Context>
    usersEnter (key: string, until: number, member: string): Result<number, Context>
    usersPresent (key: string, max: number): Result<string[], Context>
    usersAnnounce (key: string, digest: string, before: string): Result<number, Context>
    sessionUnlock (key: string, owner: string): Result<number, Context>
  }
}

// Redis' own clock, in microseconds: those of replicas may differ and jump.
const time = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]`

const eachNote = `
local flat = redis.call('HGETALL', KEYS[1])
for index = 1, #flat, 2 do
  local member = flat[index]
  local noted, ends = string.match(flat[index + 1], '^(%d+) (%d+)$')
  ends = tonumber(ends or 0)`

const scripts = {
  // One answer, so that value and time left belong together.
  sessionRead: `
local value = redis.call('GET', KEYS[1])
if not value then return nil end
return { value, redis.call('PTTL', KEYS[1]) }`,
  // Whoever comes late must not set the clock of what has ended meanwhile.
  sessionTouch: `
if redis.call('PTTL', KEYS[1]) <= tonumber(ARGV[2]) then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`,
  // A Redis that is full takes no epitaph, but lets go: the end counts more than its reason.
  sessionEnd: `
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, 1) == ARGV[3] then return 0 end
if redis.pcall('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]).err then redis.call('DEL', KEYS[1]) end
return 1`,
  sessionReplace: `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'KEEPTTL')
return 1`,
  // A hash: a field for each session with when it was noted and until when it counts, and in "#"
  // the latest moment of them. It lives as long as the latest of the sessions that it is about.
  sessionNote: `${time}
local at = math.max(now, tonumber(redis.call('HGET', KEYS[1], '#') or 0) + 1)
local written = string.format('%.0f', at)
redis.call('HSET', KEYS[1], ARGV[2], written .. ' ' .. ARGV[1], '#', written)
local kept, last = {}, 0
${eachNote}
  if noted and ends * 1000 <= now then
    redis.call('HDEL', KEYS[1], member)
  elseif noted then
    kept[#kept + 1] = member
    kept[#kept + 1] = noted
    last = math.max(last, ends)
  end
end
redis.call('PEXPIREAT', KEYS[1], string.format('%.0f', last))
return kept`,
  sessionNotes: `${time}
local kept = {}
${eachNote}
  if ends * 1000 > now then
    kept[#kept + 1] = member
    kept[#kept + 1] = noted
  end
end
return kept`,
  // As versions before identity keys write and read the notes of a user.
  sessionFormerNote: `${time}
redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now / 1000))
local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
if last[2] then redis.call('PEXPIREAT', KEYS[1], last[2]) end
return 1`,
  sessionFormerNotes: `${time}
return redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', now / 1000), '+inf')`,
  usersEnter: `${time}
redis.call('ZADD', KEYS[1], 'GT', ARGV[1], ARGV[2])
return redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now / 1000))`,
  usersPresent: `${time}
local from = string.format('%.0f', now / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], from, '+inf', 'LIMIT', 0, ARGV[1])`,
  // A state that is known already is late, unless whoever read it came back to it from a later one.
  usersAnnounce: `
local states = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', '+inf', 'WITHSCORES')
local last, own, before = 0, nil, nil
for at = 1, #states, 2 do
  local place = tonumber(states[at + 1])
  if place > last then last = place end
  if states[at] == ARGV[1] then own = place end
  if states[at] == ARGV[2] then before = place end
end
if own and own == last then return 1 end
if own and not (before and before > own) then return 0 end
if ARGV[2] ~= '' and not before then
  redis.call('ZADD', KEYS[1], last + 1, ARGV[2])
  last = last + 1
end
redis.call('ZADD', KEYS[1], last + 1, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', last - 99)
return 1`,
  sessionUnlock: `
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0`
}

interface Options {
  readonly redis: Redis | Cluster
  /** What every key begins with. */
  readonly prefix: string
  /** Brings the news of changes; see redis-feed.ts. */
  readonly follow: (follower: Follower, names: { readonly tracked: string, readonly session: string, readonly epoch: string }) => void
  /** Without it a write counts as soon as the primary has it. */
  readonly replicated?: ReplicatedWrites
  /** Tells when a server may be another one than before, before anything else is asked of it. */
  readonly onPrimary?: (listener: () => void) => void
}

/** What a write waits for. */
interface ReplicatedWrites {
  readonly run: <T>(key: string, confirmation: 'every' | 'connected', write: (on: Redis) => Promise<T>) => Promise<T>
}

/** The commands of the store, for each connection that it writes over. */
export function defineCommands (redis: Redis | Cluster): void {
  for (const [name, lua] of Object.entries(scripts)) redis.defineCommand(name, { numberOfKeys: 1, lua })
}

/** The store does not own the client: whoever made it closes it. */
export function createRedisStore (options: Options): SessionStore {
  const { redis, prefix, follow, replicated, onPrimary = () => {} } = options
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
  const journal = createRevocationJournal()
  const write = async <T>(key: string, confirmation: 'every' | 'connected', work: (on: Redis | Cluster) => Promise<T>) =>
    await answer(replicated === undefined ? work(redis) : replicated.run(key, confirmation, work))

  // Sent before any read over the same connection. In full, since a script that has to be loaded first would come later.
  onPrimary(() => {
    for (const { key, tombstone, ttlMs } of journal.recent()) {
      redis.eval(scripts.sessionEnd, 1, session + key, tombstone, ttlMs, epitaphMark).catch(() => {})
    }
  })

  async function notesOf (user: IdentityKey): Promise<readonly Note[]> {
    const [noted, former] = await answer(Promise.all([
      redis.sessionNotes(placeOf(user)),
      redis.sessionFormerNotes(formerPlaceOf(user))
    ]))
    return mergeNotes(noted, former)
  }

  return {
    async create (key, record, ttlMs) {
      const name = session + key
      const written = await write(name, 'connected', async on => await on.set(name, record, 'PX', ttlMs, 'NX'))
      if (written !== 'OK') throw alreadyThere()
    },
    async read (key) {
      let found: [string, number] | null
      try {
        found = await redis.sessionRead(session + key)
      } catch (error) {
        // A key of another type is surely no session of ours.
        if (error instanceof Error && error.message.includes('WRONGTYPE')) return undefined
        throw new StoreUnavailable(error)
      }
      if (found !== null && (!Array.isArray(found) || typeof found[0] !== 'string' || typeof found[1] !== 'number')) throw nonsense()
      // Without a time to live it is not ours either: we never write such.
      return found === null || found[1] < 0 ? undefined : { record: found[0], ttlMs: found[1] }
    },
    async touch (key, ttlMs, aboveMs) {
      await answer(redis.sessionTouch(session + key, Math.ceil(ttlMs), aboveMs))
    },
    async replace (key, from, to) {
      return await answer(redis.sessionReplace(session + key, from, to)) === 1
    },
    async end (key, epitaph, ttlMs) {
      const name = session + key
      journal.add({ key, tombstone: epitaph, ttlMs })
      return await write(name, 'every', async on => await on.sessionEnd(name, epitaph, ttlMs, epitaphMark)) === 1
    },
    async note (user, key, until) {
      const place = placeOf(user)
      const former = formerPlaceOf(user)
      const [noted, [, found]] = await Promise.all([
        write(place, 'connected', async on => await on.sessionNote(place, until, key)),
        write(former, 'connected', async on => await Promise.all([
          on.sessionFormerNote(former, until, key),
          on.sessionFormerNotes(former)
        ]))
      ])
      return mergeNotes(noted, found)
    },
    notesOf,
    keysOf: async user => (await notesOf(user)).map(({ key }) => key),
    async forget (user, keys) {
      if (keys.length === 0) return
      await answer(Promise.all([
        redis.hdel(placeOf(user), ...keys),
        redis.zrem(formerPlaceOf(user), ...keys)
      ]))
    },
    async enter (user, until) {
      const member = JSON.stringify([user.source, user.id, user.username])
      await answer(redis.usersEnter(signedInKey, until, member))
    },
    async signedIn (max) {
      const members: unknown = await answer(redis.usersPresent(signedInKey, max))
      if (!Array.isArray(members)) throw nonsense()
      return members.flatMap(readSignedIn)
    },
    async announceUsers (source, digest, before = '') {
      return await answer(redis.usersAnnounce(`${prefix}users:${source}`, digest, before)) === 1
    },
    async epoch () {
      const found = Number(await answer(redis.get(epochKey)) ?? 0)
      // No session could be told from one that was ended.
      if (!Number.isSafeInteger(found)) throw new StoreUnavailable(new Error(`${epochKey} in Redis is no number`))
      return found
    },
    async raiseEpoch () {
      return await write(epochKey, 'every', async on => await on.incr(epochKey))
    },
    async lock (name, owner, ttlMs) {
      return await answer(redis.set(lockKey(name), owner, 'PX', ttlMs, 'NX')) === 'OK'
    },
    async unlock (name, owner) {
      await answer(redis.sessionUnlock(lockKey(name), owner))
    },
    follow (follower) {
      follow(follower, { tracked, session, epoch: epochKey })
    },
    async ping () {
      return await redis.ping().then(() => true, () => false)
    },
    async close () {}
  }
}

const alreadyThere = () => new StoreUnavailable(new Error('a session with this id exists already'))

/** Notes of both kinds, oldest first; those of former versions, whose order is unknown, lead. */
function mergeNotes (flat: unknown, former: unknown): readonly Note[] {
  if (!isListOfTexts(flat) || !isListOfTexts(former)) throw nonsense()
  const notes: Array<Required<Note>> = []
  for (let index = 0; index < flat.length; index += 2) {
    notes.push({ key: flat[index] ?? '', at: Number(flat[index + 1]) })
  }
  const known = new Set(notes.map(({ key }) => key))
  return [
    ...former.filter(key => !known.has(key)).map(key => ({ key })),
    ...notes.toSorted((a, b) => a.at - b.at)
  ]
}

const isListOfTexts = (given: unknown): given is string[] => {
  return Array.isArray(given) && given.every(each => typeof each === 'string')
}

/** What is no entry of ours names nobody. */
function readSignedIn (member: unknown): SignedIn[] {
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
const nonsense = () => new StoreUnavailable(new Error('Redis gave an answer that makes no sense'))

async function answer<T> (command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (error) {
    throw new StoreUnavailable(error)
  }
}

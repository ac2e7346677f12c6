/** Failures of sign-in in Redis: a key for each bucket, and a sorted set of those that are used up. */
import type { Cluster, Redis, Result } from 'ioredis'
import { eachMs, roomMs } from './gcra.ts'
import { type Bucket, createMemoryLockouts, type Lockouts } from './lockouts.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    takeFailures(...args: ReadonlyArray<string | number>): Result<string[], Context>
    giveBackFailures(...args: ReadonlyArray<string | number>): Result<null, Context>
    listLocks(locks: string): Result<string[], Context>
  }
}

// KEYS: the buckets, then the sorted set. ARGV: of each bucket its name, the time of a failure and
// the room, in milliseconds.
const common = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local locks = KEYS[#KEYS]
-- No fuller than its size: the rate may have changed.
local function bucket(i)
  local at = (i - 1) * 3
  local name, each, room = ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  local full = math.max(tonumber(redis.call('GET', KEYS[i]) or 0) or 0, now)
  if full > now + room then
    full = now + room
    redis.call('SET', KEYS[i], string.format('%.3f', full), 'PX', math.ceil(room))
    redis.call('ZADD', locks, 'XX', now + each, name)
  end
  return full, name, each, room
end
-- The milliseconds until one more failure is free.
local function wait(full, each, room) return math.max(0, math.ceil(full + each - room - now)) end`

const take = `${common}
local answer = { 1 }
for i = 1, #KEYS - 1 do
  local full, _, each, room = bucket(i)
  answer[i + 1] = wait(full, each, room)
  if answer[i + 1] > 0 then answer[1] = 0 end
end
if answer[1] == 0 then return answer end
redis.call('ZREMRANGEBYSCORE', locks, '-inf', now)
for i = 1, #KEYS - 1 do
  local full, name, each, room = bucket(i)
  local after = full + each
  redis.call('SET', KEYS[i], string.format('%.3f', after), 'PX', math.ceil(after - now))
  answer[i + 1] = wait(after, each, room)
  if answer[i + 1] > 0 then redis.call('ZADD', locks, now + answer[i + 1], name) end
end
local last = redis.call('ZREVRANGE', locks, 0, 0, 'WITHSCORES')[2]
if last then redis.call('PEXPIREAT', locks, math.ceil(last)) end
return answer`

const giveBack = `${common}
for i = 1, #KEYS - 1 do
  local full, name, each, room = bucket(i)
  local after = full - each
  if after > now then redis.call('SET', KEYS[i], string.format('%.3f', after), 'PX', math.ceil(after - now))
  else redis.call('DEL', KEYS[i]) end
  if wait(after, each, room) == 0 then redis.call('ZREM', locks, name) end
end
return nil`

const list = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local answer = redis.call('ZRANGEBYSCORE', KEYS[1], now + 1, '+inf', 'WITHSCORES')
for i = 2, #answer, 2 do answer[i] = tostring(math.ceil(answer[i] - now)) end
return answer`

/** @param prefix of all keys: `{cg}:` */
export function createRedisLockouts(redis: Redis | Cluster, prefix: string): Lockouts {
  redis.defineCommand('takeFailures', { lua: take })
  redis.defineCommand('giveBackFailures', { lua: giveBack })
  redis.defineCommand('listLocks', { numberOfKeys: 1, lua: list })
  const locks = `${prefix}locks`
  const keyOf = (key: string) => `${prefix}f:${key}`
  const call = (buckets: readonly Bucket[]) => [
    buckets.length + 1,
    ...buckets.map(({ key }) => keyOf(key)),
    locks,
    ...buckets.flatMap(({ key, rate }) => [key, eachMs(rate), roomMs(rate)])
  ]

  return {
    // Where nothing is counted, no sign-in waits for Redis.
    take: async buckets => {
      if (buckets.length === 0) return { isTaken: true, waitMs: [] }
      const [isTaken, ...waitMs] = (await redis.takeFailures(...call(buckets))).map(Number)
      return { isTaken: isTaken === 1, waitMs }
    },
    giveBack: async buckets => {
      if (buckets.length > 0) await redis.giveBackFailures(...call(buckets))
    },
    list: async () => {
      const pairs = await redis.listLocks(locks)
      return Array.from({ length: pairs.length / 2 }, (_, index) => ({
        key: pairs[index * 2] as string,
        waitMs: Number(pairs[index * 2 + 1])
      }))
    },
    lift: async keys => {
      if (keys.length === 0) return
      await Promise.all([redis.del(...keys.map(keyOf)), redis.zrem(locks, ...keys)])
    }
  }
}

/** After Redis did not answer, it is not asked for so long: a sign-in would wait for it each time. */
const pauseMs = 1000

/** While Redis is away, each process counts for itself; nothing of that is told later. */
export function lockoutsWithFallback(shared: Lockouts, onAway: (error: unknown) => void): Lockouts {
  const local = createMemoryLockouts()
  let askAgainAt = -Infinity
  return {
    ...shared,
    take: async buckets => {
      let mayBeShared = false
      if (performance.now() >= askAgainAt) {
        try {
          return await shared.take(buckets)
        } catch (error) {
          onAway(error)
          // Otherwise Redis answered, and refused these keys.
          mayBeShared = (error as Error).name !== 'ReplyError'
          if (mayBeShared) askAgainAt = performance.now() + pauseMs
        }
      }
      return { ...(await local.take(buckets)), isLocal: true, mayBeShared }
    },
    giveBack: async (buckets, taken) => {
      if (taken.isLocal) await local.giveBack(buckets, taken)
      // A right password whose failure cannot be given back is free again in time.
      if (taken.mayBeShared) void shared.giveBack(buckets, taken).catch(() => {})
      else if (!taken.isLocal) await shared.giveBack(buckets, taken).catch(onAway)
    },
    lift: async keys => {
      await local.lift(keys)
      await shared.lift(keys)
    }
  }
}

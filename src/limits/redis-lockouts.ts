/** Failures of sign-in in Redis: a key for each bucket, and a sorted set of those that are used up. */
import type { Cluster, Redis } from 'ioredis'
import { eachMs, roomMs } from './gcra.ts'
import { type Bucket, createMemoryLockouts, type Lockouts, type Taken } from './lockouts.ts'

/**
 * KEYS: the buckets, then the sorted set. ARGV: 1 failure or -1, then of each bucket its name, the
 * time of a failure and the room, in milliseconds. Where one has no room, none gets a failure.
 */
const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local locks, failed = KEYS[#KEYS], tonumber(ARGV[1])
local buckets, answer = {}, { 1 }
for i = 1, #KEYS - 1 do
  local name, each, room = ARGV[i * 3 - 1], tonumber(ARGV[i * 3]), tonumber(ARGV[i * 3 + 1])
  -- No fuller than its size: the rate may have changed.
  local full = math.min(math.max(tonumber(redis.call('GET', KEYS[i]) or 0) or 0, now), now + room)
  buckets[i] = { name = name, each = each, room = room, full = full }
  if failed > 0 and full + each - room > now then answer[1] = 0 end
end
redis.call('ZREMRANGEBYSCORE', locks, '-inf', now)
for i, bucket in ipairs(buckets) do
  local after = bucket.full + failed * answer[1] * bucket.each
  if after > now then redis.call('SET', KEYS[i], string.format('%.3f', after), 'PX', math.ceil(after - now))
  else redis.call('DEL', KEYS[i]) end
  local wait = math.max(0, math.ceil(after + bucket.each - bucket.room - now))
  answer[i + 1] = wait
  if wait > 0 then redis.call('ZADD', locks, now + wait, bucket.name)
  else redis.call('ZREM', locks, bucket.name) end
end
local last = redis.call('ZREVRANGE', locks, 0, 0, 'WITHSCORES')[2]
if last then redis.call('PEXPIREAT', locks, math.ceil(last)) end
return answer`

export function createRedisLockouts(redis: Redis | Cluster, prefix: string): Lockouts {
  const locks = `${prefix}locks`
  const keyOf = (key: string) => `${prefix}f:${key}`
  const count = async (buckets: readonly Bucket[], failed: 1 | -1): Promise<Taken> => {
    // Where nothing is counted, no sign-in waits for Redis.
    if (buckets.length === 0) return { isTaken: true, waitMs: [] }
    const keys = [...buckets.map(({ key }) => keyOf(key)), locks]
    const rates = buckets.flatMap(({ key, rate }) => [key, eachMs(rate), roomMs(rate)])
    const answer = await redis.eval(script, keys.length, ...keys, failed, ...rates)
    const [isTaken, ...waitMs] = answer as number[]
    return { isTaken: isTaken === 1, waitMs }
  }

  return {
    take: async buckets => await count(buckets, 1),
    giveBack: async buckets => void (await count(buckets, -1)),
    list: async () => {
      const [seconds, micros] = await redis.time()
      const now = Number(seconds) * 1000 + Number(micros) / 1000
      const pairs = await redis.zrangebyscore(locks, `(${now}`, '+inf', 'WITHSCORES')
      // Each is followed by its time.
      return pairs.flatMap((key, at) => {
        return at % 2 === 0 ? { key, waitMs: Math.ceil(Number(pairs[at + 1]) - now) } : []
      })
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

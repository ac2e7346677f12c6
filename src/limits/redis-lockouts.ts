/** Lockouts that all replicas share, in Redis. */
import type { Cluster, Redis, Result } from 'ioredis'
import type { LockoutRule, Lockouts } from './lockout.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    lockoutAttempt (key: string, ...given: Array<string | number>): Result<unknown, Context>
    lockoutLook (key: string, ...given: Array<string | number>): Result<unknown, Context>
    lockoutGiveBack (key: string, ...given: Array<string | number>): Result<unknown, Context>
  }
}

/** The same as lockout.ts, by Redis' own clock. ARGV: after, within, delay, longest, forget, strict; the locks of the attempt to give back; another clock's time, or nothing. */
const common = `
local after, within, delay, longest, forget, strict = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6] == '1'
local now = tonumber(ARGV[8])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local failed, forgotten, locks, until_ = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+) (%d+) (%d+)$')
failed, forgotten, locks, until_ = tonumber(failed) or 0, tonumber(forgotten) or 0, tonumber(locks) or 0, tonumber(until_) or 0
local function put (a, b, c, d)
  local ends = math.max(b, c > 0 and d + forget or 0)
  if ends <= now then return redis.call('DEL', KEYS[1]) end
  redis.call('SET', KEYS[1], string.format('%d %d %d %d', a, b, c, d), 'PX', string.format('%d', ends - now))
end`

const attemptScript = `${common}
if now < until_ then return { until_ - now, locks, 0, now } end
local fresh = now >= forgotten
local failures = (fresh and 0 or failed) + 1
if now >= until_ + forget then locks = 0 end
if failures < after then
  put(failures, fresh and now + within or forgotten, locks, until_)
  return { 0, locks, 0, now }
end
local lock = math.min(longest, delay * 2 ^ math.min(locks, 40))
put(strict and after - 1 or 0, strict and now + lock + within or 0, locks + 1, now + lock)
return { 0, locks, lock, now }`

const lookScript = `${common}
return math.max(0, until_ - now)`

const giveBackScript = `${common}
local before = tonumber(ARGV[7])
if locks == before then
  if failed > 0 then put(failed - 1, forgotten, locks, until_) end
elseif locks == before + 1 and now < until_ then
  put(after - 1, now + within, before, 0)
  return 1
end
return 0`

/**
 * Rejects when Redis cannot answer. Each key is counted by itself, so that a Cluster may hold it anywhere; who is locked
 * stands in a list beside, for operators.
 *
 * @param now another clock than Redis' own, for tests
 */
export function createRedisLockouts (redis: Redis | Cluster, prefix: string, now?: () => number): Lockouts {
  redis.defineCommand('lockoutAttempt', { numberOfKeys: 1, lua: attemptScript })
  redis.defineCommand('lockoutLook', { numberOfKeys: 1, lua: lookScript })
  redis.defineCommand('lockoutGiveBack', { numberOfKeys: 1, lua: giveBackScript })
  const bans = `${prefix}bans`
  const keyOf = (key: string) => `${prefix}lockout:${key}`
  const given = ({ after, withinMs, delayMs, longestMs, forgetMs, strict }: LockoutRule, locks: number) => [after, withinMs, delayMs, longestMs, forgetMs, strict ? 1 : 0, locks, now === undefined ? '' : now()]
  const redisTime = async () => {
    if (now !== undefined) return now()
    const [seconds, micros] = await redis.time()
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
  }

  return {
    async attempt (key, rule) {
      const answer: unknown = await redis.lockoutAttempt(keyOf(key), ...given(rule, 0))
      if (!Array.isArray(answer) || answer.length !== 4 || !answer.every(Number.isInteger)) throw new Error('Redis gave an answer that makes no sense')
      const [waitMs, locks, lockMs, time] = answer as [number, number, number, number]
      if (lockMs > 0) {
        await redis.zadd(bans, time + lockMs, key)
        await redis.zremrangebyscore(bans, '-inf', time)
      }
      return { waitMs, locks, lockMs }
    },
    async look (key, rule) {
      const waitMs: unknown = await redis.lockoutLook(keyOf(key), ...given(rule, 0))
      if (typeof waitMs !== 'number') throw new Error('Redis gave an answer that makes no sense')
      return waitMs
    },
    async giveBack (key, rule, attempt) {
      if (await redis.lockoutGiveBack(keyOf(key), ...given(rule, attempt.locks)) === 1) await redis.zrem(bans, key)
    },
    async list () {
      const found = await redis.zrangebyscore(bans, `(${await redisTime()}`, '+inf', 'WITHSCORES')
      return Array.from({ length: found.length / 2 }, (_, index) => ({ key: String(found[index * 2]), until: Number(found[index * 2 + 1]) }))
    },
    async lift (keys) {
      await Promise.all(keys.map(key => redis.del(keyOf(key))))
      if (keys.length > 0) await redis.zrem(bans, ...keys)
    },
    close: () => {}
  }
}

/** Lockouts that all replicas share, in Redis. */
import { randomUUID } from 'node:crypto'
import type { Cluster, Redis, Result } from 'ioredis'
import { besides, withoutBraces } from '../redis-keys.ts'
import {
  type ActiveLock,
  type CountedAttempt,
  type LockoutRule,
  type Lockouts,
  placeMs
} from './lockout.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    lockoutAttempt(key: string, ...args: Array<string | number>): Result<unknown, Context>
    lockoutLook(key: string, ...args: Array<string | number>): Result<unknown, Context>
    lockoutRefund(key: string, ...args: Array<string | number>): Result<unknown, Context>
    lockoutAdmit(key: string, ...args: Array<string | number>): Result<unknown, Context>
    lockoutSettle(key: string, ...args: Array<string | number>): Result<unknown, Context>
  }
}

/**
 * lockout.ts in Lua, by Redis' clock. ARGV: after, within, delay, longest, forget, strict; the
 * locks of the attempt to refund, or nothing; another clock's time, or nothing; the id of the
 * attempt or place; its time to live. KEYS[2]: ids, by the time they expire.
 */
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

const countFailure = `
if now < until_ then return { until_ - now, locks, 0, now, forgotten, until_ } end
local fresh = now >= forgotten
local failures = (fresh and 0 or failed) + 1
if now >= until_ + forget then locks = 0 end
if fresh then forgotten = now + within end
if failures < after then
  put(failures, forgotten, locks, until_)
  return { 0, locks, 0, now, forgotten, until_ }
end
local lock = math.min(longest, delay * 2 ^ math.min(locks, 40))
put(strict and after - 1 or 0, strict and now + lock + within or 0, locks + 1, now + lock)
return { 0, locks, lock, now, forgotten, until_ }`

const rememberId = `
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
redis.call('ZADD', KEYS[2], now + ARGV[10], ARGV[9])
redis.call('PEXPIRE', KEYS[2], ARGV[10])`

const attemptScript = `${common}
if now >= until_ then
${rememberId}
end
${countFailure}`

const admitScript = `${common}
if now < until_ then return { 0, until_ - now } end
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local left = math.max(1, after - (now >= forgotten and 0 or failed))
if redis.call('ZCARD', KEYS[2]) >= left then return { 0, 0 } end
${rememberId}
return { 1, 0 }`

/**
 * It is sent again where its answer was late, so KEYS[3] remembers the places whose failures are
 * counted. The running lock is answered again, since its answer may be what was lost.
 */
const settleScript = `${common}
redis.call('ZREM', KEYS[2], ARGV[9])
if ARGV[11] ~= '1' then return { 0, locks, 0, now, forgotten, until_ } end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
if redis.call('ZADD', KEYS[3], 'NX', now + ARGV[12], ARGV[9]) == 0 then
  return { 0, locks, math.max(0, until_ - now), now, forgotten, until_ }
end
redis.call('PEXPIRE', KEYS[3], ARGV[12])
${countFailure}`

const lookScript = `${common}
return math.max(0, until_ - now)`

const refundScript = `${common}
if redis.call('ZREM', KEYS[2], ARGV[9]) == 0 then return 0 end
local before = tonumber(ARGV[7]) or (now < until_ and locks - 1 or locks)
if locks == before then
  if failed > 0 then put(failed - 1, forgotten, locks, until_) end
elseif locks == before + 1 and now < until_ then
  local ends = tonumber(ARGV[11]) or 0
  put(after - 1, now < ends and ends or now + within, before, tonumber(ARGV[12]) or now)
  return 1
elseif locks == before + 1 then
  put(failed, forgotten, before, until_)
end
return 0`

/** Attempts can be refunded for so long, such as after an outage. */
const attemptMs = 3_600_000
/** A failure that is sent again within this time is not counted again. */
const settledMs = attemptMs

/**
 * Rejects when Redis cannot answer. Each key is counted apart, so that a Cluster may store it
 * anywhere; a separate list has the locked keys, for operators.
 * @param now another clock than Redis' own, for tests
 */
export function createRedisLockouts(
  redis: Redis | Cluster,
  prefix: string,
  now?: () => number
): Lockouts {
  defineScripts(redis)
  const locks = createLockList(redis, `${prefix}lockouts`, now)
  const keyOf = (key: string) => `${prefix}lockout:${withoutBraces(key)}`
  const beside = (key: string, what: string) => besides(prefix, keyOf(key), what)
  const argumentsOf = (rule: LockoutRule, locksBefore: number | '' = 0) => [
    rule.after,
    rule.withinMs,
    rule.delayMs,
    rule.maxDelayMs,
    rule.forgetMs,
    rule.strict ? 1 : 0,
    locksBefore,
    now === undefined ? '' : now()
  ]

  async function counted(key: string, reply: unknown): Promise<Omit<CountedAttempt, 'id'>> {
    const [waitMs = 0, before = 0, lockMs = 0, at = 0, ...ends] = numbersOf(reply, 6)
    if (lockMs > 0) await locks.add(key, at, lockMs)
    const [forgottenAt, unlockedAt] = ends
    return { waitMs, locks: before, lockMs, forgottenAt, unlockedAt }
  }

  return {
    async attempt(key, rule, id = randomUUID()) {
      const keys = [keyOf(key), beside(key, 'attempts')] as const
      const reply: unknown = await redis.lockoutAttempt(
        ...keys,
        ...argumentsOf(rule),
        id,
        attemptMs
      )
      return { id, ...(await counted(key, reply)) }
    },
    async look(key, rule) {
      const [waitMs = 0] = numbersOf([await redis.lockoutLook(keyOf(key), ...argumentsOf(rule))], 1)
      return waitMs
    },
    async refund(key, rule, { id, locks: before, forgottenAt = '', unlockedAt = '' }) {
      const keys = [keyOf(key), beside(key, 'attempts')] as const
      const more = [...argumentsOf(rule, before ?? ''), id, attemptMs, forgottenAt, unlockedAt]
      const unlocked = await redis.lockoutRefund(...keys, ...more)
      if (unlocked === 1) await locks.remove([key])
    },
    async admit(key, rule, place = randomUUID()) {
      const keys = [keyOf(key), beside(key, 'places')] as const
      const reply: unknown = await redis.lockoutAdmit(...keys, ...argumentsOf(rule), place, placeMs)
      const [isAdmitted, waitMs = 0] = numbersOf(reply, 2)
      return { place: isAdmitted === 1 ? place : undefined, waitMs }
    },
    async settle(key, rule, place, failed) {
      const keys = [keyOf(key), beside(key, 'places'), beside(key, 'settled')] as const
      const more = [...argumentsOf(rule), place, placeMs, failed ? 1 : 0, settledMs]
      const { lockMs } = await counted(key, await redis.lockoutSettle(...keys, ...more))
      return lockMs
    },
    list: locks.list,
    async lift(keys) {
      await Promise.all(keys.map(key => redis.del(keyOf(key))))
      await locks.remove(keys)
    },
    close: () => {}
  }
}

function defineScripts(redis: Redis | Cluster): void {
  redis.defineCommand('lockoutAttempt', { numberOfKeys: 2, lua: attemptScript })
  redis.defineCommand('lockoutLook', { numberOfKeys: 1, lua: lookScript })
  redis.defineCommand('lockoutRefund', { numberOfKeys: 2, lua: refundScript })
  redis.defineCommand('lockoutAdmit', { numberOfKeys: 2, lua: admitScript })
  redis.defineCommand('lockoutSettle', { numberOfKeys: 3, lua: settleScript })
}

/**
 * The keys that are locked, for operators: a sorted set beside the states, by the end of each lock.
 */
function createLockList(redis: Redis | Cluster, list: string, now?: () => number) {
  async function redisTime(): Promise<number> {
    if (now !== undefined) return now()
    const [seconds, micros] = await redis.time()
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000)
  }
  return {
    add: async (key: string, at: number, lockMs: number): Promise<void> => {
      await redis.zadd(list, at + lockMs, key)
      await redis.zremrangebyscore(list, '-inf', at)
    },
    remove: async (keys: readonly string[]): Promise<void> => {
      if (keys.length > 0) await redis.zrem(list, ...keys)
    },
    list: async (): Promise<ActiveLock[]> => {
      const pairs = await redis.zrangebyscore(list, `(${await redisTime()}`, '+inf', 'WITHSCORES')
      return Array.from({ length: pairs.length / 2 }, (_, index) => ({
        key: String(pairs[index * 2]),
        until: Number(pairs[index * 2 + 1])
      }))
    }
  }
}

function numbersOf(reply: unknown, count: number): number[] {
  const isSound = Array.isArray(reply) && reply.length === count && reply.every(Number.isInteger)
  if (!isSound) throw new Error('Redis gave an answer that makes no sense')
  return reply as number[]
}

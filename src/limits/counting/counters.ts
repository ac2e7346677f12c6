/** Counters of limits: how often a key was hit in its window, in memory or in Redis. */
import { randomUUID } from 'node:crypto'
import type { Cluster, Redis, Result } from 'ioredis'
import { BoundedMap } from '../../bounded-map.ts'
import { steadyNow } from '../../steady-clock.ts'
import { besides, withoutBraces } from '../redis-keys.ts'
import { createFallback, type FallbackOptions } from './with-fallback.ts'

export interface Count {
  readonly current: number
  /** Milliseconds until the window ends. */
  readonly ttl: number
  /** The window's end, by the clock of the counters; tells whether a refund is of this window. */
  readonly endsAt?: number
  /** Whether it was counted in this process alone, since Redis did not answer. */
  readonly isLocal?: boolean
}

export interface Counters {
  /** Counts one and says how many there are now. The window starts with the first. */
  hit(key: string, windowMs: number): Promise<Count>
  /**
   * Takes one hit back; the count never falls below 0.
   * @param counted the result of `hit`, so that the hit is taken back where it was counted, and not
   *   from a later window
   * @param id of the refund: Redis may get it several times, and takes back one hit
   */
  refund(key: string, counted?: Count, id?: string): Promise<void>
  /** The current count, without a hit. */
  look(key: string): Promise<Count>
  /** Counts anew from now on. */
  forget(key: string): Promise<void>
  close(): void
}

const maxKeys = 100_000
/** Ends of one window as Redis tells them: its time and the rest are whole milliseconds. */
const roundingMs = 2
const nothing: Count = { current: 0, ttl: 0 }

/** Bounded: keys are attacker-controlled, so the oldest gives way. */
export function createMemoryCounters(now: () => number = steadyNow): Counters {
  const windows = new BoundedMap<{ current: number; endsAt: number }>(maxKeys)
  const sweep = setInterval(() => {
    const time = now()
    for (const [key, { endsAt }] of [...windows]) if (endsAt <= time) windows.delete(key)
  }, 60_000)
  sweep.unref()
  return {
    async hit(key, windowMs) {
      const time = now()
      let window = windows.peek(key)
      if (window === undefined || window.endsAt <= time) {
        windows.set(key, (window = { current: 0, endsAt: time + windowMs }))
      }
      // A window that a reload shortened ends in time.
      window.endsAt = Math.min(window.endsAt, time + windowMs)
      window.current++
      const { current, endsAt } = window
      return { current, ttl: endsAt - time, endsAt }
    },
    async refund(key, { endsAt = Infinity } = nothing) {
      const window = windows.peek(key)
      if (window !== undefined && window.current > 0 && window.endsAt <= endsAt) window.current--
    },
    async look(key) {
      const window = windows.peek(key)
      const left = window === undefined ? 0 : window.endsAt - now()
      return window === undefined || left <= 0 ? nothing : { current: window.current, ttl: left }
    },
    async forget(key) {
      windows.delete(key)
    },
    close: () => clearInterval(sweep)
  }
}

declare module 'ioredis' {
  interface RedisCommander<Context> {
    counterHit(key: string, windowMs: number): Result<[number, number, number], Context>
    counterRefund(key: string, ids: string, id: string, endsAt: number): Result<number, Context>
  }
}

const redisNow = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

// A key without a time to live would count for ever, so it gets one. A window that a reload
// shortened ends in time.
const hitScript = `${redisNow}
local current = redis.call('INCR', KEYS[1])
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 or ttl > tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  ttl = tonumber(ARGV[1])
end
return { current, ttl, now + ttl }`

// Sent again where its answer was late. KEYS[2]: the ids of refunds, until the window ends.
const refundScript = `${redisNow}
local current = tonumber(redis.call('GET', KEYS[1]) or '0')
local ttl = redis.call('PTTL', KEYS[1])
if current <= 0 or ttl <= 0 or now + ttl > tonumber(ARGV[2]) then return 0 end
if redis.call('ZADD', KEYS[2], 'NX', 0, ARGV[1]) == 0 then return current end
redis.call('PEXPIRE', KEYS[2], ttl)
return redis.call('DECR', KEYS[1])`

/** Shared by all replicas. Rejects when Redis cannot answer. */
export function createRedisCounters(redis: Redis | Cluster, prefix: string): Counters {
  redis.defineCommand('counterHit', { numberOfKeys: 1, lua: hitScript })
  redis.defineCommand('counterRefund', { numberOfKeys: 2, lua: refundScript })
  const keyOf = (key: string) => `${prefix}limit:${withoutBraces(key)}`
  return {
    async hit(key, windowMs) {
      const [current, ttl, endsAt]: unknown[] = await redis.counterHit(keyOf(key), windowMs)
      if (typeof current !== 'number' || typeof ttl !== 'number' || typeof endsAt !== 'number') {
        throw new Error('Redis gave an answer that makes no sense')
      }
      return { current, ttl, endsAt }
    },
    async refund(key, { endsAt = Number.MAX_SAFE_INTEGER } = nothing, id = randomUUID()) {
      const keys = [keyOf(key), besides(prefix, keyOf(key), 'refunds')] as const
      await redis.counterRefund(...keys, id, endsAt + roundingMs)
    },
    async look(key) {
      const [current, left] = await Promise.all([redis.get(keyOf(key)), redis.pttl(keyOf(key))])
      return left > 0 ? { current: Number(current) || 0, ttl: left } : nothing
    },
    async forget(key) {
      await redis.del(keyOf(key))
    },
    close: () => {}
  }
}

interface Both extends FallbackOptions {
  readonly shared: Counters
  readonly local: Counters
}

/**
 * Counters that go on in this process while Redis is away, so that no limit falls away with it.
 *
 * A hit whose reply was lost may stay counted in Redis too. It has no id, so a refund could take
 * back another hit, and so allow one guess more. A refund has one, since it is sent until Redis
 * answers in time.
 */
export function countersWithFallback({ shared, local, ...options }: Both): Counters {
  const fallback = createFallback(options)
  return {
    hit: (key, windowMs) =>
      fallback.run(
        () => shared.hit(key, windowMs),
        async () => ({ ...(await local.hit(key, windowMs)), isLocal: true })
      ),
    refund: (key, counted) => {
      if (counted?.isLocal === true) return local.refund(key, counted)
      const id = randomUUID()
      const refund = () => shared.refund(key, counted, id)
      const whileAway = async () => {
        if (counted === undefined) await local.refund(key)
        else fallback.settleLater(refund)
      }
      return fallback.run(refund, whileAway)
    },
    // Operators are told when Redis is away.
    look: key => shared.look(key),
    forget: async key => {
      await local.forget(key)
      await shared.forget(key)
    },
    close: () => {
      fallback.close()
      shared.close()
      local.close()
    }
  }
}

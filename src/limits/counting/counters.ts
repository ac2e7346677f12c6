/** Counters of limits: how often a key was hit in its window, in memory or in Redis. */
import type { Cluster, Redis, Result } from 'ioredis'
import { BoundedMap } from '../../bounded-map.ts'
import { boundedTable, type Movable, movableTables } from '../../movable-state.ts'
import { createFallback } from './with-fallback.ts'

export interface Count {
  readonly current: number
  /** Milliseconds until the window ends. */
  readonly ttl: number
  /** Whether it was counted in this process alone, since Redis did not answer. */
  readonly isLocal?: boolean
}

export interface Counters {
  /** Counts one and says how many there are now. The window starts with the first. */
  hit(key: string, windowMs: number): Promise<Count>
  /**
   * Takes one hit back; the count never falls below 0.
   * @param counted the result of `hit`, so that the hit is taken back where it was counted
   */
  refund(key: string, counted?: Count): Promise<void>
  /** The current count, without a hit. */
  look(key: string): Promise<Count>
  /** Counts anew from now on. */
  forget(key: string): Promise<void>
  close(): void
}

const maxKeys = 100_000
const nothing: Count = { current: 0, ttl: 0 }

/** Bounded: keys are attacker-controlled, so the oldest gives way. */
export function createMemoryCounters(now: () => number = Date.now): Counters & Movable {
  const windows = new BoundedMap<{ current: number; endsAt: number }>(maxKeys)
  const sweep = setInterval(() => {
    const time = now()
    for (const [key, { endsAt }] of [...windows]) if (endsAt <= time) windows.delete(key)
  }, 60_000)
  sweep.unref()
  return {
    ...movableTables({ windows: boundedTable(windows) }),
    async hit(key, windowMs) {
      const time = now()
      let window = windows.peek(key)
      if (window === undefined || window.endsAt <= time) {
        windows.set(key, (window = { current: 0, endsAt: time + windowMs }))
      }
      window.current++
      return { current: window.current, ttl: window.endsAt - time }
    },
    async refund(key) {
      const window = windows.peek(key)
      if (window !== undefined && window.current > 0) window.current--
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
    counterHit(key: string, windowMs: number): Result<[number, number], Context>
    counterRefund(key: string): Result<number, Context>
  }
}

// A key without a time to live would count for ever, so it gets one.
const hitScript = `
local current = redis.call('INCR', KEYS[1])
local ttl = redis.call('PTTL', KEYS[1])
if ttl < 0 then
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
  ttl = tonumber(ARGV[1])
end
return { current, ttl }`

const refundScript = `
local current = tonumber(redis.call('GET', KEYS[1]) or '0')
if current > 0 then return redis.call('DECR', KEYS[1]) end
return 0`

/** Shared by all replicas. Rejects when Redis cannot answer. */
export function createRedisCounters(redis: Redis | Cluster, prefix: string): Counters {
  redis.defineCommand('counterHit', { numberOfKeys: 1, lua: hitScript })
  redis.defineCommand('counterRefund', { numberOfKeys: 1, lua: refundScript })
  return {
    async hit(key, windowMs) {
      const [current, ttl]: unknown[] = await redis.counterHit(`${prefix}limit:${key}`, windowMs)
      if (typeof current !== 'number' || typeof ttl !== 'number') {
        throw new Error('Redis gave an answer that makes no sense')
      }
      return { current, ttl }
    },
    async refund(key) {
      await redis.counterRefund(`${prefix}limit:${key}`)
    },
    async look(key) {
      const [current, left] = await Promise.all([
        redis.get(`${prefix}limit:${key}`),
        redis.pttl(`${prefix}limit:${key}`)
      ])
      return left > 0 ? { current: Number(current) || 0, ttl: left } : nothing
    },
    async forget(key) {
      await redis.del(`${prefix}limit:${key}`)
    },
    close: () => {}
  }
}

/**
 * Counters that go on in this process while Redis is away, so that no limit falls away with it.
 * @param onAway called when that begins and when it is over
 */
export function countersWithFallback(
  shared: Counters,
  local: Counters,
  onAway: (away: boolean) => void,
  now?: () => number
): Counters {
  const fallback = createFallback({ onAway, now })
  return {
    hit: (key, windowMs) =>
      fallback.run(
        () => shared.hit(key, windowMs),
        async () => ({ ...(await local.hit(key, windowMs)), isLocal: true })
      ),
    refund: (key, counted) => {
      if (counted?.isLocal === true) return local.refund(key)
      const refund = () => shared.refund(key)
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

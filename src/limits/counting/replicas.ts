/** Counts the processes that share the counters: each reports itself in Redis. */
import { randomUUID } from 'node:crypto'
import type { Cluster, Redis, Result } from 'ioredis'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    countReplicas(key: string, id: string, forgetMs: number): Result<unknown, Context>
  }
}

export interface Replicas {
  /**
   * At least 1; the last known number while Redis is away. It rises at once, and falls after five
   * turns, since a Redis that comes back empty knows of none at first.
   */
  readonly count: () => number
  /** Whether no other process was seen for ten seconds. A new one is noticed within one. */
  readonly isAlone: () => boolean
  readonly close: () => Promise<void>
}

const script = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZCARD', KEYS[1])`

/** Processes that start together must not each take themselves for alone. */
const trustedAfter = 10
const fallsAfter = 5

export function createReplicas(redis: Redis | Cluster, prefix: string, everyMs = 1000): Replicas {
  // A process that is delayed for a while still counts.
  const forgetMs = 15 * everyMs
  redis.defineCommand('countReplicas', { numberOfKeys: 1, lua: script })
  const key = `${prefix}replicas`
  const id = randomUUID()
  let lastCount = 1
  /** Of turns in a row that have seen fewer. */
  let fewer: number[] = []
  let turnsAlone = 0
  const loseSight = () => {
    turnsAlone = 0
    fewer = []
  }
  const note = (count: number) => {
    turnsAlone = count === 1 ? turnsAlone + 1 : 0
    if (count < lastCount) fewer.push(count)
    else fewer = []
    if (count < lastCount && fewer.length < fallsAfter) return
    lastCount = Math.max(count, ...fewer)
    fewer = []
  }
  const say = () => {
    if (redis.status !== 'ready') return loseSight()
    redis.countReplicas(key, id, forgetMs).then(count => {
      if (typeof count === 'number') note(Math.max(1, count))
    }, loseSight)
  }
  redis.on('ready', say)
  const timer = setInterval(say, everyMs).unref()
  return {
    count: () => lastCount,
    isAlone: () => turnsAlone > trustedAfter,
    close: async () => {
      clearInterval(timer)
      redis.off('ready', say)
      // So that the others need not wait until it expires.
      if (redis.status === 'ready') await redis.zrem(key, id).catch(() => {})
    }
  }
}

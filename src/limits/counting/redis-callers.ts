/** Lists and resets a caller's counters in Redis, and announces resets to all replicas. */
import { randomUUID } from 'node:crypto'
import type { Cluster, Redis, Result } from 'ioredis'
import type { CallerCounts, SubjectKey } from './callers.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    announceReset(key: string, member: string, keepMs: number): Result<unknown, Context>
    newResets(key: string, since: number): Result<unknown, Context>
  }
}

const redisNow = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

const announceScript = `${redisNow}
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return now`

const newScript = `${redisNow}
return { now, redis.call('ZRANGEBYSCORE', KEYS[1], ARGV[1], '+inf') }`

const keepMs = 3_600_000
const scanCount = 1000

export interface RedisCallers extends CallerCounts {
  readonly close: () => void
}

/**
 * Called when a caller was reset by any replica: leases and exceeded keys of this process are then
 * void.
 */
export function createRedisCallers(
  redis: Redis | Cluster,
  prefix: string,
  onReset: (subject: SubjectKey) => void,
  everyMs = 1000
): RedisCallers {
  redis.defineCommand('announceReset', { numberOfKeys: 1, lua: announceScript })
  redis.defineCommand('newResets', { numberOfKeys: 1, lua: newScript })
  const resets = `${prefix}limit-resets`
  let since: number | undefined

  async function keysOf(subject: SubjectKey): Promise<string[]> {
    const begin = `${prefix}limit:${subject}`
    const match = `${begin.replace(/[*?[\]\\]/g, '\\$&')}*`
    const keyNames = new Set<string>()
    const nodes = redis.isCluster ? (redis as Cluster).nodes('master') : [redis as Redis]
    for (const node of nodes) {
      let cursor = '0'
      do {
        const [next, keys] = await node.scan(cursor, 'MATCH', match, 'COUNT', scanCount)
        for (const key of keys) keyNames.add(key.slice(`${prefix}limit:`.length))
        cursor = next
      } while (cursor !== '0')
    }
    return [...keyNames].toSorted()
  }

  /** Applies resets since the last call, by any replica. */
  async function look(): Promise<void> {
    if (redis.status !== 'ready') return
    const answer: unknown = await redis.newResets(resets, since ?? Number.MAX_SAFE_INTEGER)
    if (!Array.isArray(answer) || typeof answer[0] !== 'number' || !Array.isArray(answer[1])) return
    since = answer[0]
    for (const member of answer[1]) {
      if (typeof member === 'string') onReset(member.slice(member.indexOf(' ') + 1) as SubjectKey)
    }
  }

  const timer = setInterval(() => {
    look().catch(() => {})
  }, everyMs).unref()
  return {
    keysOf,
    forget: async subject => {
      for (const key of await keysOf(subject)) await redis.del(`${prefix}limit:${key}`)
      await redis.announceReset(resets, `${randomUUID()} ${subject}`, keepMs)
      onReset(subject)
    },
    close: () => clearInterval(timer)
  }
}

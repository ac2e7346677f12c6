/**
 * Shares usage records by Redis: each process writes its own once a minute, and reads the others'
 * on demand.
 */
import { randomUUID } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { type HourUsage, hourMs, isHourUsage } from './hours.ts'
import type { UsageRecord } from './record.ts'

/** One process' record of one hour. */
export interface ProcessHour {
  readonly process: string
  readonly use: HourUsage
}

export interface RecordedUsage {
  readonly hours: readonly ProcessHour[]
  /** Redis was unavailable: records of other processes are missing. */
  readonly alone: boolean
}

export interface SharedUsage {
  readonly read: (since: number) => Promise<RecordedUsage>
  /** Writes new hours to Redis; failed writes are repeated the next time. */
  readonly leave: () => Promise<void>
  readonly close: () => Promise<void>
}

const everyMs = 60_000

export function createRedisUsage(
  redis: Redis | Cluster,
  prefix: string,
  record: UsageRecord,
  keepMs: number
): SharedUsage {
  const id = randomUUID()
  let left = 0
  const keyOf = (hour: number) => `${prefix}use:${hour}`

  async function leave(): Promise<void> {
    if (redis.status !== 'ready') return
    // The last written hour may have continued.
    for (const use of record.hours().filter(({ hour }) => hour >= left)) {
      await redis.hset(keyOf(use.hour), id, JSON.stringify(use))
      await redis.pexpire(keyOf(use.hour), keepMs + 2 * hourMs)
      left = use.hour
    }
  }

  const timer = setInterval(() => {
    leave().catch(() => {})
  }, everyMs).unref()
  return {
    leave,
    read: async since => {
      const local = record
        .hours()
        .filter(({ until }) => until > since)
        .map(use => ({ process: id, use }))
      const last = local.at(-1)?.use.hour ?? 0
      const first = Math.floor(Math.max(since, (last + 1) * hourMs - keepMs) / hourMs)
      try {
        const stored = await Promise.all(
          Array.from({ length: Math.max(0, last - first + 1) }, (_, index) =>
            redis.hgetall(keyOf(first + index))
          )
        )
        return {
          hours: [
            ...local,
            ...stored.flatMap(hour =>
              Object.entries(hour).flatMap(([process, json]) =>
                process === id ? [] : parsed(json).map(use => ({ process, use }))
              )
            )
          ],
          alone: false
        }
      } catch {
        return { hours: local, alone: true }
      }
    },
    close: async () => {
      clearInterval(timer)
      await leave().catch(() => {})
    }
  }
}

function parsed(json: string): HourUsage[] {
  try {
    const value: unknown = JSON.parse(json)
    return isHourUsage(value) ? [value] : []
  } catch {
    return []
  }
}

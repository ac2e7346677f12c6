/** The records of all processes: each leaves its own in Redis once a minute, and reads the others' only when asked. */
import { randomUUID } from 'node:crypto'
import type { Cluster, Redis } from 'ioredis'
import { type HourUsage, hourMs, isHourUsage } from './hours.ts'
import type { UsageRecord } from './record.ts'

/** What one process saw in one hour. */
export interface ProcessHour {
  readonly process: string
  readonly use: HourUsage
}

export interface RecordedUsage {
  readonly hours: readonly ProcessHour[]
  /** The others could not be asked. */
  readonly alone: boolean
}

export interface SharedUsage {
  readonly read: (since: number) => Promise<RecordedUsage>
  /** Leaves what is new in Redis; what fails is left with the next turn. */
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
    // The last one that was left may have gone on.
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
      const own = record
        .hours()
        .filter(({ until }) => until > since)
        .map(use => ({ process: id, use }))
      const last = own.at(-1)?.use.hour ?? 0
      const first = Math.floor(Math.max(since, (last + 1) * hourMs - keepMs) / hourMs)
      try {
        const found = await Promise.all(
          Array.from({ length: Math.max(0, last - first + 1) }, (_, index) =>
            redis.hgetall(keyOf(first + index))
          )
        )
        return {
          hours: [
            ...own,
            ...found.flatMap(hour =>
              Object.entries(hour).flatMap(([process, json]) =>
                process === id ? [] : parsed(json).map(use => ({ process, use }))
              )
            )
          ],
          alone: false
        }
      } catch {
        return { hours: own, alone: true }
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
    const found: unknown = JSON.parse(json)
    return isHourUsage(found) ? [found] : []
  } catch {
    return []
  }
}

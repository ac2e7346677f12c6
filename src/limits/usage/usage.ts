/** The record of use as the rest of the gateway has it: what feeds it, and where it is read. */
import type { Counters } from '../counting/counters.ts'
import type { Leases } from '../counting/leases.ts'
import type { SharedUsage, RecordedUsage } from './redis-usage.ts'
import { createUsageRecord, type UsageRecord, recordLeases } from './record.ts'

export interface KeptUsage {
  readonly leases: Leases
  readonly counters: Counters
  /** Undefined where no record is kept. */
  readonly read: ((since: number) => Promise<RecordedUsage>) | undefined
  readonly close: () => Promise<void>
}

interface Options {
  readonly leases: Leases
  readonly counters: Counters
  /** 0 keeps no record. */
  readonly keepMs: number
  readonly processes: () => number
  /** Undefined for a process that is alone. */
  readonly share: ((record: UsageRecord) => SharedUsage) | undefined
}

export function keepUsage({ leases, counters, keepMs, processes, share }: Options): KeptUsage {
  if (keepMs === 0) return { leases, counters, read: undefined, close: async () => {} }
  const record = createUsageRecord({ keepMs, processes })
  const shared = share?.(record)
  return {
    leases: recordLeases(leases, record),
    counters: recordAttempts(counters, record),
    read:
      shared?.read ??
      (async since => ({
        hours: record
          .hours()
          .filter(({ until }) => until > since)
          .map(use => ({ process: '', use })),
        alone: false
      })),
    close: async () => {
      await shared?.close()
      record.close()
    }
  }
}

function recordAttempts(counters: Counters, record: UsageRecord): Counters {
  return {
    ...counters,
    hit: async (key, windowMs) => {
      const count = await counters.hit(key, windowMs)
      record.attempt(key, windowMs, count.current)
      return count
    }
  }
}

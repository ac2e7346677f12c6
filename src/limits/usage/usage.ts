/** The record of use as the rest of the gateway has it: what feeds it, and where it is read. */
import type { Counters } from '../counting/counters.ts'
import type { Leases } from '../counting/leases.ts'
import type { SharedUses, Uses } from './redis-usage.ts'
import { createUseRecord, type UseRecord, withRecord } from './record.ts'

export interface KeptUses {
  readonly leases: Leases
  readonly counters: Counters
  /** Undefined where no record is kept. */
  readonly read: ((since: number) => Promise<Uses>) | undefined
  readonly close: () => Promise<void>
}

interface Options {
  readonly leases: Leases
  readonly counters: Counters
  /** 0 keeps no record. */
  readonly keepMs: number
  readonly processes: () => number
  /** Undefined for a process that is alone. */
  readonly share: ((record: UseRecord) => SharedUses) | undefined
}

export function keepUses({ leases, counters, keepMs, processes, share }: Options): KeptUses {
  if (keepMs === 0) return { leases, counters, read: undefined, close: async () => {} }
  const record = createUseRecord({ keepMs, processes })
  const shared = share?.(record)
  return {
    leases: withRecord(leases, record),
    counters: withAttempts(counters, record),
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

function withAttempts(counters: Counters, record: UseRecord): Counters {
  return {
    ...counters,
    hit: async (key, windowMs) => {
      const count = await counters.hit(key, windowMs)
      record.attempt(key, windowMs, count.current)
      return count
    }
  }
}

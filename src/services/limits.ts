/** The counters of limits, which continue in this process while Redis is unavailable. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { CallerCounts, SubjectKey } from '../limits/counting/callers.ts'
import {
  type Counters,
  createMemoryCounters,
  countersWithFallback
} from '../limits/counting/counters.ts'
import { tallyWithFallback } from '../limits/counting/fallback-tally.ts'
import { createLeases, type Leases } from '../limits/counting/leases.ts'
import { createMemoryTally } from '../limits/counting/memory-tally.ts'
import { ForeignKeyError } from '../limits/counting/with-fallback.ts'
import { lockoutsWithFallback } from '../limits/lockout/fallback-lockouts.ts'
import type { Lockouts } from '../limits/lockout/lockout.ts'
import { createMemoryLockouts } from '../limits/lockout/memory-lockouts.ts'
import { type KeptUsage, keepUsage } from '../limits/usage/usage.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Log } from './logger.ts'
import type { Shared } from './shared.ts'

export interface LimitServices {
  /** Of sign-in attempts. */
  readonly counters: Counters
  /** Of all other requests. */
  readonly leases: Leases
  /** The counters of one caller, for operators. */
  readonly callers: CallerCounts
  /** The use of each limit; empty where no record is kept. */
  readonly readUsage: KeptUsage['read']
  readonly lockouts: Lockouts
}

interface Options {
  readonly gateway: GatewayConfig
  /** Undefined for a process that is alone. */
  readonly shared: Shared | undefined
  readonly metrics: Metrics
  readonly log: Log
}

const uncounted =
  'Redis refuses to correct the count of a sign-in: its key may hold something else. ' +
  'The count stays'

const foreignKey =
  'Redis has something else under a key of limits or lockouts: what it counts is counted in each ' +
  'process alone. Delete the key'
const foreignKeyEveryMs = 60_000

export function createLimits({
  gateway,
  shared,
  metrics,
  log
}: Options): LimitServices & { readonly close: () => Promise<void> } {
  const replicas = () => shared?.replicas.count() ?? 1
  const isAlone = () => shared?.replicas.isAlone() ?? true
  const reports = reportsOf(log)
  measureReplicas(metrics, replicas)
  const localCounters = createMemoryCounters()
  const localTally = createMemoryTally()
  const localLockouts = createMemoryLockouts()
  const counters =
    shared === undefined
      ? localCounters
      : countersWithFallback({ shared: shared.counters, local: localCounters, ...reports })
  const tally =
    shared === undefined
      ? localTally
      : tallyWithFallback({
          shared: shared.tally,
          local: localTally,
          replicas,
          onAway: measureLocal(metrics),
          onForeignKey: reports.onForeignKey
        })
  const lockouts =
    shared === undefined
      ? localLockouts
      : lockoutsWithFallback({
          shared: shared.lockouts,
          local: localLockouts,
          replicas,
          ...reports
        })
  const leases = createLeases({ replicas, isAlone, tally })
  const onReset = (subject: SubjectKey) => {
    leases.forget(subject)
    void localTally.forget(subject)
  }
  const sharedCallers = shared?.followCallers(onReset)
  const usage = keepUsage({
    leases,
    counters,
    keepMs: gateway.ops.useRecord,
    processes: replicas,
    share: shared?.shareUsage
  })

  return {
    counters: usage.counters,
    leases: usage.leases,
    callers: sharedCallers ?? {
      keysOf: localTally.keysOf,
      forget: async subject => onReset(subject)
    },
    readUsage: usage.read,
    lockouts,
    close: async () => {
      await usage.close()
      sharedCallers?.close()
      await leases.close()
      counters.close()
      await shared?.replicas.close()
    }
  }
}

/** What the log says of counting without Redis. */
function reportsOf(log: Log) {
  return {
    onAway: (away: boolean) => {
      if (away) log.warn('Redis did not answer: sign-ins are counted in this process until it does')
    },
    onForeignKey: reportForeignKeys(log),
    onDropped: (err: Error) => log.error({ event: 'login.uncounted', err }, uncounted)
  }
}

/** Each request of a caller may meet the same key: one line a minute. */
function reportForeignKeys(log: Log): (error: Error) => void {
  let quietUntil = -Infinity
  return error => {
    const time = performance.now()
    if (time < quietUntil) return
    quietUntil = time + foreignKeyEveryMs
    const fields = { event: 'limits.foreign-key', keys: keysOf(error), reason: error.message }
    log.error(fields, foreignKey)
  }
}

/** The foreign keys, or all of a script that failed: ioredis keeps its call with the error. */
function keysOf(error: Error & { readonly command?: { readonly args: readonly unknown[] } }) {
  if (error instanceof ForeignKeyError) return error.keys
  const [, count, ...keysAndArguments] = error.command?.args ?? []
  return keysAndArguments.slice(0, Number(count))
}

function measureReplicas(metrics: Metrics, replicas: () => number): void {
  metrics.read(
    'console_gateway_limits_replicas',
    'How many processes share the counters of limits, as this one knows.',
    [],
    () => [[[], replicas()]]
  )
}

/** @returns to be called when counting turns local, and when it is shared again */
function measureLocal(metrics: Metrics): (away: boolean) => void {
  const isLocal = metrics
    .gauge(
      'console_gateway_limits_local',
      'Whether limits are counted in this process alone, because Redis is away: 1 or 0.'
    )
    .with()
  return away => isLocal.set(away ? 1 : 0)
}

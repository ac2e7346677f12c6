/** The counts of limits and lockouts, which go on in this process while Redis is unavailable. */
import { HighestUse } from '../limits/highest-use.ts'
import { createMemoryLockouts, type Lockouts } from '../limits/lockouts.ts'
import type { RedisCounts } from '../limits/redis-counts.ts'
import { lockoutsWithFallback } from '../limits/redis-lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Log } from './logger.ts'
import type { Shared } from './shared.ts'

export interface LimitServices {
  readonly counts: SharedCounts
  readonly highestUse: HighestUse
  readonly lockouts: Lockouts
  /** The counts of one caller, for operators. */
  readonly callers: Pick<RedisCounts, 'ofCaller' | 'forget'>
}

interface Options {
  /** Undefined for a process that is alone. */
  readonly shared: Shared | undefined
  readonly metrics: Metrics
  readonly log: Log
}

const foreignKey =
  'Redis has something else under a key of limits: what it counts is counted in each process ' +
  'alone. Delete the key'
const reportEveryMs = 60_000

export function createLimits({
  shared,
  metrics,
  log
}: Options): LimitServices & { readonly close: () => Promise<void> } {
  const onceAMinute = createQuiet()
  const counted = shared?.openCounts((key, error) => {
    const fields = { event: 'limits.foreign-key', keys: [key], reason: error.message }
    onceAMinute(() => log.error(fields, foreignKey))
  })
  const counts = new SharedCounts(counted, measureLocal(metrics))
  const highestUse = new HighestUse()
  metrics.read({
    name: 'console_gateway_limit_highest_use',
    help: 'The most that one caller used of a limit at once, in this hour.',
    labelNames: ['limit'],
    read: () => highestUse.all().map(([limit, used]) => [[limit], used] as const)
  })
  const reportAway = createQuiet()
  const lockouts =
    shared === undefined
      ? createMemoryLockouts()
      : lockoutsWithFallback(shared.lockouts, err => {
          const fields = { event: 'login.uncounted', err }
          reportAway(() =>
            log.warn(fields, 'Redis did not count a failure of sign-in: this process does')
          )
        })

  return {
    counts,
    highestUse,
    lockouts,
    callers: {
      ofCaller: async caller => await (counted ?? counts).ofCaller(caller),
      forget: async caller => {
        await counted?.forget(caller)
        counts.forget(caller)
      }
    },
    close: () => counts.close()
  }
}

/** Each request may meet the same fault: it is reported once a minute. */
function createQuiet(): (report: () => void) => void {
  let quietUntil = -Infinity
  return report => {
    const time = performance.now()
    if (time < quietUntil) return
    quietUntil = time + reportEveryMs
    report()
  }
}

/** @returns to be called when counting turns local, and when it is shared again */
function measureLocal(metrics: Metrics): (isAway: boolean) => void {
  let isLocal = false
  metrics.read({
    name: 'console_gateway_limits_local',
    help: 'Whether limits are counted in this process alone, because Redis is away: 1 or 0.',
    read: () => [[[], isLocal ? 1 : 0]]
  })
  return isAway => {
    isLocal = isAway
  }
}

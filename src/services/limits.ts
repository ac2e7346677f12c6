import { HighestUse } from '../limits/highest-use.ts'
import { createMemoryLockouts } from '../limits/lockouts.ts'
import { createRedisCounts } from '../limits/redis-counts.ts'
import { createRedisLockouts, lockoutsWithFallback } from '../limits/redis-lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import { createQuiet } from '../observability/quiet.ts'
import type { Background, Basis } from './shared.ts'

export function createLimits({ metrics, log }: Basis, { redis, prefix }: Background) {
  const counted = redis && createRedisCounts(redis, prefix)
  const highestUse = new HighestUse()
  const counts = new SharedCounts(counted)
  metrics.read({
    name: 'console_gateway_limit_highest_use',
    help: 'The most that one caller used of a limit at once, in this hour.',
    labelNames: ['limit'],
    read: () => highestUse.all()
  })
  metrics.read({
    name: 'console_gateway_limits_local',
    help: 'Whether limits are counted in this process alone, because Redis is away: 1 or 0.',
    read: () => Number(counts.isAway)
  })
  const reportAway = createQuiet()
  const onAway = (err: unknown) =>
    reportAway(() => {
      const fields = { event: 'login.uncounted', err }
      log.warn(fields, 'Redis did not count a failure of sign-in: this process does')
    })
  const lockouts =
    redis === undefined
      ? createMemoryLockouts()
      : lockoutsWithFallback(createRedisLockouts(redis, prefix), onAway)
  return {
    counts,
    highestUse,
    lockouts,
    callers: {
      ofCaller: async (caller: string) => await (counted ?? counts).ofCaller(caller),
      forget: async (caller: string) => {
        await counted?.forget(caller)
        counts.forget(caller)
      }
    }
  }
}

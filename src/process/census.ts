/** The number of live sessions as a metric, read from the store when somebody asks for metrics. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Metrics } from '../observability/metrics.ts'
import type { Census } from '../session/census.ts'

/** Several scrapers share one count. */
const maxAgeMs = 10_000
/** A scrape does not wait longer. */
const maxWaitMs = 1000

/** @param countAlive throws where the store cannot be asked: the metric is then not there */
export function measureSessions(
  metrics: Metrics,
  countAlive: () => Promise<Census>,
  ticks = () => performance.now()
): void {
  let latest: Promise<Census | undefined>
  let countedAt = -Infinity
  const read = async (key: keyof Census) => {
    if (ticks() - countedAt > maxAgeMs) {
      countedAt = ticks()
      latest = countAlive().catch(() => undefined)
    }
    return (await Promise.race([latest, wait(maxWaitMs, undefined)]))?.[key]
  }
  metrics.read({
    name: 'console_gateway_sessions_alive',
    help: 'Live sessions, of all replicas; an estimate where more than 500 users have one.',
    read: () => read('sessions')
  })
  metrics.read({
    name: 'console_gateway_users_signed_in',
    help: 'Users with a live session, of all replicas; an estimate where there are more than 500.',
    read: () => read('users')
  })
}

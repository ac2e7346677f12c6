/** The number of signed-in users as a metric, read from the store when somebody asks for metrics. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Metrics } from '../observability/metrics.ts'
import type { SessionStore } from '../session/store.ts'

/** Several scrapers share one count. */
const maxAgeMs = 10_000
/** A scrape does not wait longer. */
const maxWaitMs = 1000

/** Where the store cannot be asked, the metric is not there. */
export function measureSessions(
  metrics: Metrics,
  store: Pick<SessionStore, 'signedIn'>,
  ticks = () => performance.now()
): void {
  let latest: Promise<number | undefined>
  let countedAt = -Infinity
  metrics.read({
    name: 'console_gateway_users_signed_in',
    help: 'Users with a live session, of all replicas.',
    read: async () => {
      if (ticks() - countedAt > maxAgeMs) {
        countedAt = ticks()
        latest = store.signedIn(0).then(
          ({ total }) => total,
          () => undefined
        )
      }
      return await Promise.race([latest, wait(maxWaitMs, undefined)])
    }
  })
}

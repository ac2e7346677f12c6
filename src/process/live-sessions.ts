/** The number of live sessions as a metric, read from the store when somebody asks for metrics. */
import type { Metrics } from '../observability/metrics.ts'

interface Census {
  readonly sessions: number
  readonly users: number
}

/** Several scrapers share one count. */
const maxAgeMs = 10_000
/** A scrape does not wait longer: it has the count before, or none. */
const maxWaitMs = 1000

/** @param countAlive throws where the store cannot be asked: the metric is then not there */
export function measureSessions(
  metrics: Metrics,
  countAlive: () => Promise<Census>,
  ticks = () => performance.now()
): void {
  const read = recentCount(countAlive, ticks)
  const add = (name: string, help: string, value: (census: Census) => number) =>
    metrics.read({
      name,
      help,
      read: async () => {
        const census = await read()
        return census === undefined ? [] : [[[], value(census)]]
      }
    })
  add(
    'console_gateway_sessions_alive',
    'Live sessions, of all replicas; an estimate where more than 500 users have one.',
    ({ sessions }) => sessions
  )
  add(
    'console_gateway_users_signed_in',
    'Users with a live session, of all replicas; an estimate where there are more than 500.',
    ({ users }) => users
  )
}

function recentCount(
  countAlive: () => Promise<Census>,
  ticks: () => number
): () => Promise<Census | undefined> {
  let latest: Census | undefined
  let startedAt = -Infinity
  let running: Promise<void> | undefined

  async function count(): Promise<void> {
    startedAt = ticks()
    latest = await countAlive().catch(() => undefined)
    running = undefined
  }

  return async () => {
    if (running === undefined && ticks() - startedAt > maxAgeMs) running = count()
    if (running === undefined) return latest
    const { promise: waited, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, maxWaitMs)
    await Promise.race([running, waited])
    clearTimeout(timer)
    return latest
  }
}

/** What outlives a generation, and the choice of adapters. */
import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Config } from '../config/schema/config.ts'
import { Drift } from '../contract/drift.ts'
import { HighestUse } from '../limits/highest-use.ts'
import { createMemoryLockouts } from '../limits/lockouts.ts'
import { createRedisCounts } from '../limits/redis-counts.ts'
import { createRedisLockouts, lockoutsWithFallback } from '../limits/redis-lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import { SourceFaults } from '../login/credential-source.ts'
import { createFileUsers } from '../login/file-users.ts'
import { Failures } from '../observability/failures.ts'
import { Metrics } from '../observability/metrics.ts'
import { createQuiet } from '../observability/quiet.ts'
import { openTracer, type Tracer } from '../observability/traces/tracer.ts'
import { createPools, type Pools } from '../proxy/pools.ts'
import type { UpstreamEvents } from '../proxy/upstream.ts'
import { MemoryStore } from '../session/memory-store.ts'
import { createSeal } from '../session/seal.ts'
import { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { openLedger, recordRevocations } from './audit.ts'
import type { Log } from './logger.ts'
import { createMaintenance } from './maintenance.ts'
import type { RedisHealth } from './redis-watch.ts'
import { type Background, type Basis, connectRedis } from './shared.ts'

export { createLogger, type Log } from './logger.ts'

export type Services = ReturnType<typeof createServices>

const noRedis =
  'no Redis is configured: sessions live in this process, end with it, and are shared with no other'

export function createServices(config: Config, log: Log, ownTracer?: Tracer) {
  const { gateway } = config
  const metrics = new Metrics()
  const basis = { config, log, metrics }
  const shared = connectRedis(basis)
  if (shared === undefined) log.warn(noRedis)
  const store = shared?.sessions ?? new MemoryStore()
  const background: Background = shared?.background ?? { prefix: '' }
  const limits = createLimits(basis, background)
  const upstreams = createPools(createUpstreamEvents(log, metrics))
  const tracer = ownTracer ?? openTracer(shared !== undefined, log)
  measureRequests(metrics, upstreams)
  const fileUsers = createFileUsers()
  const { secrets: configured } = gateway.session
  const secrets = configured.length > 0 ? configured : [ephemeralSecret(log)]
  const replica = `${hostname()}-${randomUUID().slice(0, 8)}`
  const notKept = metrics.counter('console_gateway_requests_not_kept_total')
  const failures = new Failures({
    replica,
    ...background,
    seal: createSeal(secrets, 'request'),
    onDropped: () => notKept()
  })
  const ledger = openLedger(basis, background)
  const sessions = new Sessions({
    store,
    review: fileUsers.review,
    seal: createSeal(secrets),
    config: gateway.session,
    ...(ledger && { onRevoked: recordRevocations(ledger) })
  })
  measureSessions(metrics, store, shared?.state)

  return {
    ...limits,
    log,
    inFlight: new Map<string, number>(),
    fileUsers,
    sessions,
    sourceFaults: new SourceFaults(),
    secrets,
    maintenance: createMaintenance({
      ...background,
      seal: createSeal(secrets, 'maintenance'),
      log
    }),
    drift: new Drift({ log, metrics }),
    failures,
    ledger,
    replica,
    background,
    tracer,
    metrics,
    upstreams,
    redis: shared?.state,
    close: async (): Promise<void> => {
      await ledger?.close()
      await tracer.close()
      await failures.close()
      await limits.counts.close()
      shared?.close()
    }
  }
}

function createLimits({ metrics, log }: Basis, { redis, prefix }: Background) {
  const highestUse = new HighestUse()
  const counts = new SharedCounts(redis && createRedisCounts(redis, prefix))
  metrics.read('console_gateway_limit_highest_use', () => highestUse.all())
  metrics.read('console_gateway_limits_local', () => Number(counts.isAway))
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
  return { counts, highestUse, lockouts }
}

const states = ['up', 'open', 'unhealthy'] as const

function createUpstreamEvents(log: Log, metrics: Metrics) {
  const countOpened = metrics.counter('console_gateway_upstream_address_opened_total')
  const countRetry = metrics.counter('console_gateway_upstream_retries_total')
  const waits = metrics.histogram('console_gateway_upstream_queue_seconds')
  return (upstream: string): UpstreamEvents => ({
    onWaited: ms => waits.labels(upstream).observe(ms / 1000),
    onAddress: (address, change, failure = 'request') => {
      if (change === 'open') countOpened(upstream)
      const line = { event: `upstream.address.${change}`, upstream, address }
      const text = `upstream ${upstream}: ${address}`
      const reason = failure === 'connect' ? 'no connection could be made' : 'requests failed'
      const opened = `${text}: ${reason}; its requests go to others that work`
      if (change === 'closed') log.info(line, `${text} works again`)
      else if (change === 'healthy') log.info(line, `${text}: health checks pass`)
      else if (change === 'open') log.warn({ ...line, failure }, opened)
      else log.warn(line, `${text}: health checks fail`)
    },
    onRetry: kind => countRetry(upstream, kind)
  })
}

function measureSessions(metrics: Metrics, store: SessionStore, health?: RedisHealth): void {
  metrics.read('console_gateway_session_store_up', () => [
    health ? ['redis', Number(health.up)] : ['embedded', 1]
  ])
  metrics.read(
    'console_gateway_redis_latency_seconds',
    () => health?.latencyMs && health.latencyMs / 1000
  )
  metrics.read(
    'console_gateway_users_signed_in',
    // Where the store cannot be asked, the metric is not there.
    async () => (await store.signedIn(0).catch(() => undefined))?.total
  )
}

function measureRequests(metrics: Metrics, upstreams: Pools): void {
  metrics.read('console_gateway_requests_in_flight', () => metrics.inFlight)
  metrics.read('console_gateway_upstream_in_flight', upstreams.inFlight)
  metrics.read('console_gateway_upstream_waiting', upstreams.waiting)
  metrics.read('console_gateway_upstream_addresses', () => {
    const all = Map.groupBy(upstreams.addresses(), ({ upstream }) => upstream)
    return [...all].flatMap(([name, ofName]) =>
      states.map(
        each => [[name, each], ofName.filter(({ state }) => state === each).length] as const
      )
    )
  })
}

function ephemeralSecret(log: Log): string {
  log.warn('session.secrets is empty: a secret was made up for this run, so sessions end with it')
  return randomBytes(32).toString('base64url')
}

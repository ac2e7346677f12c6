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
import { RequestRates } from '../observability/request-rates.ts'
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
import { type Background, type Basis, connectRedis, type Shared } from './shared.ts'

export { createLogger, type Log } from './logger.ts'

export type Services = ReturnType<typeof createServices>

const noRedis =
  'no Redis is configured: sessions live in this process, end with it, and are shared with no other'

const notKeptHelp =
  'Failed, slow and changing requests that `why` does not find, since more than 100 of them ' +
  'ended in the same second.'

export function createServices(config: Config, log: Log, ownTracer?: Tracer) {
  const { gateway } = config
  const metrics = new Metrics()
  const rates = new RequestRates()
  const basis = { config, log, metrics }
  const shared = connectRedis(basis)
  if (shared === undefined) log.warn(noRedis)
  const store = shared?.sessions ?? new MemoryStore()
  const background: Background = shared?.background ?? { prefix: '' }
  const limits = createLimits(basis, background)
  const upstreams = createPools(createUpstreamEvents(log, metrics))
  const tracer = ownTracer ?? openTracer(shared !== undefined, log)
  measureRequests(metrics, rates, upstreams)
  const fileUsers = createFileUsers()
  const { secrets: configured } = gateway.session
  const secrets = configured.length > 0 ? configured : [ephemeralSecret(log)]
  const replica = `${hostname()}-${randomUUID().slice(0, 8)}`
  const notKept = metrics.counter('console_gateway_requests_not_kept_total', notKeptHelp)
  const failures = new Failures({
    replica,
    ...background,
    seal: createSeal(secrets, 'request'),
    onDropped: () => notKept.inc()
  })
  const ledger = openLedger(basis, background)
  const sessions = new Sessions({
    store,
    review: fileUsers.review,
    seal: createSeal(secrets),
    lifeTimes: gateway.session,
    perUser: gateway.session.perUser,
    ...(ledger && { onRevoked: recordRevocations(ledger) })
  })
  measureSessions(metrics, store, shared)

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
    rates,
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

const reasons = {
  connect: 'no connection could be made; its requests go to others that work',
  request: 'requests failed; its requests go to others that work'
}

const waitBuckets = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

const states = ['up', 'open', 'unhealthy'] as const

function createUpstreamEvents(log: Log, metrics: Metrics) {
  const opened = metrics.counter(
    'console_gateway_upstream_address_opened_total',
    'How often so many requests to an address failed in a row that it is left out.',
    ['upstream']
  )
  const retries = metrics.counter(
    'console_gateway_upstream_retries_total',
    'Requests that were sent again, by kind: again after their connection broke, or elsewhere ' +
      'since there was no connection.',
    ['upstream', 'kind']
  )
  const waits = metrics.histogram(
    'console_gateway_upstream_queue_seconds',
    'How long requests waited for a connection to an upstream; those that got one at once are ' +
      'not counted.',
    ['upstream'],
    waitBuckets
  )
  return (upstream: string): UpstreamEvents => ({
    onWaited: ms => waits.labels(upstream).observe(ms / 1000),
    onAddress: (address, change, failure = 'request') => {
      if (change === 'open') opened.labels(upstream).inc()
      const line = { event: `upstream.address.${change}`, upstream, address }
      const text = `upstream ${upstream}: ${address}`
      if (change === 'closed') log.info(line, `${text} works again`)
      else if (change === 'healthy') log.info(line, `${text}: health checks pass`)
      else if (change === 'open') log.warn({ ...line, failure }, `${text}: ${reasons[failure]}`)
      else log.warn(line, `${text}: health checks fail`)
    },
    onRetry: kind => retries.labels(upstream, kind).inc()
  })
}

function measureSessions(
  metrics: Metrics,
  store: Pick<SessionStore, 'signedIn'>,
  shared?: Pick<Shared, 'state'>
): void {
  metrics.read({
    name: 'console_gateway_session_store_up',
    help: 'Whether the session store can be asked: 1 or 0.',
    labelNames: ['kind'],
    read: () => [shared ? ['redis', Number(shared.state.up)] : ['embedded', 1]]
  })
  metrics.read({
    name: 'console_gateway_users_signed_in',
    help: 'Users with a live session, of all replicas.',
    // Where the store cannot be asked, the metric is not there.
    read: async () => (await store.signedIn(0).catch(() => undefined))?.total
  })
}

function measureRequests(metrics: Metrics, rates: RequestRates, upstreams: Pools): void {
  metrics.read({
    name: 'console_gateway_requests_in_flight',
    help: 'Requests that are being answered.',
    read: () => rates.inFlight
  })
  metrics.read({
    name: 'console_gateway_upstream_in_flight',
    help: 'Requests that an upstream is answering.',
    labelNames: ['upstream'],
    read: upstreams.inFlight
  })
  metrics.read({
    name: 'console_gateway_upstream_waiting',
    help: 'Requests that wait for a connection to an upstream.',
    labelNames: ['upstream'],
    read: upstreams.waiting
  })
  metrics.read({
    name: 'console_gateway_upstream_addresses',
    help: 'Addresses of an upstream, by state: up, open (requests failed), unhealthy.',
    labelNames: ['upstream', 'state'],
    read: () => {
      const all = Map.groupBy(upstreams.addresses(), ({ upstream }) => upstream)
      return [...all].flatMap(([name, ofName]) =>
        states.map(
          each => [[name, each], ofName.filter(({ state }) => state === each).length] as const
        )
      )
    }
  })
}

function ephemeralSecret(log: Log): string {
  log.warn('session.secrets is empty: a secret was made up for this run, so sessions end with it')
  return randomBytes(32).toString('base64url')
}

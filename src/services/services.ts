/** What outlives a generation, and the choice of adapters. */
import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Config } from '../config/schema/config.ts'
import { Drift } from '../contract/drift.ts'
import { SourceFaults } from '../login/credential-source.ts'
import { createFileUsers } from '../login/file-users.ts'
import { Failures } from '../observability/failures.ts'
import { Metrics } from '../observability/metrics.ts'
import { RequestRates } from '../observability/request-rates.ts'
import { openTracer } from '../observability/traces/tracer.ts'
import { createPools, type Pools } from '../proxy/pools.ts'
import { MemoryStore } from '../session/memory-store.ts'
import { createSeal } from '../session/seal.ts'
import { Sessions } from '../session/sessions.ts'
import type { SessionStore } from '../session/store.ts'
import { openLedger, recordRevocations } from './audit.ts'
import { createLimits } from './limits.ts'
import type { Log } from './logger.ts'
import { createMaintenance } from './maintenance.ts'
import { type Background, connectRedis, type Shared } from './shared.ts'
import { createUpstreamEvents, measureAddresses } from './upstream-events.ts'

export { createLogger, type Log } from './logger.ts'

export type Services = ReturnType<typeof createServices>

const noRedis =
  'no Redis is configured: sessions live in this process, end with it, and are shared with no other'

const maxCountMs = 1000

const notKeptHelp =
  'Failed, slow and changing requests that `why` does not find, since more than 100 of them ' +
  'ended in the same second.'

export function createServices(config: Config, log: Log) {
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
  const tracer = openTracer(shared !== undefined, log)
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
    config: gateway.session,
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
      await upstreams.close()
    }
  }
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
    // Where the store cannot be asked in time, the metric is not there.
    read: async () => {
      const counted = store.signedIn(0).then(
        ({ total }) => total,
        () => undefined
      )
      return await Promise.race([counted, wait(maxCountMs, undefined)])
    }
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
  measureAddresses(metrics, upstreams.addresses)
}

function ephemeralSecret(log: Log): string {
  log.warn('session.secrets is empty: a secret was made up for this run, so sessions end with it')
  return randomBytes(32).toString('base64url')
}

/**
 * Services that outlive a generation (Redis clients, sessions, upstream pools, counters, the
 * logger), and the choice of their adapters.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Cluster, Redis } from 'ioredis'
import type { Config } from '../config/schema/config.ts'
import { type GatewayConfig, usesRedis } from '../config/schema/gateway.ts'
import { Drift } from '../contract/drift.ts'
import { createFileUsers, type FileUsers } from '../login/file-users.ts'
import type { Ledger } from '../observability/audit/ledger.ts'
import { Failures } from '../observability/failures.ts'
import { Metrics } from '../observability/metrics.ts'
import { RequestRates } from '../observability/request-rates.ts'
import { createPools, type Pools } from '../proxy/pools.ts'
import { createSeal } from '../session/seal.ts'
import { createSessions, type Sessions } from '../session/session.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import type { SessionStore } from '../session/store.ts'
import { createLimits } from './limits.ts'
import type { Log } from './logger.ts'
import { createOperatorSessions } from './operator-sessions.ts'
import { connectRedis, type RedisHealth, type Shared } from './shared.ts'
import { recordRevocations } from './session-audit.ts'
import { countSessions } from './session-metrics.ts'
import { openTracer } from './traces.ts'
import { createUpstreamEvents, measureAddresses } from './upstream-events.ts'

export { createLogger, type Log } from './logger.ts'
export { tlsFilesOf } from '../proxy/tls-files.ts'

/** `embedded`, or how Redis is. */
export type RedisState = { readonly kind: 'embedded' } | ({ readonly kind: 'redis' } & RedisHealth)

export type Services = ReturnType<typeof createServices>

const noRedis =
  'no Redis is configured: sessions live in this process, end with it, and are shared with no other'

const outdatedUsers =
  'another replica has read a later state of this users file: this process refuses by its own, ' +
  'and ends no sessions. After a rollback of the file, see "earlier state" in docs/operations.md'

const notKeptHelp =
  'Failed, slow and changing requests that `why` does not find, since more than 100 of them ' +
  'ended in the same second.'

export function createServices({ gateway, folder }: Config, log: Log, ledger?: Ledger) {
  const metrics = new Metrics()
  const rates = new RequestRates()
  const shared =
    gateway.redis !== undefined && usesRedis(gateway)
      ? connectRedis({ gateway, config: gateway.redis, folder, log, metrics })
      : undefined
  const store = shared?.store ?? createMemoryStore()
  if (shared === undefined) log.warn(noRedis)
  const { closeLimits, ...limits } = createLimits({ shared, metrics, log })
  const upstreams = createPools(createUpstreamEvents(log, metrics))
  const redis = (): RedisState =>
    shared === undefined ? { kind: 'embedded' } : { kind: 'redis', ...shared.state }
  const tracer = openTracer(shared !== undefined, log)
  measureShared(metrics, redis, () => shared?.clock.skewMs() ?? 0)
  measureRequests(metrics, rates, upstreams)
  const fileUsers = createFileUsers(store.announceUsers.bind(store), {
    onOutdated: source => log.warn({ event: 'users.outdated', source }, outdatedUsers)
  })
  shared?.onUp(fileUsers.announce)
  const { secrets: configured } = gateway.session
  const secrets = configured.length > 0 ? configured : [ephemeralSecret(log)]
  /** The name of this process among the replicas. */
  const replica = `${hostname()}-${randomUUID().slice(0, 8)}`
  /** Where replicas tell each other how they are; without Redis nowhere. All its keys begin so. */
  const background: { readonly redis?: Redis | Cluster; readonly prefix: string } =
    shared?.background ?? { prefix: '' }
  const notKept = metrics.counter('console_gateway_requests_not_kept_total', notKeptHelp)
  const failures = new Failures({
    replica,
    ...background,
    seal: createSeal(secrets, 'request'),
    onDropped: () => notKept.inc()
  })
  const operatorSessions =
    gateway.ops.role === undefined
      ? undefined
      : createOperatorSessions({ gateway, shared, fileUsers, secrets })

  return {
    ...limits,
    log,
    inFlight: new Map<string, number>(),
    /** Those that sessions are held against. */
    fileUsers,
    sessions: openSessions({ gateway, shared, store, fileUsers, secrets, metrics, log, ledger }),
    /** Undefined without `ops.role`. */
    operatorSessions,
    /** Newest first. */
    secrets,
    drift: new Drift({ log, metrics }),
    failures,
    replica,
    background,
    tracer,
    metrics,
    rates,
    upstreams,
    redis,
    close: async (): Promise<void> => {
      await tracer.close()
      await failures.close()
      await closeLimits()
      await operatorSessions?.release()
      await store.close()
      shared?.close()
      await upstreams.close()
    }
  }
}

function measureShared(metrics: Metrics, redis: () => RedisState, skewMs: () => number): void {
  metrics.read({
    name: 'console_gateway_session_store_up',
    help: 'Whether the session store can be asked: 1 or 0.',
    labelNames: ['kind'],
    read: () => {
      const state = redis()
      return [[[state.kind], state.kind === 'embedded' || state.up ? 1 : 0]]
    }
  })
  metrics.read({
    name: 'console_gateway_clock_skew_seconds',
    help: 'By how much the clock of this machine is ahead of that of Redis.',
    read: () => skewMs() / 1000
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
    read: () => Array.from(upstreams.inFlight(), ([name, requests]) => [[name], requests])
  })
  metrics.read({
    name: 'console_gateway_upstream_waiting',
    help: 'Requests that wait for a connection to an upstream.',
    labelNames: ['upstream'],
    read: () => Array.from(upstreams.waiting(), ([name, requests]) => [[name], requests])
  })
  measureAddresses(metrics, upstreams.addresses)
}

interface SessionOptions {
  readonly gateway: GatewayConfig
  readonly shared: Shared | undefined
  readonly store: SessionStore
  readonly fileUsers: FileUsers
  readonly secrets: readonly string[]
  readonly metrics: Metrics
  readonly log: Log
  readonly ledger: Ledger | undefined
}

const epochForgotten =
  'the session store forgot how often all sessions were ended, and is told again: ' +
  'until it has taken that, sessions answer 503'

function openSessions(options: SessionOptions): Sessions {
  const { gateway, shared, store, fileUsers, secrets, metrics, log, ledger } = options
  const { session } = gateway
  const forgotten = metrics.counter(
    'console_gateway_session_epoch_forgotten_total',
    'How often the session store was found to have forgotten when everyone was signed out.'
  )
  return createSessions({
    store,
    reviewer: fileUsers,
    seal: createSeal(secrets),
    lifeTimes: session,
    perUser: session.perUser,
    maxStalenessMs: session.staleness,
    ...(shared !== undefined && { now: shared.clock.now, ticks: () => performance.now() }),
    ...countSessions(metrics),
    ...(ledger && { onRevoked: recordRevocations(ledger) }),
    onTouchFailed: err =>
      log.debug({ err }, 'a session was used, but its idle clock could not be set'),
    onEpochForgotten: epochs => {
      forgotten.inc()
      log.error({ event: 'session.epoch-forgotten', ...epochs }, epochForgotten)
    }
  })
}

function ephemeralSecret(log: Log): string {
  log.warn('session.secrets is empty: a secret was made up for this run, so sessions end with it')
  return randomBytes(32).toString('base64url')
}

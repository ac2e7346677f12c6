/**
 * What outlives a generation: Redis clients, sessions, upstream pools, counters, the logger; and
 * which adapter each is.
 */
import { randomBytes } from 'node:crypto'
import { createRequire } from 'node:module'
import pino, { type DestinationStream, type Logger } from 'pino'
import type { Config } from '../config/schema/config.ts'
import { type GatewayConfig, type RedisConfig, usesRedis } from '../config/schema/gateway.ts'
import { createDrift, type Drift } from '../contract/drift.ts'
import {
  type Counters,
  createMemoryCounters,
  createRedisCounters,
  countersWithFallback
} from '../limits/counting/counters.ts'
import { createFileUsers, type FileUsers } from '../login/file-users.ts'
import { createExpressions, type Expressions } from '../shaping/expressions.ts'
import { createPools, type Pools } from '../proxy/pools.ts'
import { isoTime, standardOutput } from '../observability/log.ts'
import { createMetrics, type Metrics } from '../observability/metrics.ts'
import { adopt } from '../observability/emitters.ts'
import { showInJson } from '../observability/unprintable.ts'
import type { CallerCounts, SubjectKey } from '../limits/counting/callers.ts'
import { createRedisCallers, type RedisCallers } from '../limits/counting/redis-callers.ts'
import { tallyWithFallback } from '../limits/counting/fallback-tally.ts'
import { createLeases, type Leases } from '../limits/counting/leases.ts'
import { createMemoryTally } from '../limits/counting/memory-tally.ts'
import { createRedisTally } from '../limits/counting/redis-tally.ts'
import { lockoutsWithFallback } from '../limits/lockout/fallback-lockouts.ts'
import type { Lockouts } from '../limits/lockout/lockout.ts'
import { createMemoryLockouts } from '../limits/lockout/memory-lockouts.ts'
import { createRedisLockouts } from '../limits/lockout/redis-lockouts.ts'
import { createReplicas, type Replicas } from '../limits/counting/replicas.ts'
import { createRedisUsage, type SharedUsage } from '../limits/usage/redis-usage.ts'
import type { Tally } from '../limits/counting/rules.ts'
import type { UsageRecord } from '../limits/usage/record.ts'
import { type KeptUsage, keepUsage } from '../limits/usage/usage.ts'
import { createRedisDialler } from './redis.ts'
import { createFormerNotes } from '../session/former-notes.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import { followRedis } from '../session/redis-invalidation.ts'
import { defineCommands } from '../session/redis-scripts.ts'
import { createRedisStore } from '../session/redis-store.ts'
import { createSeal } from '../session/seal.ts'
import { createStoreClock, type StoreClock } from '../session/store-clock.ts'
import { createSessions, type Sessions } from '../session/session.ts'
import type { SessionStore } from '../session/store.ts'

export interface Services {
  readonly log: Logger
  readonly sessions: Sessions
  /** Those that sessions are held against. */
  readonly fileUsers: FileUsers
  /** Newest first. */
  readonly secrets: readonly string[]
  /** Of sign-in attempts. */
  readonly counters: Counters
  /** Of all other requests. */
  readonly leases: Leases
  /** What limits count of one caller, for operators. */
  readonly callers: CallerCounts
  /** How much of each limit its callers used; nothing where no record is kept. */
  readonly readUsage: KeptUsage['read']
  readonly lockouts: Lockouts
  readonly inFlight: Map<string, number>
  readonly upstreams: Pools
  readonly expressions: Expressions
  readonly metrics: Metrics
  readonly drift: Drift
  /** `embedded`, or how Redis is. `hasConnected` turns true at the first contact. */
  readonly redis: () =>
    | { readonly kind: 'embedded' }
    | { readonly kind: 'redis'; readonly up: boolean; readonly hasConnected: boolean }
  readonly close: () => Promise<void>
}

export type Log = Logger

// For terminals only, so that nobody else waits for it.
const require = createRequire(import.meta.url)

/**
 * @param destination where lines go; standard output without it
 * @param base what every line says
 */
export function createLogger(
  { level, format }: GatewayConfig['log'],
  destination?: DestinationStream,
  base: Readonly<Record<string, unknown>> | null = null
): Logger {
  const options = { level, base, timestamp: isoTime(), serializers: { err: errorFields } }
  const readable =
    destination === undefined &&
    (format === 'pretty' || (format === 'auto' && process.stdout.isTTY))
  return readable
    ? pino(options, prettyOutput())
    : pino(
        { ...options, formatters: { level: label => ({ level: label }) } },
        destination ?? standardOutput()
      )
}

function prettyOutput(): DestinationStream {
  const pretty = require('pino-pretty') as typeof import('pino-pretty')
  const stream = adopt(pretty({ translateTime: 'SYS:HH:MM:ss.l', singleLine: true, sync: true }))
  return {
    write: line => {
      stream.write(showInJson(line))
    }
  }
}

/**
 * Of an error only these: an ioredis error carries the command's arguments, and so a session's
 * data.
 */
function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const { code } = error as NodeJS.ErrnoException
  return {
    type: name,
    ...(code !== undefined && { code }),
    message,
    stack,
    ...(cause !== undefined && { cause: errorFields(cause) })
  }
}

const epochsForgottenHelp =
  'How often the session store was found to have forgotten when everyone was signed out.'

const epochForgotten =
  'the session store forgot how often all sessions were ended, and is told again: ' +
  'until it has taken that, sessions answer 503'

export function createServices(config: Config, log: Logger): Services {
  const { gateway, folder } = config
  const { session } = gateway
  const shared =
    gateway.redis !== undefined && usesRedis(gateway)
      ? connectRedis(gateway, gateway.redis, folder, log)
      : undefined
  const store = shared?.store ?? createMemoryStore()
  if (shared === undefined)
    log.warn(
      'no Redis is configured: sessions live in this process, end with it, and are shared with no other'
    )
  const metrics = createMetrics()
  metrics.read(
    'console_gateway_limits_replicas',
    'How many processes share the counters of limits, as this one knows.',
    [],
    () => [[[], replicas()]]
  )
  const localLimits = metrics
    .gauge(
      'console_gateway_limits_local',
      'Whether limits are counted in this process alone, because Redis is away: 1 or 0.'
    )
    .with()
  const local = createMemoryCounters()
  const onAway = (away: boolean) => {
    if (away) log.warn('Redis did not answer: sign-ins are counted in this process until it does')
  }
  const counters =
    shared === undefined ? local : countersWithFallback(shared.counters, local, onAway)
  function replicas() {
    return shared?.replicas.count() ?? 1
  }
  const localTally = createMemoryTally()
  const tally =
    shared === undefined
      ? localTally
      : tallyWithFallback({
          shared: shared.tally,
          local: localTally,
          replicas,
          onAway: away => localLimits.set(away ? 1 : 0)
        })
  const isAlone = () => shared?.replicas.isAlone() ?? true
  const leases = createLeases({ replicas, isAlone, tally })
  const onReset = (subject: SubjectKey) => {
    leases.forget(subject)
    void localTally.forget(subject)
  }
  const sharedCallers = shared?.followCallers(onReset)
  const callers: CallerCounts = sharedCallers ?? {
    keysOf: localTally.keysOf,
    forget: async subject => onReset(subject)
  }
  const uses = keepUsage({
    leases,
    counters,
    keepMs: gateway.ops.useRecord,
    processes: replicas,
    share: shared?.shareUsage
  })
  const lockouts =
    shared === undefined
      ? createMemoryLockouts()
      : lockoutsWithFallback({
          shared: shared.lockouts,
          local: createMemoryLockouts(),
          replicas,
          onAway
        })
  const upstreams = createPools()
  const redis = () =>
    shared === undefined
      ? ({ kind: 'embedded' } as const)
      : ({ kind: 'redis', ...shared.state } as const)
  const expressions = createExpressions()
  metrics.read(
    'console_gateway_session_store_up',
    'Whether the session store can be asked: 1 or 0.',
    ['kind'],
    () => {
      const state = redis()
      return [[[state.kind], state.kind === 'embedded' || state.up ? 1 : 0]]
    }
  )
  metrics.read(
    'console_gateway_clock_skew_seconds',
    'By how much the clock of this machine is ahead of that of Redis.',
    [],
    () => [[[], (shared?.clock.skewMs() ?? 0) / 1000]]
  )
  metrics.read(
    'console_gateway_upstream_in_flight',
    'Requests that an upstream is answering.',
    ['upstream'],
    () => Array.from(upstreams.inFlight(), ([name, requests]) => [[name], requests])
  )
  const announceUsers = store.announceUsers.bind(store)
  const fileUsers = createFileUsers(announceUsers, shared?.clock.now)
  metrics.read(
    'console_gateway_upstream_waiting',
    'Requests that wait for a connection to an upstream.',
    ['upstream'],
    () => Array.from(upstreams.waiting(), ([name, requests]) => [[name], requests])
  )
  const forgotten = metrics.counter(
    'console_gateway_session_epoch_forgotten_total',
    epochsForgottenHelp
  )
  const secrets = session.secrets.length > 0 ? session.secrets : [ephemeralSecret(log)]

  return {
    log,
    counters: uses.counters,
    leases: uses.leases,
    callers,
    readUsage: uses.read,
    lockouts,
    inFlight: new Map(),
    fileUsers,
    sessions: createSessions({
      store,
      reviewer: fileUsers,
      seal: createSeal(secrets),
      lifeTimes: session,
      perUser: session.perUser,
      maxStalenessMs: session.staleness,
      records: session.records,
      ...(shared !== undefined && { now: shared.clock.now, ticks: () => performance.now() }),
      onRoundedEnded: count => logRoundedEnded(log, count),
      onTouchFailed: err =>
        log.debug({ err }, 'a session was used, but its idle clock could not be set'),
      onEpochForgotten: epochs => {
        forgotten.with().inc()
        log.error({ event: 'session.epoch-forgotten', ...epochs }, epochForgotten)
      }
    }),
    secrets,
    expressions,
    drift: createDrift({ log, metrics }),
    metrics,
    upstreams,
    redis,
    close: async () => {
      await uses.close()
      sharedCallers?.close()
      await leases.close()
      counters.close()
      await shared?.replicas.close()
      await store.close()
      shared?.close()
      await expressions.close()
      await upstreams.close()
    }
  }
}

/** Each doubling has a line: a whole company may come back at once. */
function logRoundedEnded(log: Logger, count: number): void {
  if (!Number.isInteger(Math.log2(count))) return
  log.warn(
    { event: 'sessions.rounded', count },
    'ended sessions whose users’ ids a former version had rounded: those users sign in again'
  )
}

function ephemeralSecret(log: Logger): string {
  log.warn('session.secrets is empty: a secret was made up for this run, so sessions end with it')
  return randomBytes(32).toString('base64url')
}

interface Shared {
  readonly clock: StoreClock
  readonly store: SessionStore
  readonly counters: Counters
  readonly tally: Tally
  readonly lockouts: Lockouts
  readonly replicas: Replicas
  readonly followCallers: (onReset: (subject: SubjectKey) => void) => RedisCallers
  readonly shareUsage: (record: UsageRecord) => SharedUsage
  readonly state: { up: boolean; hasConnected: boolean }
  readonly close: () => void
}
const noWait =
  'Redis has replicas, and its ACL does not allow WAIT: a failover can undo sign-outs. ' +
  'Add +wait to the user, or set session.revocation to primary'

/**
 * Two clients, since they fail differently: without sessions a request is 503, without shared
 * counters it is counted here.
 */
function connectRedis(
  gateway: GatewayConfig,
  config: RedisConfig,
  folder: string,
  log: Logger
): Shared {
  const { staleness, revocation, records, absolute, remembered } = gateway.session
  const longestMs = Math.max(absolute, remembered.absolute ?? 0)
  const state = { up: false, hasConnected: false }
  const dialler = createRedisDialler(config, folder)
  const sessions = dialler.client({
    onUp: () => {
      state.up = state.hasConnected = true
      log.info({ redis: dialler.place }, 'Redis connected')
      void clock.measure()
    },
    onDown: reason => {
      state.up = false
      log.error(
        { redis: dialler.place, reason },
        'Redis unavailable: session routes answer 503; reconnecting'
      )
    }
  })
  const clock = createStoreClock({
    askTime: async () => {
      const [seconds, microseconds] = await sessions.time()
      return Number(seconds) * 1000 + Number(microseconds) / 1000
    },
    onSkew: (skewMs, isSkewed) => tellSkew(log, skewMs, isSkewed)
  })
  const limits = dialler.client({ onUp: () => {}, onDown: () => {} })
  let endNews = () => {}
  const replicated =
    revocation === 'primary'
      ? undefined
      : dialler.replicatedWrites(sessions, {
          barrierKey: `${config.prefix}barrier`,
          prepare: defineCommands,
          onRefused: () => log.error({ redis: dialler.place }, noWait)
        })
  const store = createRedisStore({
    redis: sessions,
    prefix: config.prefix,
    ...(replicated !== undefined && { replicated }),
    keysOnEach: dialler.keysOnEach(sessions),
    formerNotes: createFormerNotes({ records, longestMs }),
    onPrimary: changed => dialler.onTopology(sessions, changed),
    follow: (follower, names) => {
      endNews = followRedis({
        dial: () => dialler.trackingConnections(sessions),
        onTopology: changed => dialler.onTopology(sessions, changed),
        follower,
        names,
        maxStalenessMs: staleness
      })
    }
  })
  return {
    store,
    clock,
    counters: createRedisCounters(limits, config.prefix),
    tally: createRedisTally(limits, config.prefix),
    lockouts: createRedisLockouts(limits, config.prefix),
    replicas: createReplicas(limits, config.prefix),
    followCallers: onReset => createRedisCallers(limits, config.prefix, onReset),
    shareUsage: record => createRedisUsage(limits, config.prefix, record, gateway.ops.useRecord),
    state,
    close: () => {
      endNews()
      clock.close()
      replicated?.close()
      sessions.disconnect()
      limits.disconnect()
      dialler.close()
    }
  }
}

/** Sessions go by the clock of Redis; limits, logs and back-ends' tokens go by this machine's. */
function tellSkew(log: Logger, skewMs: number, isSkewed: boolean): void {
  const fields = { event: 'clock.skew', seconds: Math.round(skewMs / 1000) }
  if (isSkewed)
    log.error(fields, 'the clock of this machine differs from that of Redis: set it right')
  else log.info(fields, 'the clock of this machine agrees with that of Redis again')
}

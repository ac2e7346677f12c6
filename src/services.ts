/** What outlives a generation: Redis clients, sessions, upstream pools, counters, the logger; and which adapter each is. */
import { randomBytes } from 'node:crypto'
import type { Redis } from 'ioredis'
import pino, { type DestinationStream, type Logger } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config/load.ts'
import type { GatewayConfig } from './config/gateway.ts'
import type { UpstreamConfig } from './config/routes.ts'
import { type Counters, createMemoryCounters, createRedisCounters, withFallback } from './limits/counters.ts'
import { createUpstream, type Upstream } from './proxy/upstream.ts'
import { createRedisClient } from './redis.ts'
import { createMemoryStore } from './session/memory-store.ts'
import { createRedisStore } from './session/redis-store.ts'
import { createSessions, type Sessions } from './session/session.ts'

export interface Services {
  readonly log: Logger
  readonly sessions: Sessions
  /** Newest first. */
  readonly secrets: readonly string[]
  readonly counters: Counters
  readonly inFlight: Map<string, number>
  /** The pool of an upstream; shared by all who ask with the same config. */
  readonly upstream: (config: UpstreamConfig) => Upstream
  /** `embedded`, or how Redis is. `everUp` turns true at the first contact. */
  readonly redis: () => { readonly kind: 'embedded' } | { readonly kind: 'redis', readonly up: boolean, readonly everUp: boolean }
  readonly close: () => Promise<void>
}

/** @param destination where lines go; standard output without it */
export function createLogger ({ level, format }: GatewayConfig['log'], destination?: DestinationStream): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, serializers: { err: errorFields } }
  const standardOutput = () => {
    const output = pino.destination(1)
    // A reader that went away, or a full disk, costs log lines, not the service.
    output.on('error', () => {})
    return output
  }
  const readable = destination === undefined && (format === 'pretty' || (format === 'auto' && process.stdout.isTTY))
  return readable ? pino(options, pretty({ translateTime: 'SYS:HH:MM:ss.l', singleLine: true, sync: true })) : pino({ ...options, formatters: { level: label => ({ level: label }) } }, destination ?? standardOutput())
}

/** Of an error only these: an ioredis error carries the command's arguments, and so a session's data. */
function errorFields (error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const { code } = error as NodeJS.ErrnoException
  return { type: name, ...(code !== undefined && { code }), message, stack, ...(cause !== undefined && { cause: errorFields(cause) }) }
}

export function createServices (config: Config, log: Logger): Services {
  const { gateway, folder } = config
  const shared = gateway.redis !== undefined && gateway.redis.url !== '' ? connectRedis(gateway.redis, folder, log) : undefined
  const store = shared === undefined ? createMemoryStore() : createRedisStore({ redis: shared.sessions, prefix: shared.prefix })
  if (shared === undefined) log.warn('no Redis is configured: sessions live in this process, end with it, and are shared with no other')
  const local = createMemoryCounters()
  const counters = shared === undefined ? local : withFallback(createRedisCounters(shared.limits, shared.prefix), local, () => log.warn('Redis did not answer: limits are counted in this process until it does'))
  const upstreams = new Map<string, Upstream>()

  return {
    log,
    counters,
    inFlight: new Map(),
    sessions: createSessions({ store, lifeTimes: gateway.session, onTouchFailed: err => log.debug({ err }, 'a session was used, but its idle clock could not be set') }),
    secrets: gateway.session.secrets.length > 0 ? gateway.session.secrets : [madeUpSecret(log)],
    upstream: upstreamConfig => {
      const key = JSON.stringify(upstreamConfig)
      let found = upstreams.get(key)
      if (found === undefined) upstreams.set(key, found = createUpstream(upstreamConfig, folder))
      return found
    },
    redis: () => shared === undefined ? { kind: 'embedded' } : { kind: 'redis', ...shared.state },
    close: async () => {
      counters.close()
      await store.close()
      shared?.sessions.disconnect()
      shared?.limits.disconnect()
      await Promise.all([...upstreams.values()].map(upstream => upstream.close()))
    }
  }
}

function madeUpSecret (log: Logger): string {
  log.warn('session.secrets is empty: a secret was made up for this run, so sessions end with it')
  return randomBytes(32).toString('base64url')
}

/** Two clients, since they fail differently: without sessions a request is 503, without shared counters it is counted here. */
function connectRedis (config: NonNullable<GatewayConfig['redis']>, folder: string, log: Logger): { sessions: Redis, limits: Redis, prefix: string, state: { up: boolean, everUp: boolean } } {
  const state = { up: false, everUp: false }
  const { host } = new URL(config.url)
  const sessions = createRedisClient(config, folder, {
    onUp: () => {
      state.up = state.everUp = true
      log.info({ redis: host }, 'Redis is there')
    },
    onDown: reason => {
      state.up = false
      log.error({ redis: host, reason }, 'Redis is away: what needs a session answers 503; trying again')
    }
  })
  const limits = createRedisClient(config, folder, { onUp: () => {}, onDown: () => {} })
  return { sessions, limits, prefix: config.prefix, state }
}

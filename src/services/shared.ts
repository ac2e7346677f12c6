/** The connections to Redis, and the sessions that replicas share there. */
import type { Cluster, Redis } from 'ioredis'
import type { Config } from '../config/schema/config.ts'
import { type GatewayConfig, usesRedis } from '../config/schema/gateway.ts'
import { followRedis } from '../session/redis-invalidation.ts'
import { defineCommands } from '../session/redis-scripts.ts'
import { createRedisStore } from '../session/redis-store.ts'
import type { SessionStore } from '../session/store.ts'
import { createStoreClock } from '../session/store-clock.ts'
import type { RedisHealth } from '../observability/gateway-state.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Log } from './logger.ts'
import { createRedisDialler, type RedisDialler } from './redis.ts'
import { probeRedis } from './redis-probe.ts'
import { measureRedis } from './redis-times.ts'

export type Shared = NonNullable<ReturnType<typeof connectRedis>>

interface Options {
  readonly config: Config
  readonly log: Log
  readonly metrics: Metrics
}

const noWait =
  'Redis has replicas, and its ACL does not allow WAIT: a failover can undo sign-outs. ' +
  'Add +wait to the user, or set session.revocation to primary'

/**
 * Two clients, since they fail differently: without sessions a request is 503, without shared
 * counters it is counted here.
 * @returns undefined for a process without Redis
 */
export function connectRedis({ config: { gateway, folder }, log, metrics }: Options) {
  const { redis } = gateway
  if (redis === undefined || !usesRedis(gateway)) return undefined
  const { prefix } = redis
  const measure = measureRedis(metrics)
  const dialler = createRedisDialler(redis, folder)
  const { client, state } = dialSessions(dialler, log, prefix)
  measure(client, 'sessions')
  const clock = createStoreClock({
    askTime: async () => {
      const [seconds, microseconds] = await client.time()
      return Number(seconds) * 1000 + Number(microseconds) / 1000
    },
    onSkew: (skewMs, isSkewed) => logSkew(log, skewMs, isSkewed)
  })
  client.on('ready', () => void clock.measure())
  const limits = dialler.client()
  measure(limits, 'limits')
  const sessions = createStore({ gateway, prefix, dialler, client, log, measure })
  return {
    store: sessions.store,
    /** The store of operators' sessions. They are few, so it follows no changes and asks Redis. */
    operatorStore: (): SessionStore => sessions.storeAt(`${prefix}ops:`),
    clock,
    /** Of sessions: by the clock of Redis. */
    times: { now: clock.now, ticks: () => performance.now() },
    /** For what need not wait for sessions; all its keys begin so, and are in one slot. */
    background: { redis: limits, prefix: slotPrefix(prefix) },
    state,
    /** Calls its listener each time that Redis is connected, before sessions are looked up in it. */
    onUp: (listener: () => void): void => void client.on('ready', listener),
    close: (): void => {
      sessions.close()
      clock.close()
      client.disconnect()
      limits.disconnect()
      dialler.close()
    }
  }
}

/** In a Cluster, all keys that begin so are in one slot: `cg:` gives `{cg}:`. */
export function slotPrefix(prefix: string): string {
  return `{${prefix.replace(/:$/, '') || 'cg'}}:`
}

const refuses = 'Redis answers, but refuses what sessions need: sign-ins answer 503'

function dialSessions(dialler: RedisDialler, log: Log, prefix: string) {
  const state: { -readonly [K in keyof RedisHealth]: RedisHealth[K] } = {
    up: false,
    hasConnected: false,
    since: Date.now(),
    latencyMs: undefined
  }
  const client = dialler.client({
    onUp: () => {
      if (!state.up) state.since = Date.now()
      state.up = state.hasConnected = true
      log.info({ redis: dialler.place }, 'Redis connected')
    },
    onRoundTrip: ms => {
      state.latencyMs = ms
    },
    onDown: reason => {
      if (state.up) state.since = Date.now()
      state.up = false
      state.latencyMs = undefined
      log.error(
        { redis: dialler.place, reason },
        'Redis unavailable: session routes answer 503; reconnecting'
      )
    }
  })
  client.on('ready', () => {
    // Counts of limits go on in this process where their keys are refused.
    void probeRedis(client, [prefix]).then(fault => {
      state.fault = fault
      if (fault !== undefined) log.error({ redis: dialler.place, reason: fault }, refuses)
    })
  })
  return { client, state }
}

interface StoreOptions {
  readonly gateway: GatewayConfig
  readonly prefix: string
  readonly dialler: RedisDialler
  readonly client: Redis | Cluster
  readonly log: Log
  readonly measure: ReturnType<typeof measureRedis>
}

function createStore({ gateway, prefix, dialler, client, log, measure }: StoreOptions) {
  const { staleness, revocation } = gateway.session
  let unfollow = () => {}
  const replicated =
    revocation === 'primary'
      ? undefined
      : dialler.replicatedWrites(client, {
          barrierKey: `${prefix}barrier`,
          prepare: connection => {
            defineCommands(connection)
            measure(connection, 'confirmed-writes')
          },
          onRefused: () => log.error({ redis: dialler.place }, noWait)
        })
  const common = {
    redis: client,
    ...(replicated !== undefined && { replicated }),
    keysOnEach: dialler.keysOnEach(client),
    onPrimary: (changed: () => void) => dialler.onTopology(client, changed)
  }
  const storeAt = (at: string) => createRedisStore({ ...common, prefix: at, follow: () => {} })
  const store = createRedisStore({
    ...common,
    prefix,
    follow: (follower, names) => {
      unfollow = followRedis({
        dial: () => dialler.trackingConnections(client),
        onTopology: changed => dialler.onTopology(client, changed),
        follower,
        names,
        maxStalenessMs: staleness
      })
    }
  })
  const close = () => {
    unfollow()
    replicated?.close()
  }
  return { store, storeAt, close }
}

/** Sessions go by the clock of Redis; limits, logs and back-ends' tokens go by this machine's. */
function logSkew(log: Log, skewMs: number, isSkewed: boolean): void {
  const fields = { event: 'clock.skew', seconds: Math.round(skewMs / 1000) }
  if (isSkewed) {
    log.error(fields, 'the clock of this machine differs from that of Redis: set it right')
  } else log.info(fields, 'the clock of this machine agrees with that of Redis again')
}

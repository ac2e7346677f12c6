/** The connections to Redis, and the sessions that replicas share there. */
import type { Cluster, Redis } from 'ioredis'
import type { Config } from '../config/schema/config.ts'
import { usesRedis } from '../config/schema/gateway.ts'
import { RedisStore } from '../session/redis-store.ts'
import { Tracking } from '../session/tracking.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Log } from './logger.ts'
import { createRedisDialler, slotPrefix } from './redis.ts'
import { probeRedis, RedisHealth } from './redis-watch.ts'

/** For what need not wait for sessions. */
export interface Background {
  readonly redis?: Redis | Cluster | undefined
  readonly prefix: string
}

export interface Basis {
  readonly config: Config
  readonly log: Log
  readonly metrics: Metrics
}

const noTracking =
  'Redis refuses CLIENT TRACKING: sessions are not cached, so each request asks Redis. For an ACL ' +
  'user see "Rights of an ACL user" in docs/operations.md; a proxy in between has to pass it on'

const probeAgainMs = 1000

const away = 'Redis unavailable: session routes answer 503; reconnecting'
const refuses = 'Redis answers, but refuses what sessions need: sign-ins answer 503'

/** Two clients: without sessions a request is 503, without shared counters it is counted here. */
export function connectRedis({ config: { gateway }, log }: Basis) {
  const { redis } = gateway
  if (redis === undefined || !usesRedis(gateway)) return undefined
  const prefix = slotPrefix(redis.prefix)
  const dialler = createRedisDialler(redis)
  const { place } = dialler
  const state = new RedisHealth()
  const client = dialler.client(reason => {
    if (reason === undefined) log.info({ redis: place }, 'Redis connected')
    else log.error({ redis: place, reason }, away)
  }, state)
  const probe = async () => {
    // Counts of limits go on in this process where their keys are refused.
    const fault = await probeRedis(client, prefix).catch(() => undefined)
    const isNew = fault !== state.fault
    state.fault = fault
    if (fault !== undefined && isNew) log.error({ redis: place, reason: fault }, refuses)
  }
  client.on('ready', () => void probe())
  // It may be mended without a new connection: a right is given, a replica promoted.
  const again = setInterval(() => {
    if (state.fault !== undefined) void probe()
  }, probeAgainMs).unref()
  const tracking = new Tracking({
    dial: () => dialler.trackingConnection(client),
    onRefused: error => log.error({ redis: place, reason: error.message }, noTracking)
  })
  const sessions = new RedisStore({ redis: client, prefix, tracking })
  dialler.onTopology(client, isOther => {
    sessions.replay(isOther)
    tracking.dial()
  })
  return {
    sessions,
    background: { redis: dialler.client(), prefix },
    state,
    close: (): void => {
      clearInterval(again)
      tracking.close()
      dialler.close()
    }
  }
}

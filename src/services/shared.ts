/** The connections to Redis, and the sessions that replicas share there. */
import type { Cluster, Redis } from 'ioredis'
import type { Config } from '../config/schema/config.ts'
import { usesRedis } from '../config/schema/gateway.ts'
import { RedisStore } from '../session/redis-store.ts'
import { Tracking } from '../session/tracking.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Log } from './logger.ts'
import { createRedisDialler, type RedisDialler, slotPrefix } from './redis.ts'
import { probeRedis } from './redis-probe.ts'
import { measureRedis } from './redis-times.ts'
import { RedisHealth } from './redis-watch.ts'

export type Shared = NonNullable<ReturnType<typeof connectRedis>>

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

/**
 * Two clients, since they fail differently: without sessions a request is 503, without shared
 * counters it is counted here.
 * @returns undefined for a process without Redis
 */
export function connectRedis({ config: { gateway, folder }, log, metrics }: Basis) {
  const { redis } = gateway
  if (redis === undefined || !usesRedis(gateway)) return undefined
  const prefix = slotPrefix(redis.prefix)
  const measure = measureRedis(metrics)
  const dialler = createRedisDialler(redis, folder)
  const { client, state } = dialSessions(dialler, log, prefix)
  measure(client, 'sessions')
  const limits = dialler.client()
  measure(limits, 'limits')
  const tracking = new Tracking({
    dial: () => dialler.trackingConnection(client),
    onRefused: error => log.error({ redis: dialler.place, reason: error.message }, noTracking)
  })
  const sessions = new RedisStore({ redis: client, prefix, tracking })
  dialler.onTopology(client, isOther => {
    sessions.replay(isOther)
    tracking.dial()
  })
  return {
    sessions,
    background: { redis: limits, prefix },
    state,
    close: (): void => {
      tracking.close()
      dialler.close()
    }
  }
}

const away = 'Redis unavailable: session routes answer 503; reconnecting'
const refuses = 'Redis answers, but refuses what sessions need: sign-ins answer 503'

function dialSessions(dialler: RedisDialler, log: Log, prefix: string) {
  const redis = dialler.place
  const state = new RedisHealth()
  const client = dialler.client(reason => {
    if (reason === undefined) log.info({ redis }, 'Redis connected')
    else log.error({ redis, reason }, away)
  }, state)
  client.on('ready', () => {
    // Counts of limits go on in this process where their keys are refused.
    void probeRedis(client, prefix).then(fault => {
      state.fault = fault
      if (fault !== undefined) log.error({ redis, reason: fault }, refuses)
    })
  })
  return { client, state }
}

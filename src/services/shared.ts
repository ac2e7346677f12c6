/** The connections to Redis, and the sessions that replicas share there. */
import type { Cluster, Command, Redis } from 'ioredis'
import type { Config } from '../config/schema/config.ts'
import { usesRedis } from '../config/schema/gateway.ts'
import { RedisStore } from '../session/redis-store.ts'
import { Tracking } from '../session/tracking.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { Log } from './logger.ts'
import { createRedisDialler, slotPrefix } from './redis.ts'
import { probeRedis, RedisHealth } from './redis-watch.ts'

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

const away = 'Redis unavailable: session routes answer 503; reconnecting'
const refuses = 'Redis answers, but refuses what sessions need: sign-ins answer 503'

/**
 * Two clients, since they fail differently: without sessions a request is 503, without shared
 * counters it is counted here.
 */
export function connectRedis({ config: { gateway }, log, metrics }: Basis) {
  const { redis } = gateway
  if (redis === undefined || !usesRedis(gateway)) return undefined
  const prefix = slotPrefix(redis.prefix)
  const measure = measureRedis(metrics)
  const dialler = createRedisDialler(redis)
  const { place } = dialler
  const state = new RedisHealth()
  const client = dialler.client(reason => {
    if (reason === undefined) log.info({ redis: place }, 'Redis connected')
    else log.error({ redis: place, reason }, away)
  }, state)
  client.on('ready', () => {
    // Counts of limits go on in this process where their keys are refused.
    void probeRedis(client, prefix).then(fault => {
      state.fault = fault
      if (fault !== undefined) log.error({ redis: place, reason: fault }, refuses)
    })
  })
  measure(client, 'sessions')
  const limits = dialler.client()
  measure(limits, 'limits')
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
    background: { redis: limits, prefix },
    state,
    close: (): void => {
      tracking.close()
      dialler.close()
    }
  }
}

const buckets = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1
]

function measureRedis(metrics: Metrics) {
  const times = metrics.histogram(
    'console_gateway_redis_command_seconds',
    'From a command to the reply of Redis, by use (sessions, limits) and outcome: ok, or failed, ' +
      'such as when Redis is away.',
    ['use', 'outcome'],
    buckets
  )
  return (client: Redis | Cluster, use: 'sessions' | 'limits'): void => {
    const [ok, failed] = [times.labels(use, 'ok'), times.labels(use, 'failed')]
    const send = client.sendCommand.bind(client)
    client.sendCommand = (command: Command, ...rest: never[]) => {
      const startedAt = performance.now()
      const seconds = () => (performance.now() - startedAt) / 1000
      const sent = send(command, ...rest)
      command.promise.then(
        () => ok.observe(seconds()),
        () => failed.observe(seconds())
      )
      return sent
    }
  }
}

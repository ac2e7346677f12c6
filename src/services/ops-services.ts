/**
 * Services of operators. They have a client of Redis of their own.
 */
import { randomBytes } from 'node:crypto'
import { hostname } from 'node:os'
import type { Cluster, Redis } from 'ioredis'
import { type GatewayConfig, type RedisConfig, usesRedis } from '../config/schema/gateway.ts'
import type { MaintenanceConfig } from '../config/schema/maintenance.ts'
import type { Metrics } from '../observability/metrics.ts'
import { createStoreClock } from '../session/store-clock.ts'
import type { Log } from './logger.ts'
import {
  createLocalMaintenance,
  type MaintenanceRecord,
  SharedMaintenance
} from './maintenance-record.ts'
import { createRedisDialler } from './redis.ts'
import { subscribeChannels, type Subscription } from './redis-channels.ts'
import { channelsOf, LocalBus, type ReplicaBus, SharedBus } from './replica-bus.ts'
import { createReplicaDirectory, type ReplicaInfo } from './replica-directory.ts'
import { type RefusedReason, ReplicaMessages } from './replica-messages.ts'
import { createReplicaSeal } from './replica-seal.ts'

/** The state of a replica that changes while it runs. */
export type ReplicaState = Pick<ReplicaInfo, 'generation' | 'configHash' | 'ready'>

export interface OpsServices {
  /** Undefined without Redis. Its commands fail at once while Redis is away. */
  readonly redis?: Redis | Cluster
  readonly bus: ReplicaBus
  readonly maintenance: MaintenanceRecord
  /** Resolves when what replicas share was read, and soon where Redis is away. */
  readonly read: Promise<void>
  readonly close: () => Promise<void>
}

interface Options {
  readonly gateway: GatewayConfig
  /** Of the config: paths of certificates are relative to it. */
  readonly folder: string
  readonly log: Log
  readonly metrics: Metrics
  readonly version: string
  readonly state: () => ReplicaState
  /** Called when the maintenance of operators begins, changes or ends. */
  readonly onMaintenance: (maintenances: readonly MaintenanceConfig[]) => Promise<void>
}

const announceEveryMs = 2000
const maxHostLength = 40
/** A start does not wait longer for Redis. */
const maxReadMs = 500
const noChannels =
  'the ACL of Redis does not allow the channels of replicas: commands with --all and acts of ' +
  'operators reach this replica alone. Add +publish and the channels to the user'

export function createOpsServices(options: Options): OpsServices {
  const { gateway } = options
  const local = localBus(options)
  if (gateway.redis === undefined || !usesRedis(gateway)) {
    const { id } = local
    const maintenance = createLocalMaintenance(id, options.onMaintenance)
    const close = async () => maintenance.close()
    return { bus: local, maintenance, read: Promise.resolve(), close }
  }
  return connectReplicas(options, gateway.redis, local)
}

function localBus({ version, state }: Options): LocalBus {
  const host = hostname()
  const startedAt = new Date().toISOString()
  const id = `${host.replaceAll(/[^A-Za-z0-9.-]/g, '-').slice(0, maxHostLength)}-${randomEnd()}`
  return new LocalBus({
    id,
    describe: async () => ({
      id,
      host,
      version,
      pid: process.pid,
      startedAt,
      ...state(),
      seenAt: new Date().toISOString()
    })
  })
}

function randomEnd(): string {
  return randomBytes(4).toString('hex')
}

function connectReplicas(options: Options, config: RedisConfig, local: LocalBus): OpsServices {
  const { gateway, folder, log } = options
  const { prefix } = config
  const { id } = local
  const dialler = createRedisDialler(config, folder)
  // The sessions' client logs when Redis comes and goes.
  const redis = dialler.client({ onUp: () => {}, onDown: () => {} })
  const onRefused = refusals(options)
  const clock = createStoreClock({
    askTime: async () => {
      const [seconds, microseconds] = await redis.time()
      return Number(seconds) * 1000 + Number(microseconds) / 1000
    },
    onSkew: () => {}
  })
  const seal = createReplicaSeal(secretsOf(gateway))
  const ticks = () => performance.now()
  const messages = new ReplicaMessages({ seal, id, now: clock.now, ticks, onRefused })
  const directory = createReplicaDirectory({ redis, prefix, seal, id, now: clock.now })
  let subscription: Subscription | undefined
  const bus = new SharedBus({
    local,
    redis,
    prefix,
    messages,
    directory,
    isUp: () => subscription?.isUp() === true && redis.status === 'ready',
    onCrowded: () => onRefused('crowded')
  })

  const maintenance = new SharedMaintenance({
    redis,
    prefix,
    seal,
    bus,
    now: clock.now,
    onChange: options.onMaintenance,
    onRefused
  })
  const read = Promise.withResolvers<void>()
  setTimeout(read.resolve, maxReadMs).unref()

  const announce = oneAtATime(async () => {
    if (redis.status !== 'ready') return
    const info = await local.describe()
    await directory.announce({ ...info, seenAt: new Date(clock.now()).toISOString() })
  })

  async function begin(): Promise<void> {
    await clock.measure()
    await maintenance.refresh().catch(() => {})
    read.resolve()
    subscription ??= subscribeChannels({
      dial: () => dialler.channelConnection(redis),
      onTopology: changed => dialler.onTopology(redis, changed),
      channels: channelsOf(prefix, id),
      onMessage: (channel, text) => bus.receive(channel, text),
      onUp: () => announce(),
      onRefused: () => log.warn({ event: 'replicas.refused', redis: dialler.place }, noChannels)
    })
  }

  redis.on('ready', () => void begin())
  const timer = setInterval(() => announce(), announceEveryMs).unref()
  return {
    redis,
    bus,
    maintenance,
    read: read.promise,
    close: async () => {
      clearInterval(timer)
      maintenance.close()
      clock.close()
      subscription?.close()
      await directory.leave()
      redis.disconnect()
      dialler.close()
    }
  }
}

/** Skips a call while another runs: Redis may take its time. */
function oneAtATime(work: () => Promise<void>): () => void {
  let isRunning = false
  return () => {
    if (isRunning) return
    isRunning = true
    void work()
      .catch(() => {})
      .finally(() => {
        isRunning = false
      })
  }
}

const reasons: Readonly<Record<RefusedReason, string>> = {
  oversized: 'it is too long',
  foreign: 'it is sealed with session secrets that this replica does not have',
  unsealed: 'it is not from a replica, or was changed on the way',
  stale: 'it is older than 30 s; the same is refused without further lines',
  replayed: 'it came a second time',
  crowded: 'too many came at once'
}

/** Each reason has one line in the log: a flood of messages must not become one of lines. */
function refusals({ metrics, log }: Options): (reason: RefusedReason) => void {
  const counter = metrics.counter(
    'console_gateway_replica_messages_refused_total',
    'Messages of replicas that were refused, by reason.',
    ['reason']
  )
  const logged = new Set<RefusedReason>()
  return reason => {
    counter.labels(reason).inc()
    if (logged.has(reason)) return
    logged.add(reason)
    log.warn(
      { event: 'replicas.message-refused', reason },
      `a message was refused: ${reasons[reason]}`
    )
  }
}

/** A secret that was made up for this run is shared with no other replica. */
function secretsOf({ session: { secrets } }: GatewayConfig): readonly string[] {
  return secrets.length > 0 ? secrets : [randomBytes(32).toString('base64url')]
}

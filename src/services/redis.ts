/**
 * The only dialler of Redis: one server, Sentinel or Cluster; clients that fail fast, say when
 * Redis comes and goes, and re-dial a connection that lost its answers.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Cluster, type Command, Redis, type RedisOptions } from 'ioredis'
import type { RedisConfig } from '../config/schema/gateway.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import { adopt } from '../observability/emitters.ts'
import { createClusterWrites, createTags, keysOnEach } from './redis-cluster.ts'
import { primaryConnector } from './redis-primary.ts'
import { createReplicatedWrites, type ReplicatedWrites } from './redis-replicated.ts'
import { type Address, createSentinels, type Sentinels } from './redis-sentinels.ts'
import { backOff, type RedisEvents, watch } from './redis-watch.ts'

interface ReplicatedOptions {
  readonly barrierKey: string
  /** Gets each connection before it is used. */
  readonly prepare: (connection: Redis) => void
  /** Redis does not let its user `WAIT`. */
  readonly onRefused: () => void
}

const longestPauseInFailoverMs = 500

export type RedisDialler = ReturnType<typeof createRedisDialler>

/** Nothing is queued while Redis is away, and nothing is sent twice; it is dialled for ever. */
export function createRedisDialler(config: RedisConfig, folder: string) {
  const url = new URL(config.url === '' ? 'redis://unused' : config.url)
  const common = commonOptions(config, url, folder)
  const queueing = { ...common, enableOfflineQueue: true }
  const writing = { ...queueing, connectionName: 'console-gateway-replicated' }
  const tracking = {
    ...queueing,
    protocol: 2,
    autoResubscribe: false,
    connectionName: 'console-gateway-news'
  } satisfies RedisOptions
  const sentinels = config.sentinels.length === 0 ? undefined : dialSentinels(config, folder)
  const location = sentinels === undefined ? locationOf(url) : locationBy(sentinels, common.tls)
  const dialServer = (options: typeof queueing) => adopt(new Redis({ ...options, ...location }))

  return {
    /** For people: where it is. */
    place: placeOf(config, url),
    /**
     * A client for commands, which settle within `commandTimeout` also when Redis hangs or is gone.
     */
    client: (events?: RedisEvents): Redis | Cluster => {
      const client = config.cluster.length > 0 ? dialCluster(config, common) : dialServer(common)
      watch(client, events)
      return client
    },
    /** Connections that bring invalidations, one for each primary that `client` knows. */
    trackingConnections: (client: Redis | Cluster): Redis[] => {
      if (!(client instanceof Cluster)) return [dialServer(tracking)]
      return client
        .nodes('master')
        .map(node => adopt(new Redis({ ...tracking, ...addressOf(node) })))
    },
    onTopology,
    /** A key on each primary: only the plain one where there is one primary. */
    keysOnEach: (client: Redis | Cluster): ((plain: string) => readonly string[]) => {
      if (!(client instanceof Cluster)) return plain => [plain]
      const tags = createTags(client)
      return plain => keysOnEach(client, tags(), plain)
    },
    /** Writes that the replicas confirm, over connections of their own. */
    replicatedWrites: (client: Redis | Cluster, options: ReplicatedOptions): ReplicatedWrites => {
      const { barrierKey, prepare } = options
      let isReported = false
      const onRefused = () => {
        if (!isReported) options.onRefused()
        isReported = true
      }
      const waitMs = Math.floor(config.commandTimeout / 2)
      const prepared = (redis: Redis) => {
        prepare(redis)
        // Only until the first contact: a start is not taken for an outage.
        redis.once('ready', () => {
          redis.options.enableOfflineQueue = false
        })
        watch(redis)
        return redis
      }
      const all = { barrierKey, waitMs, onRefused }
      if (!(client instanceof Cluster)) {
        return createReplicatedWrites({ ...all, primary: prepared(dialServer(writing)), sentinels })
      }
      const dial = (address: Address) => prepared(adopt(new Redis({ ...writing, ...address })))
      return createClusterWrites({ ...all, cluster: client, tags: createTags(client), dial })
    },
    /** Ends what is the dialler's own; clients are closed by those who asked for them. */
    close: (): void => sentinels?.close()
  }
}

function placeOf({ cluster, sentinels, primary }: RedisConfig, { hostname, port }: URL): string {
  if (cluster.length > 0) return `cluster ${cluster.join(', ')}`
  if (sentinels.length > 0) return `${primary} of ${sentinels.join(', ')}`
  return `${hostname}:${port === '' ? 6379 : port}`
}

function dialCluster(config: RedisConfig, redisOptions: CommonOptions): Cluster {
  return adopt(
    new BoundedCluster(config.cluster.map(splitHostPort), {
      redisOptions,
      enableOfflineQueue: false,
      clusterRetryStrategy: backOff,
      slotsRefreshTimeout: config.connectTimeout,
      slotsRefreshInterval: 5000,
      maxRedirections: 4,
      retryDelayOnFailover: 50,
      retryDelayOnClusterDown: 50,
      retryDelayOnTryAgain: 50
    })
  )
}

/** Calls its listener when the primaries have changed. */
function onTopology(client: Redis | Cluster, changed: () => void): void {
  // A server that is dialled anew may be another one: invalidations have to come from the same.
  if (!(client instanceof Cluster)) return void client.on('ready', changed)
  let primaries = primariesOf(client)
  const look = () => {
    const now = primariesOf(client)
    if (now === primaries) return
    primaries = now
    changed()
  }
  for (const event of ['+node', '-node', 'refresh', 'ready']) client.on(event, look)
}

type CommonOptions = ReturnType<typeof commonOptions>

function commonOptions(config: RedisConfig, { protocol, hostname }: URL, folder: string) {
  const isSecured = config.tls || protocol === 'rediss:'
  return {
    ...(config.username !== undefined && { username: config.username }),
    ...(config.password !== undefined && { password: config.password }),
    ...(isSecured && {
      tls: {
        ...(hostname !== 'unused' && { servername: hostname }),
        ...authorityOf(config, folder)
      }
    }),
    connectTimeout: config.connectTimeout,
    commandTimeout: config.commandTimeout,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: 'console-gateway',
    retryStrategy: backOff
  } satisfies RedisOptions
}

function authorityOf({ ca }: RedisConfig, folder: string) {
  return ca === undefined ? {} : { ca: readFileSync(resolve(folder, ca)) }
}

function locationOf({ hostname, port, pathname }: URL) {
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    db: pathname.length > 1 ? Number(pathname.slice(1)) : 0
  } satisfies RedisOptions
}

/** Locates the primary by the Sentinels. */
function locationBy(sentinels: Sentinels, tls: CommonOptions['tls']) {
  return {
    Connector: primaryConnector(sentinels, tls),
    // During a failover each attempt counts.
    retryStrategy: (attempt: number) => Math.min(backOff(attempt), longestPauseInFailoverMs),
    // A primary that became a replica: the connector looks for the new one.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY')
  } satisfies RedisOptions
}

function dialSentinels(config: RedisConfig, folder: string): Sentinels {
  const tls = config.sentinelTls ? authorityOf(config, folder) : undefined
  return createSentinels({
    addresses: config.sentinels.map(splitHostPort),
    name: config.primary,
    dial: address =>
      adopt(
        new Redis({
          ...address,
          ...(config.sentinelPassword !== undefined && { password: config.sentinelPassword }),
          ...(tls !== undefined && { tls }),
          connectTimeout: config.connectTimeout,
          commandTimeout: config.commandTimeout,
          enableReadyCheck: false,
          enableOfflineQueue: false,
          maxRetriesPerRequest: 0,
          autoResubscribe: false,
          connectionName: 'console-gateway-sentinels',
          retryStrategy: backOff
        })
      )
  })
}

function addressOf({ options: { host, port } }: Redis) {
  return { ...(host !== undefined && { host }), ...(port !== undefined && { port }) }
}

function primariesOf(cluster: Cluster): string {
  return cluster
    .nodes('master')
    .map(({ options }) => `${options.host}:${options.port}`)
    .toSorted()
    .join()
}

/** A Cluster's command is bounded also while it is sent from node to node. */
class BoundedCluster extends Cluster {
  override sendCommand(command: Command, ...rest: [stream?: never, node?: never]): unknown {
    const bound = this.options.redisOptions?.commandTimeout
    if (bound !== undefined) command.setTimeout(bound)
    return super.sendCommand(command, ...rest)
  }
}

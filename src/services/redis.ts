/**
 * The only dialler of Redis: one server, Sentinel or Cluster; clients that fail fast, say when
 * Redis comes and goes, and re-dial a connection that lost its answers.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Cluster, type Command, Redis, type RedisOptions } from 'ioredis'
import { splitHostPort } from '../config/schema/host-port.ts'
import type { RedisConfig } from '../config/schema/gateway.ts'
import { adopt } from '../observability/emitters.ts'
import { createClusterWrites, createTags, keysOnEach } from './redis-cluster.ts'
import { primaryConnector } from './redis-primary.ts'
import { createReplicatedWrites, type ReplicatedWrites } from './redis-replicated.ts'
import { type Address, createSentinels } from './redis-sentinels.ts'

export interface RedisEvents {
  readonly onUp: () => void
  /** Once an outage for each reason. */
  readonly onDown: (reason: string) => void
}

export interface RedisDialler {
  /** For people: where it is. */
  readonly place: string
  /**
   * A client for commands, which settle within `commandTimeout` also when Redis hangs or is gone.
   */
  readonly client: (events: RedisEvents) => Redis | Cluster
  /** Connections that bring news, one for each primary that `client` knows. */
  readonly trackingConnections: (client: Redis | Cluster) => Redis[]
  /** Tells when the primaries have changed. */
  readonly onTopology: (client: Redis | Cluster, changed: () => void) => void
  /**
   * Writes that the replicas confirm, over connections of their own. `prepare` gets each of these
   * first.
   */
  readonly replicatedWrites: (
    client: Redis | Cluster,
    options: ReplicatedOptions
  ) => ReplicatedWrites
  /** A key on each primary: only the plain one where there is one primary. */
  readonly keysOnEach: (client: Redis | Cluster) => (plain: string) => readonly string[]
  /** Ends what is the dialler's own; clients are closed by those who asked for them. */
  readonly close: () => void
}

interface ReplicatedOptions {
  readonly barrierKey: string
  readonly prepare: (line: Redis) => void
  /** Redis does not let its user `WAIT`. */
  readonly onRefused: () => void
}

const askEveryMs = 1000
/** One that stays a replica is better read from than dialled all the time. */
const redialReplicaEveryMs = 10_000
const longestPauseInFailoverMs = 500

/** Nothing is queued while Redis is away, and nothing is sent twice; it is dialled for ever. */
export function createRedisDialler(config: RedisConfig, folder: string): RedisDialler {
  const { protocol, hostname, port, pathname } = new URL(
    config.url === '' ? 'redis://unused' : config.url
  )
  const secured = config.tls || protocol === 'rediss:'
  const common = {
    ...(config.username !== undefined && { username: config.username }),
    ...(config.password !== undefined && { password: config.password }),
    ...(secured && {
      tls: {
        ...(hostname !== 'unused' && { servername: hostname }),
        ...(config.ca !== undefined && { ca: readFileSync(resolve(folder, config.ca)) })
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
  const news = {
    ...common,
    protocol: 2,
    autoResubscribe: false,
    enableOfflineQueue: true,
    connectionName: 'console-gateway-news'
  } satisfies RedisOptions
  const writing = {
    ...common,
    enableOfflineQueue: true,
    connectionName: 'console-gateway-replicated'
  } satisfies RedisOptions
  const sentinels =
    config.sentinels.length === 0
      ? undefined
      : createSentinels({
          addresses: config.sentinels.map(splitHostPort),
          name: config.primary,
          dial: address =>
            adopt(
              new Redis({
                ...address,
                ...(config.sentinelPassword !== undefined && { password: config.sentinelPassword }),
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
  const whereItIs =
    sentinels === undefined
      ? {
          host: hostname.replace(/^\[|\]$/g, ''),
          port: port === '' ? 6379 : Number(port),
          db: pathname.length > 1 ? Number(pathname.slice(1)) : 0
        }
      : {
          Connector: primaryConnector(sentinels, common.tls),
          // During a failover each attempt counts.
          retryStrategy: (attempt: number) => Math.min(backOff(attempt), longestPauseInFailoverMs),
          // A primary that became a replica: the connector looks for the new one.
          reconnectOnError: (error: Error) => error.message.startsWith('READONLY')
        }
  const single = (options: typeof common | typeof news | typeof writing) =>
    adopt(new Redis({ ...options, ...whereItIs }))

  return {
    place:
      config.cluster.length > 0
        ? `cluster ${config.cluster.join(', ')}`
        : config.sentinels.length > 0
          ? `${config.primary} of ${config.sentinels.join(', ')}`
          : `${hostname}:${port === '' ? 6379 : port}`,
    client: events => {
      const client =
        config.cluster.length > 0
          ? adopt(
              new BoundedCluster(config.cluster.map(splitHostPort), {
                redisOptions: common,
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
          : single(common)
      watch(client, events)
      return client
    },
    trackingConnections: client => {
      if (!(client instanceof Cluster)) return [single(news)]
      return client.nodes('master').map(({ options }) =>
        adopt(
          new Redis({
            ...news,
            ...(options.host !== undefined && { host: options.host }),
            ...(options.port !== undefined && { port: options.port })
          })
        )
      )
    },
    onTopology: (client, changed) => {
      // Whoever is dialled anew may be another server: the news have to come from the same.
      if (!(client instanceof Cluster)) return void client.on('ready', changed)
      const masters = () =>
        client
          .nodes('master')
          .map(({ options }) => `${options.host}:${options.port}`)
          .toSorted()
          .join()
      let known = masters()
      const look = () => {
        const now = masters()
        if (now === known) return
        known = now
        changed()
      }
      for (const event of ['+node', '-node', 'refresh', 'ready']) client.on(event, look)
    },
    keysOnEach: client => {
      if (!(client instanceof Cluster)) return plain => [plain]
      const tags = createTags(client)
      return plain => keysOnEach(client, tags(), plain)
    },
    replicatedWrites: (client, { barrierKey, prepare, onRefused: tell }) => {
      let isTold = false
      const onRefused = () => {
        if (!isTold) tell()
        isTold = true
      }
      const waitMs = Math.floor(config.commandTimeout / 2)
      const line = (redis: Redis) => {
        prepare(redis)
        // Only until the first contact: a start is not taken for an outage.
        redis.once('ready', () => {
          redis.options.enableOfflineQueue = false
        })
        watch(redis, { onUp: () => {}, onDown: () => {} })
        return redis
      }
      if (!(client instanceof Cluster)) {
        return createReplicatedWrites({
          primary: line(single(writing)),
          barrierKey,
          waitMs,
          sentinels,
          onRefused
        })
      }
      const dial = (address: Address) => line(adopt(new Redis({ ...writing, ...address })))
      return createClusterWrites({
        cluster: client,
        tags: createTags(client),
        barrierKey,
        waitMs,
        dial,
        onRefused
      })
    },
    close: () => {
      sentinels?.close()
    }
  }
}

/** A Cluster's command is bounded also while it is sent from node to node. */
class BoundedCluster extends Cluster {
  override sendCommand(command: Command, ...rest: [stream?: never, node?: never]): unknown {
    const bound = this.options.redisOptions?.commandTimeout
    if (bound !== undefined) command.setTimeout(bound)
    return super.sendCommand(command, ...rest)
  }
}

function watch(client: Redis | Cluster, { onUp, onDown }: RedisEvents): void {
  // Each reason once an outage: the one that helps may come after "the connection closed".
  const told = new Set<string>()
  const down = (reason: string) => {
    if (!told.has(reason)) onDown(reason)
    told.add(reason)
  }
  client.on('ready', () => {
    told.clear()
    onUp()
  })
  client.on(
    'error',
    (error: Error & { code?: string; lastNodeError?: Error & { code?: string } }) =>
      down(reasonOf(error.lastNodeError ?? error))
  )
  client.on('close', () => down('the connection closed'))
  let redialledAt = -Infinity
  // A connection can stay open and yet lose its answers, or lead to a server that is no primary any
  // more; only asking shows it.
  const askAll = () => {
    for (const node of client instanceof Cluster ? client.nodes('master') : [client]) {
      if (node.status !== 'ready') continue
      const redial = (reason: string) => {
        if (node.status !== 'ready') return
        if (node === client) down(reason)
        node.disconnect(true)
      }
      node.role().then(
        ([role]) => {
          if (role === 'master' || performance.now() - redialledAt < redialReplicaEveryMs) return
          redialledAt = performance.now()
          redial('it became a replica')
        },
        (error: Error) => {
          if (error.message.includes('timed out')) redial('it does not answer')
        }
      )
    }
  }
  let watchdog: NodeJS.Timeout | undefined
  client.on('ready', () => {
    clearInterval(watchdog)
    watchdog = setInterval(askAll, askEveryMs).unref()
  })
  client.on('close', () => clearInterval(watchdog))
}

function backOff(attempt: number) {
  return Math.min(50 * 2 ** Math.min(attempt, 6), 2000) * (0.75 + Math.random() / 2)
}

/** Says what is wrong without what a log must not hold. */
function reasonOf({ code, message }: Error & { code?: string }): string {
  if (message.startsWith('WRONGPASS') || message.startsWith('NOAUTH'))
    return 'the user or the password is wrong'
  return code ?? message.slice(0, 120)
}

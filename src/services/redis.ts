/** The only dialler of Redis. Nothing is queued while it is away, and nothing is sent twice. */
import { TLSSocket } from 'node:tls'
import { Cluster, Command, Redis, type RedisOptions, SentinelConnector } from 'ioredis'
import type { RedisConfig } from '../config/schema/gateway.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import { adopt } from '../observability/emitters.ts'
import { backOff, type OnRedis, type RedisHealth, watch } from './redis-watch.ts'

/** RESP2: ioredis drops RESP3's invalidations. */
const tracking = {
  protocol: 2,
  enableOfflineQueue: true,
  autoResubscribe: false,
  connectionName: 'console-gateway-news'
} satisfies RedisOptions

/** In a Cluster, all keys that begin so are in one slot: `cg:` gives `{cg}:`. */
export function slotPrefix(prefix: string): string {
  return `{${prefix.replace(/:$/, '') || 'cg'}}:`
}

export function createRedisDialler(config: RedisConfig) {
  const url = new URL(config.url === '' ? 'redis://unused' : config.url)
  const common = commonOptions(config, url)
  const slot = new Command('get', [slotPrefix(config.prefix)]).getSlot()
  const clients: Array<Redis | Cluster> = []

  function serverOf(client: Redis | Cluster) {
    if (!(client instanceof Cluster)) return connectedTo(client)
    const name = client.slots[slot]?.[0]
    return name === undefined ? undefined : { name, address: splitHostPort(name) }
  }

  function dial(): Redis | Cluster {
    if (config.cluster.length > 0) return dialCluster(config, common)
    if (config.sentinels.length === 0) return adopt(new Redis({ ...common, ...locationOf(url) }))
    return adopt(new FollowingRedis({ ...common, ...sentinelsOf(config) }))
  }

  return {
    place: placeOf(config, url),
    /** For commands, which settle within `commandTimeout`. */
    client: (onChange?: OnRedis, health?: RedisHealth): Redis | Cluster => {
      const client = dial()
      watch(client, onChange, health)
      clients.push(client)
      return client
    },
    /** A connection that brings invalidations; undefined while its server is unknown. */
    trackingConnection: (client: Redis | Cluster): Redis | undefined => {
      const server = serverOf(client)
      return server && adopt(new Redis({ ...common, ...server.address, ...tracking }))
    },
    /** At each connection, before anything is asked, and at another primary of a Cluster. */
    onTopology: (client: Redis | Cluster, changed: (isOther: boolean) => void): void => {
      let known: string | undefined
      const look = () => {
        const before = known
        // A connection that is lost already has no name.
        known = serverOf(client)?.name ?? before
        changed(before !== undefined && known !== before)
      }
      client.on('ready', look)
      if (!(client instanceof Cluster)) return onHeir(client, () => changed(true))
      client.on('refresh', () => {
        if (client.status === 'ready' && serverOf(client)?.name !== known) look()
      })
    },
    /** Not those that bring invalidations: who asked for them does. */
    close: (): void => {
      for (const client of clients) client.disconnect()
    }
  }
}

function placeOf({ cluster, sentinels, primary }: RedisConfig, { hostname, port }: URL): string {
  if (cluster.length > 0) return `cluster ${cluster.join(', ')}`
  if (sentinels.length > 0) return `${primary} of ${sentinels.join(', ')}`
  return `${hostname}:${port === '' ? 6379 : port}`
}

/** A network that is slow with commands is slow with connections. */
export function connectMsOf({ commandTimeout }: RedisConfig): number {
  return Math.max(1000, commandTimeout)
}

function commonOptions(config: RedisConfig, { protocol, hostname }: URL) {
  const isSecured = config.tls || protocol === 'rediss:'
  return {
    ...(config.username !== undefined && { username: config.username }),
    ...(config.password !== undefined && { password: config.password }),
    ...(isSecured && {
      tls: {
        ...(hostname !== 'unused' && { servername: hostname }),
        ...(config.ca !== undefined && { ca: config.ca })
      }
    }),
    connectTimeout: connectMsOf(config),
    commandTimeout: config.commandTimeout,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: 'console-gateway',
    retryStrategy: backOff
  } satisfies RedisOptions
}

function locationOf({ hostname, port, pathname }: URL) {
  return {
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    db: pathname.length > 1 ? Number(pathname.slice(1)) : 0
  } satisfies RedisOptions
}

function sentinelsOf(config: RedisConfig) {
  return {
    sentinels: config.sentinels.map(splitHostPort),
    name: config.primary,
    ...(config.sentinelPassword !== undefined && { sentinelPassword: config.sentinelPassword }),
    ...(config.tls && { sentinelTLS: config.ca === undefined ? {} : { ca: config.ca } }),
    sentinelCommandTimeout: config.commandTimeout
  } satisfies RedisOptions
}

function dialCluster(config: RedisConfig, redisOptions: ReturnType<typeof commonOptions>): Cluster {
  return adopt(
    new Cluster(config.cluster.map(splitHostPort), {
      redisOptions,
      enableOfflineQueue: false,
      clusterRetryStrategy: backOff,
      slotsRefreshTimeout: connectMsOf(config),
      slotsRefreshInterval: 5000,
      maxRedirections: 4,
      retryDelayOnFailover: 50,
      retryDelayOnClusterDown: 50
    })
  )
}

/** Listens for a promoted replica at the same address: that of a proxy, or a name. */
function onHeir(client: Redis, listener: () => void): void {
  let known: string | undefined
  client.on('ready', () => {
    client.info('replication').then(
      info => {
        const [, id] = /^master_replid:(\w+)/m.exec(info) ?? []
        const [, former] = /^master_replid2:(\w+)/m.exec(info) ?? []
        if (known !== undefined && former === known && id !== known) listener()
        known = id
      },
      () => {}
    )
  })
}

function connectedTo({ status, stream, options }: Redis) {
  // Without a connection yet there is no stream.
  if (status !== 'ready') return undefined
  const { remoteAddress: host, remotePort: port } = stream
  if (host === undefined || port === undefined) return undefined
  const servername = stream instanceof TLSSocket && stream.servername
  const tls = servername ? { tls: { ...options.tls, servername } } : {}
  return { name: `${host}:${port}`, address: { host, port, ...tls } }
}

/** During a failover each attempt counts; after some 10 s of them it is an outage. */
const attemptsInFailover = 100

function retry(attempt: number): number {
  return Math.min(backOff(attempt), attempt < attemptsInFailover ? 100 : 500)
}

/** ioredis prints errors of its connections to Sentinels, which have no listener. */
class ListenedSentinels extends SentinelConnector {
  constructor(options: RedisOptions) {
    super(options)
    const dial = this['connectToSentinel'].bind(this)
    this['connectToSentinel'] = (...given: unknown[]) => adopt(dial(...given))
  }
}

/** ioredis 6 ends a client for good whose Sentinels fail over while it asks them. */
class FollowingRedis extends Redis {
  #isClosed = false

  constructor(options: Omit<RedisOptions, 'replyMapping'>) {
    super({
      ...options,
      Connector: ListenedSentinels as NonNullable<RedisOptions['Connector']>,
      failoverDetector: true,
      enableTLSForSentinelMode: options.tls !== undefined,
      sentinelRetryStrategy: retry,
      sentinelReconnectStrategy: backOff,
      retryStrategy: retry,
      // A primary that became a replica: the Sentinels are asked for the new one.
      reconnectOnError: error => error.message.startsWith('READONLY')
    })
    const dialAgain = () => {
      if (!this.#isClosed) this.connect().catch(() => {})
    }
    this.on('end', () => setTimeout(dialAgain, 50))
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) this.#isClosed = true
    super.disconnect(reconnect)
  }
}

/**
 * Announces changes in Redis: CLIENT TRACKING in broadcast mode, one connection for each primary.
 */
import type { Redis } from 'ioredis'
import type { Follower } from './store.ts'

export interface InvalidationOptions {
  /**
   * The connections that invalidations come over; called again when the primaries have changed.
   * RESP2: ioredis drops RESP3's invalidations.
   */
  readonly dial: () => Redis[]
  /** Calls its listener when the primaries have changed. */
  readonly onTopology: (changed: () => void) => void
  readonly follower: Follower
  readonly names: { readonly tracked: string; readonly session: string; readonly epoch: string }
  /** The longest that a silent connection may go unnoticed. */
  readonly maxStalenessMs: number
}

interface TrackingConnection {
  readonly redis: Redis
  isTracking: boolean
}

/** @returns what ends it */
export function followRedis(options: InvalidationOptions): () => void {
  const invalidations = new Invalidations(options)
  return () => invalidations.close()
}

class Invalidations {
  readonly #options: InvalidationOptions
  readonly #heartbeat: NodeJS.Timeout
  #connections: TrackingConnection[] = []
  /** The follower was told so. */
  #isUp = false
  #isClosed = false

  constructor(options: InvalidationOptions) {
    this.#options = options
    const everyMs = Math.max(50, options.maxStalenessMs / 4)
    this.#heartbeat = setInterval(() => this.#beat(), everyMs).unref()
    this.#redial()
    options.onTopology(() => this.#redial())
  }

  close(): void {
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    for (const { redis } of this.#connections) redis.disconnect()
  }

  #redial(): void {
    if (this.#isClosed) return
    for (const { redis } of this.#connections) redis.disconnect()
    this.#connections = []
    this.#update()
    this.#connections = this.#options.dial().map(redis => this.#track(redis))
  }

  /**
   * Up only when every primary announces its changes: one on a primary that is missing would go
   * unnoticed.
   */
  #update(): void {
    const { follower } = this.#options
    const connections = this.#connections
    const isUp = connections.length > 0 && connections.every(({ isTracking }) => isTracking)
    if (isUp && !this.#isUp) follower.onUp()
    if (!isUp && this.#isUp) follower.onDown()
    this.#isUp = isUp
  }

  #track(redis: Redis): TrackingConnection {
    const { follower, names } = this.#options
    const connection: TrackingConnection = { redis, isTracking: false }
    const onLost = () => {
      connection.isTracking = false
      this.#update()
    }
    redis.on('error', () => {})
    redis.on('close', onLost)
    redis.on('end', onLost)
    redis.on('ready', () => {
      startTracking(redis, names.tracked).then(
        () => {
          connection.isTracking = true
          // Also when the other connections stayed up: this primary's changes may have been missed.
          if (this.#isUp) follower.onUp()
          this.#update()
        },
        () => dialAnew(redis)
      )
    })
    // "message" would join the keys with commas.
    redis.on('messageBuffer', (_channel: Buffer, keys: unknown) => this.#announce(keys))
    return connection
  }

  #announce(keys: unknown): void {
    const { follower, names } = this.#options
    if (!Array.isArray(keys)) {
      // No keys: Redis was flushed.
      if (this.#isUp) follower.onUp()
      return
    }
    for (const key of keys as Buffer[]) {
      const name = key.toString()
      // One on each primary of a Cluster, all of the same beginning.
      if (name.startsWith(names.epoch)) follower.onEpoch()
      else if (name.startsWith(names.session)) follower.onChanged(name.slice(names.session.length))
    }
  }

  /** A ping that is answered says that the invalidations sent before it have arrived. */
  #beat(): void {
    if (!this.#isUp) return
    const askedAt = performance.now()
    const asked = this.#connections
    Promise.all(asked.map(pingOrDialAnew)).then(
      () => {
        if (!this.#isUp || asked !== this.#connections) return
        this.#options.follower.onHeartbeat(performance.now() - askedAt)
      },
      () => {}
    )
  }
}

async function pingOrDialAnew({ redis }: TrackingConnection): Promise<void> {
  try {
    await redis.ping()
  } catch (error) {
    dialAnew(redis)
    throw error
  }
}

/**
 * Only a ready connection: disconnecting one that is already reconnecting would end it for good.
 */
function dialAnew(redis: Redis): void {
  if (redis.status === 'ready') redis.disconnect(true)
}

async function startTracking(redis: Redis, prefix: string): Promise<void> {
  const id = await redis.client('ID')
  await redis.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', String(id), 'BCAST', 'PREFIX', prefix)
  await redis.subscribe('__redis__:invalidate')
}

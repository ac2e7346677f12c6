/** News of changes in Redis: CLIENT TRACKING in broadcast mode, one connection for each primary. */
import type { Redis } from 'ioredis'
import type { Follower } from './store.ts'

export interface InvalidationOptions {
  /** The connections that news come over; called again when the primaries have changed. RESP2: ioredis drops RESP3's invalidations. */
  readonly dial: () => Redis[]
  /** Tells when the primaries have changed. */
  readonly onTopology: (changed: () => void) => void
  readonly follower: Follower
  readonly names: { readonly tracked: string; readonly session: string; readonly epoch: string }
  /** The longest that a silent channel may go unnoticed. */
  readonly maxStalenessMs: number
}

interface TrackingConnection {
  readonly redis: Redis
  up: boolean
}

/** @returns what ends it */
export function followRedis({
  dial,
  onTopology,
  follower,
  names,
  maxStalenessMs
}: InvalidationOptions): () => void {
  let lines: TrackingConnection[] = []
  let told = false
  let closed = false

  /** Up only when every primary tells its news: a change on the one that is missing would go unnoticed. */
  const tell = () => {
    const up = lines.length > 0 && lines.every(line => line.up)
    if (up && !told) follower.onUp()
    if (!up && told) follower.onDown()
    told = up
  }

  const listen = (redis: Redis): TrackingConnection => {
    const line: TrackingConnection = { redis, up: false }
    const down = () => {
      line.up = false
      tell()
    }
    redis.on('error', () => {})
    redis.on('close', down)
    redis.on('end', down)
    redis.on('ready', () => {
      track(redis, names.tracked).then(
        () => {
          line.up = true
          // Also when the others were up all the time: something may have changed here meanwhile.
          if (told) follower.onUp()
          tell()
        },
        () => dialAnew(redis)
      )
    })
    // "message" would join the keys with commas.
    redis.on('messageBuffer', (_channel: Buffer, keys: unknown) => {
      // No keys: Redis was flushed.
      if (!Array.isArray(keys)) return told ? follower.onUp() : undefined
      for (const key of keys as Buffer[]) {
        const name = key.toString()
        // One on each primary of a Cluster, all of the same beginning.
        if (name.startsWith(names.epoch)) follower.onEpoch()
        else if (name.startsWith(names.session))
          follower.onChanged(name.slice(names.session.length))
      }
    })
    return line
  }

  const redial = () => {
    if (closed) return
    for (const { redis } of lines) redis.disconnect()
    lines = []
    tell()
    lines = dial().map(listen)
  }

  // An answered ping says that the news sent before it have arrived.
  const heartbeat = setInterval(
    () => {
      const askedAt = performance.now()
      const asked = lines
      if (!told) return
      Promise.all(
        asked.map(async ({ redis }) => {
          try {
            await redis.ping()
          } catch (error) {
            dialAnew(redis)
            throw error
          }
        })
      ).then(
        () => {
          if (told && asked === lines) follower.onHeartbeat(performance.now() - askedAt)
        },
        () => {}
      )
    },
    Math.max(50, maxStalenessMs / 4)
  )
  heartbeat.unref()

  redial()
  onTopology(redial)
  return () => {
    closed = true
    clearInterval(heartbeat)
    for (const { redis } of lines) redis.disconnect()
  }
}

/** One that is being dialled already must be left to it: ioredis would take this for the end. */
function dialAnew(redis: Redis): void {
  if (redis.status === 'ready') redis.disconnect(true)
}

async function track(redis: Redis, prefix: string): Promise<void> {
  const id = await redis.client('ID')
  await redis.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', String(id), 'BCAST', 'PREFIX', prefix)
  await redis.subscribe('__redis__:invalidate')
}

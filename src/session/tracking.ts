/**
 * Announces changes of sessions in Redis: CLIENT TRACKING in broadcast mode, on one connection for
 * each primary.
 */
import type { Redis } from 'ioredis'
import type { Follower } from './store.ts'

interface Options {
  /**
   * The connections that invalidations come over; called again when the primaries have changed.
   * RESP2: ioredis drops RESP3's invalidations.
   */
  readonly dial: () => Redis[]
  /** Calls its listener when the primaries have changed. */
  readonly onTopology: (changed: () => void) => void
  /** Redis does not let its user follow changes: every request then asks it. */
  readonly onRefused: (error: Error) => void
}

interface Connection {
  readonly redis: Redis
  isTracking: boolean
}

const pingEveryMs = 500
/** Silence for so long is no health, though the connection stands. */
const staleAfterMs = 2000

export class Tracking {
  readonly #options: Options
  #follower: Follower | undefined
  /** The beginning of the records' keys. */
  #records = ''
  #connections: Connection[] = []
  #pings: NodeJS.Timeout | undefined
  /** Of the last ping that was answered, as of `performance.now()`. */
  #heardAt = -Infinity
  #isRefused = false
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
  }

  /** @param records how the keys begin whose changes are announced */
  readonly follow = (follower: Follower, records: string): void => {
    this.#follower = follower
    this.#records = records
    this.#dial()
    this.#options.onTopology(() => this.#dial())
    this.#pings = setInterval(() => void this.#ping(), pingEveryMs).unref()
  }

  /** Only where every primary announces: a change on one that is missing would go unnoticed. */
  readonly isFollowed = (): boolean => performance.now() - this.#heardAt < staleAfterMs

  close(): void {
    this.#isClosed = true
    clearInterval(this.#pings)
    this.#disconnect()
  }

  #dial(): void {
    if (this.#isClosed) return
    this.#disconnect()
    this.#connections = this.#options.dial().map(redis => this.#connect(redis))
  }

  #disconnect(): void {
    for (const { redis } of this.#connections) redis.disconnect()
    this.#connections = []
    this.#reset(-Infinity)
  }

  /** Changes may have been missed until now. */
  #reset(heardAt: number): void {
    this.#heardAt = heardAt
    this.#follower?.onReset()
  }

  #connect(redis: Redis): Connection {
    const connection: Connection = { redis, isTracking: false }
    const onLost = () => {
      connection.isTracking = false
      if (this.#connections.includes(connection)) this.#reset(-Infinity)
    }
    redis.on('error', () => {})
    redis.on('close', onLost)
    redis.on('end', onLost)
    redis.on('ready', () => void this.#track(connection))
    // "message" would join the keys with commas.
    redis.on('messageBuffer', (_channel: Buffer, keys: unknown) => this.#announce(keys))
    return connection
  }

  async #track(connection: Connection): Promise<void> {
    const { redis } = connection
    try {
      const id = String(await redis.client('ID'))
      const broadcast = ['BCAST', 'PREFIX', this.#records] as const
      await redis.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, ...broadcast)
      await redis.subscribe('__redis__:invalidate')
    } catch (error) {
      if (!isReply(error)) return dialAnew(redis)
      // It stays so until the next connection, which may be to another server.
      if (!this.#isRefused) this.#options.onRefused(error)
      this.#isRefused = true
      return
    }
    connection.isTracking = true
    if (!this.#isWhole()) return
    this.#reset(performance.now())
  }

  #isWhole(): boolean {
    return this.#connections.length > 0 && this.#connections.every(each => each.isTracking)
  }

  #announce(keys: unknown): void {
    // No keys: Redis was flushed.
    if (!Array.isArray(keys)) return this.#follower?.onReset()
    for (const key of keys as Buffer[]) {
      const name = key.toString().slice(this.#records.length)
      if (name === 'epoch') this.#follower?.onReset()
      else this.#follower?.onChanged(name)
    }
  }

  /** A ping that is answered says that the invalidations sent before it have arrived. */
  async #ping(): Promise<void> {
    if (!this.#isWhole()) return
    const askedAt = performance.now()
    const asked = this.#connections
    const answers = await Promise.all(asked.map(pingOrDialAnew))
    const isHeard = answers.every(Boolean) && asked === this.#connections && this.#isWhole()
    if (isHeard) this.#heardAt = askedAt
  }
}

async function pingOrDialAnew({ redis }: Connection): Promise<boolean> {
  try {
    await redis.ping()
    return true
  } catch {
    dialAnew(redis)
    return false
  }
}

/**
 * Only a ready connection: disconnecting one that is already reconnecting would end it for good.
 */
function dialAnew(redis: Redis): void {
  if (redis.status === 'ready') redis.disconnect(true)
}

/** Whether Redis itself refused, by its ACL or as a proxy that does not know the command. */
function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Announces changes of sessions in Redis: CLIENT TRACKING over a connection of its own. */
import type { Redis } from 'ioredis'
import type { Follower } from './store.ts'

interface Options {
  /** To the server that has the sessions, if it is known. RESP2: ioredis drops RESP3's pushes. */
  readonly dial: () => Redis | undefined
  /** Redis does not let its user follow changes: every request then asks it. Called once. */
  readonly onRefused: (error: Error) => void
}

const pingEveryMs = 500
/** Silence for so long is no health, though the connection stands. */
const staleAfterMs = 2000

export class Tracking {
  readonly #options: Options
  #follower: Follower | undefined
  #records = ''
  #redis: Redis | undefined
  #pings: NodeJS.Timeout | undefined
  /** When the last ping that was answered was sent; `-Infinity` while nothing is announced. */
  #heardAt = -Infinity
  #isRefused = false

  constructor(options: Options) {
    this.#options = options
  }

  readonly follow = (follower: Follower, records: string): void => {
    this.#follower = follower
    this.#records = records
    this.dial()
    this.#pings = setInterval(() => void this.#ping(), pingEveryMs).unref()
  }

  readonly isFollowed = (): boolean => performance.now() - this.#heardAt < staleAfterMs

  close(): void {
    clearInterval(this.#pings)
    this.#follower = undefined
    this.#redis?.disconnect()
  }

  /** To be called again when the sessions may be at another server. */
  dial(): void {
    if (this.#follower === undefined) return
    this.#redis?.disconnect()
    this.#reset(-Infinity)
    const redis = this.#options.dial()
    this.#redis = redis
    if (redis === undefined) return
    redis.on('error', () => {})
    redis.on('close', () => {
      if (this.#redis === redis) this.#reset(-Infinity)
    })
    redis.on('ready', () => void this.#track(redis))
    // "message" would join the keys with commas.
    redis.on('messageBuffer', (_channel: Buffer, keys: unknown) => this.#announce(keys))
  }

  #reset(heardAt: number): void {
    this.#heardAt = heardAt
    this.#follower?.onReset()
  }

  async #track(redis: Redis): Promise<void> {
    try {
      const id = String(await redis.client('ID'))
      const broadcast = ['BCAST', 'PREFIX', this.#records] as const
      await redis.call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, ...broadcast)
      await redis.subscribe('__redis__:invalidate')
    } catch (error) {
      // Otherwise Redis itself refused, by its ACL or as a proxy that does not know the command.
      if (!(error instanceof Error && error.name === 'ReplyError')) return dialAnew(redis)
      // It stays so until the next connection, which may be to another server.
      if (!this.#isRefused) this.#options.onRefused(error)
      this.#isRefused = true
      return
    }
    if (this.#redis === redis) this.#reset(performance.now())
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
    const redis = this.#redis
    if (redis === undefined || this.#heardAt === -Infinity) return
    const askedAt = performance.now()
    try {
      await redis.ping()
    } catch {
      return dialAnew(redis)
    }
    const isSame = this.#redis === redis && this.#heardAt !== -Infinity
    if (isSame) this.#heardAt = Math.max(this.#heardAt, askedAt)
  }
}

/** Only a ready connection: `disconnect` would end one for good that is reconnecting. */
function dialAnew(redis: Redis): void {
  if (redis.status === 'ready') redis.disconnect(true)
}

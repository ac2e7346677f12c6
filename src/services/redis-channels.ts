/** Messages on channels of Redis, over a connection of their own that is dialled anew when lost. */
import type { Redis } from 'ioredis'

interface Options {
  /** Undefined while no server is known. Called again when the primaries have changed. */
  readonly dial: () => Redis | undefined
  /** Calls its listener when the primaries have changed. */
  readonly onTopology: (changed: () => void) => void
  readonly channels: readonly string[]
  readonly onMessage: (channel: string, message: string) => void
  /** Each time that messages arrive again; those of the time before are lost. */
  readonly onUp: () => void
  /** Redis does not let its user subscribe. */
  readonly onRefused: () => void
}

export interface Subscription {
  readonly isUp: () => boolean
  readonly close: () => void
}

const pingEveryMs = 1000
const retryRefusedMs = 60_000

export function subscribeChannels(options: Options): Subscription {
  return new ChannelSubscription(options)
}

class ChannelSubscription implements Subscription {
  readonly #options: Options
  readonly #heartbeat: NodeJS.Timeout
  #connection: Redis | undefined
  #retry: NodeJS.Timeout | undefined
  #isSubscribed = false
  #isClosed = false

  constructor(options: Options) {
    this.#options = options
    this.#heartbeat = setInterval(() => this.#ping(), pingEveryMs).unref()
    this.#dial()
    options.onTopology(() => this.#dial())
  }

  readonly isUp = (): boolean => this.#isSubscribed

  readonly close = (): void => {
    this.#isClosed = true
    clearInterval(this.#heartbeat)
    clearTimeout(this.#retry)
    this.#connection?.disconnect()
  }

  #dial(): void {
    if (this.#isClosed) return
    this.#connection?.disconnect()
    this.#isSubscribed = false
    const connection = this.#options.dial()
    this.#connection = connection
    if (connection === undefined) return
    connection.on('error', () => {})
    connection.on('close', () => {
      if (connection === this.#connection) this.#isSubscribed = false
    })
    connection.on('ready', () => this.#subscribe(connection))
    connection.on('message', (channel: string, message: string) => {
      if (connection === this.#connection) this.#options.onMessage(channel, message)
    })
  }

  #subscribe(connection: Redis): void {
    clearTimeout(this.#retry)
    connection.subscribe(...this.#options.channels).then(
      () => {
        if (connection !== this.#connection) return
        this.#isSubscribed = true
        this.#options.onUp()
      },
      (error: Error) => {
        if (!error.message.startsWith('NOPERM')) return dialAnew(connection)
        this.#options.onRefused()
        this.#retry = setTimeout(() => dialAnew(connection), retryRefusedMs).unref()
      }
    )
  }

  /** A connection can stay open and yet lose its answers: only asking shows it. */
  #ping(): void {
    const connection = this.#connection
    if (connection === undefined || !this.#isSubscribed) return
    connection.ping().catch(() => dialAnew(connection))
  }
}

/** Disconnecting a connection that is already reconnecting would end it for good. */
function dialAnew(redis: Redis): void {
  if (redis.status === 'ready') redis.disconnect(true)
}

/** A client of the primary that Sentinels name, by ioredis' own means; two of its faults are mended. */
import { Redis, type RedisOptions, SentinelConnector } from 'ioredis'
import { adopt } from '../observability/emitters.ts'
import { backOff } from './redis-watch.ts'

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

/**
 * Dials until it is disconnected: ioredis 6 ends a client for good whose Sentinels tell of a
 * failover while it asks them for the primary.
 */
export class FollowingRedis extends Redis {
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
    this.on('end', () => setTimeout(() => this.#dialAgain(), 50))
  }

  override disconnect(reconnect = false): void {
    if (!reconnect) this.#isClosed = true
    super.disconnect(reconnect)
  }

  #dialAgain(): void {
    if (!this.#isClosed) this.connect().catch(() => {})
  }
}

/** The only dialler of Redis: clients that fail fast, say when Redis comes and goes, and re-dial a connection that lost its answers. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Redis } from 'ioredis'
import type { RedisConfig } from './config/gateway.ts'

export interface RedisEvents {
  readonly onUp: () => void
  readonly onDown: (reason: string) => void
}

const pingEveryMs = 1000

/**
 * A client whose commands settle within `commandTimeout`, also when Redis hangs or is gone.
 * It keeps dialling for ever; nothing is queued meanwhile, and nothing is sent twice.
 */
export function createRedisClient (config: RedisConfig, folder: string, { onUp, onDown }: RedisEvents): Redis {
  const { hostname, port, pathname, protocol } = new URL(config.url)
  const redis = new Redis({
    host: hostname.replace(/^\[|\]$/g, ''),
    port: port === '' ? 6379 : Number(port),
    db: pathname.length > 1 ? Number(pathname.slice(1)) : 0,
    ...(config.username !== undefined && { username: config.username }),
    ...(config.password !== undefined && { password: config.password }),
    ...(protocol === 'rediss:' && { tls: { servername: hostname, ...(config.ca !== undefined && { ca: readFileSync(resolve(folder, config.ca)) }) } }),
    connectTimeout: config.connectTimeout,
    commandTimeout: config.commandTimeout,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectionName: 'console-gateway',
    retryStrategy: attempt => Math.min(50 * 2 ** Math.min(attempt, 6), 2000) * (0.75 + Math.random() / 2)
  })
  let up: boolean | undefined
  const down = (reason: string) => {
    if (up !== false) onDown(reason)
    up = false
  }
  redis.on('ready', () => {
    up = true
    onUp()
  })
  redis.on('error', (error: Error & { code?: string }) => down(reasonOf(error)))
  redis.on('close', () => down('the connection closed'))
  // A connection can stay open and yet lose its answers; only a question that nobody answers shows it.
  const watchdog = setInterval(() => {
    if (redis.status !== 'ready') return
    redis.ping().catch((error: Error) => {
      if (redis.status !== 'ready' || !error.message.includes('timed out')) return
      down('it does not answer')
      redis.disconnect(true)
    })
  }, pingEveryMs)
  watchdog.unref()
  redis.on('end', () => clearInterval(watchdog))
  return redis
}

/** Says what is wrong without what a log must not hold: Redis never echoes a password, but an address is enough. */
function reasonOf ({ code, message }: Error & { code?: string }): string {
  if (message.startsWith('WRONGPASS') || message.startsWith('NOAUTH')) return 'the user or the password is wrong'
  return code ?? message.slice(0, 120)
}

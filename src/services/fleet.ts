/** The replicas of this gateway: each tells the others how it is, once a second. */
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import type { Seal } from '../session/seal.ts'
import type { GatewayState } from './gateway-state.ts'
import type { Present } from './present.ts'
import type { Services } from './services.ts'
import type { Background } from './shared.ts'

interface Options extends Background {
  readonly id: string
  readonly seal: Seal
  readonly state: () => GatewayState
  readonly present: Pick<Present, 'read'>
  /** Gets what replicas share of it with each beat, and soon after the start. */
  readonly maintenance: Pick<Services['maintenance'], 'take'>
}

const noRedis = 'No Redis is configured: this replica knows of no other.'
const redisAway = 'Redis cannot be asked: this replica knows of no other now.'
const everyMs = 1000
const silentMs = 3500
const forgetMs = 10_000
const startMs = 500

/** Of Redis, since the clocks of replicas differ. */
const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/** KEYS: replicas, maintenance. ARGV: what was told before, and is now; how long it counts. */
const beatScript = `${clock}
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('ZADD', KEYS[1], now, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return redis.call('GET', KEYS[2])`

const listScript = `${clock}
return { now, redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES') }`

export type Fleet = ReturnType<typeof createFleet>

export function createFleet(options: Options) {
  const { id, redis, prefix, seal, state, present, maintenance } = options
  const key = `${prefix}replicas`
  let told = ''
  let beating: Promise<void> | undefined
  const first = Promise.withResolvers<void>()
  const describeOwn = () => ({ id, host: hostname(), ...describe(state(), present) })

  async function tell(): Promise<void> {
    const before = told
    told = seal.close(key, describeOwn())
    try {
      const args = [key, `${prefix}maintenance`, before, told, forgetMs]
      maintenance.take((await redis?.eval(beatScript, 2, ...args)) as string | null)
      first.resolve()
    } catch {
      // Redis is away, which its client logs.
    }
  }

  function beat(): void {
    beating ??= tell().finally(() => {
      beating = undefined
    })
  }

  async function readAll(from: Redis | Cluster) {
    const [now, seen] = (await from.eval(listScript, 1, key)) as [number, string[]]
    const states = seen.flatMap((sealed, index) => {
      // Each is followed by its time. Another secret seals those of another gateway.
      const opened = index % 2 === 0 ? seal.open(key, sealed) : undefined
      if (opened === undefined) return []
      const at = Number(seen[index + 1])
      const replica = opened as ReturnType<typeof describeOwn>
      return [{ ...replica, seenAt: new Date(at).toISOString(), isSilent: now - at > silentMs }]
    })
    // The newest of each counts: a beat without an answer may leave the one before there.
    return [...new Map(states.map(each => [each.id, each])).values()]
  }

  const timer = redis === undefined ? undefined : setInterval(beat, everyMs).unref()
  redis?.on('ready', beat)

  return {
    /** Resolves when what replicas share was read, and soon where Redis is away. */
    begin: async (): Promise<void> => {
      if (redis === undefined) return
      beat()
      await Promise.race([first.promise, wait(startMs, undefined, { ref: false })])
    },
    /** This replica first. @returns others too where Redis can be asked, and else why not */
    list: async () => {
      const own = { ...describeOwn(), seenAt: new Date().toISOString(), isSilent: false }
      if (redis === undefined) return { replicas: [own], info: noRedis }
      return await readAll(redis).then(
        all => ({ replicas: [own, ...all.filter(each => each.id !== id)] }),
        () => ({ replicas: [own], info: redisAway })
      )
    },
    close: async (): Promise<void> => {
      clearInterval(timer)
      redis?.off('ready', beat)
      await beating
      await redis?.zrem(key, told).catch(() => {})
    }
  }
}

function describe(state: GatewayState, present: Options['present']) {
  const { version, startedAt, ready, config } = state
  const { generation, hash: configHash, files, restartNeeded } = config
  const { requestsPerSecond, errorShare, p99Ms } = present.read()
  return {
    version,
    pid: process.pid,
    startedAt,
    ready,
    generation,
    configHash,
    files: files.state,
    ...(files.state === 'refused' && { fault: files.faults[0] }),
    restartNeeded: [...restartNeeded],
    requestsPerSecond,
    errorShare,
    p99Ms
  }
}

/** The replicas of this gateway: each tells the others how it is, once a second. */
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import type { Seal } from '../session/seal.ts'
import type { SignOuts } from './operator-sign-outs.ts'
import type { Background } from './shared.ts'

interface Options<State> extends Background {
  readonly id: string
  readonly seal: Seal
  readonly describe: () => State
  /** Called with each beat, and soon after the start, with the maintenance that replicas share. */
  readonly onMaintenance: (sealed: string | null) => void
  /** Told and heard with each beat. */
  readonly signOuts: SignOuts
}

const noRedis = 'No Redis is configured: this replica knows of no other.'
const redisAway = 'Redis cannot be asked: this replica knows of no other now.'
const everyMs = 1000
const silentMs = 3500
/** A replica that told nothing for so long is forgotten. */
const forgetMs = 10_000
/** Longer than the cookies that a sign-out of an operator has to end. */
const keepSignOutsMs = 2 * 3_600_000
/** A start does not wait longer for Redis. */
const startMs = 500

const beatScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[2])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])) do
  redis.call('ZREM', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[3])
for i = 5, #ARGV, 2 do
  redis.call('ZADD', KEYS[4], 'GT', ARGV[i], ARGV[i + 1])
  redis.call('PEXPIRE', KEYS[4], ARGV[4])
end
return { redis.call('GET', KEYS[3]), redis.call('ZREVRANGE', KEYS[4], 0, 999, 'WITHSCORES') }`

const listScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local replicas = {}
for i = 1, #seen, 2 do
  table.insert(replicas, { seen[i], seen[i + 1], redis.call('HGET', KEYS[2], seen[i]) })
end
return { now, replicas }`

export type Fleet<State extends object> = ReturnType<typeof createFleet<State>>

export function createFleet<State extends object>(options: Options<State>) {
  const { id, redis, prefix, seal, describe, onMaintenance, signOuts } = options
  const [seenKey, infoKey] = [`${prefix}replicas`, `${prefix}replica-info`]
  let beating: Promise<void> | undefined
  const first = Promise.withResolvers<void>()
  const describeOwn = () => ({ id, host: hostname(), ...describe() })

  async function tell(): Promise<void> {
    const keys = [seenKey, infoKey, `${prefix}maintenance`, `${prefix}operator-sign-outs`]
    try {
      const info = seal.close(id, JSON.stringify(describeOwn()))
      const told = [id, info, forgetMs, keepSignOutsMs, ...signOuts.told()]
      const shared = await redis?.eval(beatScript, keys.length, ...keys, ...told)
      const [maintenance, heard] = shared as [string | null, string[]]
      signOuts.take(heard)
      onMaintenance(maintenance)
      first.resolve()
    } catch {
      // Redis is away, which its client logs.
    }
  }

  /** Redis may take its time: one at a time. */
  function beat(): Promise<void> {
    beating ??= tell().finally(() => {
      beating = undefined
    })
    return beating
  }

  async function readOthers(from: Redis | Cluster) {
    const answer = await from.eval(listScript, 2, seenKey, infoKey)
    const [now, seen] = answer as [number, Array<[id: string, at: string, info: string | null]>]
    return seen.flatMap(([name, at, info]) => {
      // What is sealed with another secret is of another gateway.
      const text = name === id ? undefined : seal.open(name, info ?? '')
      if (text === undefined) return []
      const state = JSON.parse(text) as ReturnType<typeof describeOwn>
      const seenAt = new Date(Number(at)).toISOString()
      return [{ ...state, seenAt, isSilent: now - Number(at) > silentMs }]
    })
  }

  const onTime = () => void beat()
  const timer = redis === undefined ? undefined : setInterval(onTime, everyMs).unref()
  redis?.on('ready', onTime)

  return {
    id,
    /** Resolves when what replicas share was read, and soon where Redis is away. */
    begin: async (): Promise<void> => {
      if (redis === undefined) return
      onTime()
      await Promise.race([first.promise, wait(startMs, undefined, { ref: false })])
    },
    /** Tells and hears what happened until now, ahead of the next beat. */
    exchange: async (): Promise<void> => {
      if (redis === undefined) return
      await beating
      await beat()
    },
    /** This replica first. @returns others too where Redis can be asked, and else why not */
    list: async () => {
      const own = { ...describeOwn(), seenAt: new Date().toISOString(), isSilent: false }
      if (redis === undefined) return { replicas: [own], info: noRedis }
      return await readOthers(redis).then(
        others => ({ replicas: [own, ...others] }),
        () => ({ replicas: [own], info: redisAway })
      )
    },
    close: async (): Promise<void> => {
      clearInterval(timer)
      redis?.off('ready', onTime)
      await beating
      await Promise.all([redis?.zrem(seenKey, id), redis?.hdel(infoKey, id)]).catch(() => {})
    }
  }
}

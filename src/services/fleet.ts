/** The replicas of this gateway: each tells the others how it is, once a second. */
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import type { Seal } from '../session/seal.ts'

/** What a replica tells of itself, and what others add to it. */
export type Replica<State> = State & {
  readonly id: string
  readonly host: string
  /** By the clock of Redis; ISO 8601. */
  readonly seenAt: string
  /** Whether it has told nothing for some seconds. */
  readonly isSilent: boolean
}

interface Options<State> {
  readonly id: string
  /** Undefined for a gateway that is alone. */
  readonly redis?: Redis | Cluster | undefined
  /** Before the names of keys, which then are in one slot. */
  readonly prefix: string
  readonly seal: Pick<Seal, 'close' | 'open'>
  readonly describe: () => State
  /** Called with each beat, and soon after the start, with the maintenance that replicas share. */
  readonly onMaintenance: (sealed: string | null) => void
}

const everyMs = 1000
const silentMs = 3500
/** A replica that told nothing for so long is forgotten. */
const forgetMs = 10_000
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
return redis.call('GET', KEYS[3])`

const listScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local seen = redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')
local replicas = {}
for i = 1, #seen, 2 do
  table.insert(replicas, { seen[i], seen[i + 1], redis.call('HGET', KEYS[2], seen[i]) })
end
return { now, replicas }`

export class Fleet<State> {
  readonly #options: Options<State>
  readonly #keys: readonly [seen: string, info: string, maintenance: string]
  readonly #timer: NodeJS.Timeout | undefined
  #beating: Promise<void> | undefined

  constructor(options: Options<State>) {
    const { redis, prefix } = options
    this.#options = options
    this.#keys = [`${prefix}replicas`, `${prefix}replica-info`, `${prefix}maintenance`]
    if (redis === undefined) return
    redis.on('ready', this.#onTime)
    this.#timer = setInterval(this.#onTime, everyMs).unref()
  }

  readonly #onTime = () => void this.#beat()

  get id(): string {
    return this.#options.id
  }

  /** Resolves when what replicas share was read, and soon where Redis is away. */
  async begin(): Promise<void> {
    const { redis } = this.#options
    if (redis === undefined) return
    const isReady =
      redis.status === 'ready' || new Promise<void>(resolve => redis.once('ready', resolve))
    const first = Promise.resolve(isReady).then(() => this.#beat())
    await Promise.race([first, wait(startMs, undefined, { ref: false })])
  }

  /** This replica first. @returns others too where Redis can be asked, and else why not */
  async list(): Promise<{
    readonly replicas: ReadonlyArray<Replica<State>>
    readonly info?: string
  }> {
    const { id, redis } = this.#options
    const own: Replica<State> = {
      ...this.#own(),
      seenAt: new Date().toISOString(),
      isSilent: false
    }
    if (redis === undefined) {
      return { replicas: [own], info: 'No Redis is configured: this replica knows of no other.' }
    }
    try {
      const all = await this.#read(redis)
      return { replicas: [own, ...all.filter(each => each.id !== id)] }
    } catch {
      return { replicas: [own], info: 'Redis cannot be asked: this replica knows of no other now.' }
    }
  }

  async close(): Promise<void> {
    const { id, redis } = this.#options
    clearInterval(this.#timer)
    redis?.off('ready', this.#onTime)
    await this.#beating
    const [seen, info] = this.#keys
    await Promise.all([redis?.zrem(seen, id), redis?.hdel(info, id)]).catch(() => {})
  }

  #own() {
    const { id, describe } = this.#options
    return { id, host: hostname(), ...describe() }
  }

  /** Redis may take its time: one at a time. */
  #beat(): Promise<void> {
    this.#beating ??= this.#tell().finally(() => {
      this.#beating = undefined
    })
    return this.#beating
  }

  async #tell(): Promise<void> {
    const { id, redis, seal, onMaintenance } = this.#options
    try {
      const info = seal.close(id, JSON.stringify(this.#own()))
      const shared = await redis?.eval(beatScript, 3, ...this.#keys, id, info, forgetMs)
      onMaintenance(shared as string | null)
    } catch {
      // Redis is away, which its client logs.
    }
  }

  async #read(redis: Redis | Cluster): Promise<Array<Replica<State>>> {
    const { seal } = this.#options
    const answer = await redis.eval(listScript, 2, ...this.#keys.slice(0, 2))
    const [now, seen] = answer as [number, Array<[id: string, at: string, info: string | null]>]
    return seen.flatMap(([id, at, info]) => {
      // What is sealed with another secret is of another gateway.
      const text = seal.open(id, info ?? '')
      if (text === undefined) return []
      const state = JSON.parse(text) as State & { id: string; host: string }
      const seenAt = new Date(Number(at)).toISOString()
      return [{ ...state, seenAt, isSilent: now - Number(at) > silentMs }]
    })
  }
}

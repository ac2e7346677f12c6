/** The directory of replicas: each keeps a sealed entry about itself in Redis, which expires. */
import type { Cluster, Redis, Result } from 'ioredis'
import { parseKeepingDigits } from '../json/digits.ts'
import type { ReplicaSeal } from './replica-seal.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    announceReplica(
      key: string,
      id: string,
      entry: string,
      keepMs: number,
      maxEntry: number
    ): Result<unknown, Context>
    listReplicas(key: string, maxEntries: number, maxEntry: number): Result<unknown, Context>
  }
}

/** The entry that a replica writes of itself. */
export interface ReplicaInfo {
  readonly id: string
  readonly host: string
  readonly version: string
  readonly pid: number
  readonly startedAt: string
  readonly generation: number
  readonly configHash?: string | undefined
  readonly ready: boolean
  /** By the clock of Redis. */
  readonly seenAt: string
}

export interface ReplicaDirectory {
  readonly announce: (info: ReplicaInfo) => Promise<void>
  /** Replicas seen of late. @throws where Redis does not answer */
  readonly list: () => Promise<ReplicaInfo[]>
  readonly leave: () => Promise<void>
}

interface Options {
  readonly redis: Redis | Cluster
  readonly prefix: string
  readonly seal: ReplicaSeal
  readonly id: string
  /** The clock of Redis. */
  readonly now: () => number
}

/** A replica that is delayed for a while still counts. */
const forgetAfterMs = 10_000
const keepKeyMs = 60_000
const maxEntryLength = 4096
const maxEntries = 256

/** Beside its own entry each replica clears away a few that are too old or too long to be ours. */
const announceScript = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%d ', now) .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
for _, id in ipairs(redis.call('HRANDFIELD', KEYS[1], 16)) do
  local writtenAt
  if redis.call('HSTRLEN', KEYS[1], id) <= tonumber(ARGV[4]) then
    writtenAt = tonumber(string.match(redis.call('HGET', KEYS[1], id), '^(%d+) '))
  end
  if not writtenAt or now - writtenAt > tonumber(ARGV[3]) then
    redis.call('HDEL', KEYS[1], id)
  end
end`

const listScript = `
local entries = {}
for _, id in ipairs(redis.call('HRANDFIELD', KEYS[1], ARGV[1])) do
  if #id <= 100 and redis.call('HSTRLEN', KEYS[1], id) <= tonumber(ARGV[2]) then
    table.insert(entries, id)
    table.insert(entries, redis.call('HGET', KEYS[1], id))
  end
end
return entries`

export function createReplicaDirectory(options: Options): ReplicaDirectory {
  const { redis, prefix, seal, id, now } = options
  const key = `${prefix}replica-directory`
  redis.defineCommand('announceReplica', { numberOfKeys: 1, lua: announceScript })
  redis.defineCommand('listReplicas', { numberOfKeys: 1, lua: listScript })

  /** @returns undefined for an entry that is not sealed by one of us for this id, or is too old */
  function read(field: string, entry: string): ReplicaInfo | undefined {
    const sealed = entry.slice(entry.indexOf(' ') + 1)
    const opened = seal.open(contextOf(field), sealed)
    if (opened === undefined) return undefined
    const info = parseKeepingDigits(opened.text) as unknown as ReplicaInfo
    // The time inside the seal: an old entry that was put back does not revive a replica.
    return Math.abs(now() - Date.parse(info.seenAt)) <= forgetAfterMs ? info : undefined
  }

  return {
    announce: async info => {
      const entry = seal.close(contextOf(id), JSON.stringify(info))
      await redis.announceReplica(key, id, entry, keepKeyMs, maxEntryLength)
    },
    list: async () => {
      const entries: unknown = await redis.listReplicas(key, maxEntries, maxEntryLength)
      if (!Array.isArray(entries)) return []
      return pairsOf(entries).flatMap(([field, entry]) => read(field, entry) ?? [])
    },
    leave: async () => {
      if (redis.status === 'ready') await redis.hdel(key, id).catch(() => {})
    }
  }
}

function contextOf(id: string): string {
  return `directory ${id}`
}

function pairsOf(flat: readonly unknown[]): Array<readonly [field: string, entry: string]> {
  const pairs: Array<readonly [string, string]> = []
  for (let index = 0; index + 1 < flat.length; index += 2) {
    pairs.push([String(flat[index]), String(flat[index + 1])])
  }
  return pairs
}

/** The ends of the ledger's chains in Redis, in one hash: by chain its `mac`, and where its file is. */
import { hostname } from 'node:os'
import type { Cluster, Redis } from 'ioredis'
import type { Heads } from '../observability/audit/ledger.ts'
import type { Head } from '../observability/audit/verify.ts'

interface Place {
  readonly redis: Redis | Cluster
  /** Before the name of the key. */
  readonly prefix: string
  /** Of the files; `stdout` for none. */
  readonly folder: string
}

const keyOf = ({ prefix }: Place) => `${prefix}audit-heads`
const placeOf = ({ folder }: Place) => `${hostname()} ${folder}`

export function redisHeads(place: Place): Heads {
  const { redis } = place
  return {
    set: async (chain, mac) => {
      if (redis.status !== 'ready') throw new Error('Redis is away')
      await redis.hset(keyOf(place), chain, `${mac} ${placeOf(place)}`)
    },
    remove: async chains => await redis.hdel(keyOf(place), ...chains)
  }
}

export async function readHeads(place: Place): Promise<Record<string, Head>> {
  const stored = await place.redis.hgetall(keyOf(place))
  return Object.fromEntries(
    Object.entries(stored).map(([chain, text]) => {
      const [mac = ''] = text.split(' ', 1)
      return [chain, { mac, isHere: text === `${mac} ${placeOf(place)}` }]
    })
  )
}

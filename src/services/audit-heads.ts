/** The heads of the audit ledger's chains in Redis, in one hash. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Cluster, Redis } from 'ioredis'
import type { HeadStore } from '../observability/audit/head.ts'

const readyMs = 1500
const pollMs = 50

/** @param client is there once the gateway has made it; its commands fail while Redis is away */
export function redisHeads(client: () => Promise<Redis | Cluster>, prefix: string): HeadStore {
  const key = `${prefix}audit:heads`
  const ready = async () => {
    const redis = await client()
    const giveUpAt = performance.now() + readyMs
    while (redis.status !== 'ready' && performance.now() < giveUpAt) await wait(pollMs)
    return redis
  }
  return {
    read: async chain => (await (await ready()).hget(key, chain)) ?? undefined,
    chains: async () => await (await ready()).hkeys(key),
    write: async (chain, head) => {
      await (await client()).hset(key, chain, head)
    },
    remove: async chain => {
      await (await client()).hdel(key, chain)
    }
  }
}

/** Locks in Redis that end by themselves, and the fences that number their holders. */
import { nonsense, orUnavailable, type RedisContext } from './redis-context.ts'
import { contestedMs, type LockStore } from './store.ts'

export function createRedisLocks({ redis, keys }: RedisContext): LockStore {
  return {
    async lock(name, owner, ttlMs) {
      return (await orUnavailable(redis.set(keys.lock(name), owner, 'PX', ttlMs, 'NX'))) === 'OK'
    },
    async fence(name, owner, ttlMs) {
      const both = [keys.lock(name), keys.fence(name)] as const
      const reply = await orUnavailable(redis.sessionFence(...both, owner, ttlMs, contestedMs))
      if (reply === null) return undefined
      const [written, contested] = reply
      const number = Number(written)
      if (!Number.isSafeInteger(number)) throw nonsense()
      return { number, isContested: contested === 1 }
    },
    async unlock(name, owner, isSettled = true) {
      const both = [keys.lock(name), keys.fence(name)] as const
      await orUnavailable(redis.sessionUnlock(...both, owner, isSettled ? 1 : 0))
    }
  }
}

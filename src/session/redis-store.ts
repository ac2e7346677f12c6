/** Sessions in Redis: one string a session, its time to live the idle clock. */
import type { Redis, Result } from 'ioredis'
import { epitaphMark, StoreUnavailable, type SessionStore } from './session.ts'

declare module 'ioredis' {
  interface RedisCommander<Context> {
    sessionEnd (key: string, epitaph: string, ttlMs: number, mark: string): Result<number, Context>
    sessionRead (key: string): Result<[string, number] | null, Context>
  }
}

// One round trip and one answer, so that value and time left belong together.
const readScript = `
local value = redis.call('GET', KEYS[1])
if not value then return nil end
return { value, redis.call('PTTL', KEYS[1]) }`

const endScript = `
local value = redis.call('GET', KEYS[1])
if not value or string.sub(value, 1, 1) == ARGV[3] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`

interface Options {
  readonly redis: Redis
  /** What every key begins with. */
  readonly prefix: string
}

/** The store does not own the client: whoever made it closes it. */
export function createRedisStore ({ redis, prefix }: Options): SessionStore {
  redis.defineCommand('sessionRead', { numberOfKeys: 1, lua: readScript, readOnly: true })
  redis.defineCommand('sessionEnd', { numberOfKeys: 1, lua: endScript })
  const keyOf = (key: string) => `${prefix}session:${key}`
  const answer = async <T>(command: Promise<T>): Promise<T> => {
    try {
      return await command
    } catch (error) {
      throw new StoreUnavailable(error)
    }
  }

  return {
    async create (key, record, ttlMs) {
      const written = await answer(redis.set(keyOf(key), record, 'PX', ttlMs, 'NX'))
      if (written !== 'OK') throw new Error('a session with this id is there already')
    },
    async read (key) {
      let found: [string, number] | null
      try {
        found = await redis.sessionRead(keyOf(key))
      } catch (error) {
        // A key of another type is surely no session of ours.
        if (error instanceof Error && error.message.includes('WRONGTYPE')) return undefined
        throw new StoreUnavailable(error)
      }
      // Without a time to live it is not ours either: we never write such.
      return found === null || found[1] < 0 ? undefined : { record: found[0], ttlMs: found[1] }
    },
    async touch (key, ttlMs) {
      await answer(redis.pexpire(keyOf(key), ttlMs))
    },
    async end (key, epitaph, ttlMs) {
      return await answer(redis.sessionEnd(keyOf(key), epitaph, ttlMs, epitaphMark)) === 1
    },
    async ping () {
      return await redis.ping().then(() => true, () => false)
    },
    async close () {}
  }
}

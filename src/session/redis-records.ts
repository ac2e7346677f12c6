/**
 * Session records in Redis: one string a session. Its time to live is the idle clock, or that of a
 * second key, whose changes nobody is told of.
 */
import { nonsense, orUnavailable, type RedisContext } from './redis-context.ts'
import { scripts } from './redis-scripts.ts'
import { createRevocationJournal } from './revocation-journal.ts'
import { EndUnconfirmed, type RecordStore, StoreUnavailable } from './store.ts'

type Read = [record: string, ttlMs: number]

export function createRedisRecords({ redis, keys, write }: RedisContext) {
  const journal = createRevocationJournal()

  /**
   * Writes the latest ends again, in case a new primary does not have them. As whole scripts: a
   * script that must be loaded first would run after the reads that follow on the connection.
   */
  function replayEnds(): void {
    for (const { key, tombstone, ttlMs } of journal.recent()) {
      redis
        .eval(scripts.sessionEnd, 2, keys.session + key, keys.clock(key), tombstone, ttlMs)
        .catch(() => {})
    }
  }

  const records: RecordStore = {
    async create(key, record, ttlMs) {
      const name = keys.session + key
      const isWritten = await write(
        name,
        'connected',
        async on => await on.sessionCreate(name, keys.clock(key), record, ttlMs)
      )
      if (isWritten === 1) return
      throw new StoreUnavailable(new Error('a session with this id exists already'))
    },
    async read(key) {
      let reply: unknown
      try {
        reply = await redis.sessionRead(keys.session + key, keys.clock(key))
      } catch (error) {
        // A key of another type is not a session of ours.
        if (error instanceof Error && error.message.includes('WRONGTYPE')) return undefined
        throw new StoreUnavailable(error)
      }
      if (reply === null) return undefined
      if (!isRead(reply)) throw nonsense()
      const [record, ttlMs] = reply
      return { record, ttlMs }
    },
    async touch(key, ttlMs, aboveMs) {
      const [name, clock] = [keys.session + key, keys.clock(key)]
      const touched = redis.sessionTouch(name, clock, Math.ceil(ttlMs), aboveMs)
      return (await orUnavailable(touched)) === 1
    },
    async touchAfterUse(key, ttlMs, aboveMs) {
      const [name, clock] = [keys.session + key, keys.clock(key)]
      const touched = redis.sessionTouchAfterUse(name, clock, Math.ceil(ttlMs), aboveMs)
      return (await orUnavailable(touched)) === 1
    },
    async replace(key, from, to) {
      return (await orUnavailable(redis.sessionReplace(keys.session + key, from, to))) === 1
    },
    async end(key, tombstone, ttlMs) {
      const name = keys.session + key
      journal.add({ key, tombstone, ttlMs })
      let isEnded = false
      try {
        await write(name, 'every', async on => {
          isEnded = (await on.sessionEnd(name, keys.clock(key), tombstone, ttlMs)) === 1
        })
      } catch (error) {
        if (!isEnded || !(error instanceof StoreUnavailable)) throw error
        throw new EndUnconfirmed(error.cause)
      }
      return isEnded
    }
  }
  return { records, replayEnds }
}

function isRead(reply: unknown): reply is Read {
  return Array.isArray(reply) && typeof reply[0] === 'string' && typeof reply[1] === 'number'
}

/** The session store in Redis, put together from its parts. */
import type { Cluster, Redis } from 'ioredis'
import { createContext, type ReplicatedWrites } from './redis-context.ts'
import { createRedisEpoch } from './redis-epoch.ts'
import { createRedisIndex, createRedisUsers } from './redis-index.ts'
import { createRedisLocks } from './redis-locks.ts'
import { createRedisRecords } from './redis-records.ts'
import { defineCommands } from './redis-scripts.ts'
import type { Follower, SessionStore } from './store.ts'

interface Options {
  readonly redis: Redis | Cluster
  /** The beginning of every key. */
  readonly prefix: string
  /** Brings the announcements of changes; see redis-invalidation.ts. */
  readonly follow: (
    follower: Follower,
    names: { readonly tracked: string; readonly session: string; readonly epoch: string }
  ) => void
  /** Without it a write counts as soon as the primary has it. */
  readonly replicated?: ReplicatedWrites
  /**
   * Calls its listener when a server may be another one than before, before anything is read from
   * it.
   */
  readonly onPrimary?: (listener: () => void) => void
  /** A key on each primary of a Cluster, as its slots are now. */
  readonly keysOnEach?: (plain: string) => readonly string[]
}

/** The store does not own the client: whoever made it closes it. */
export function createRedisStore(options: Options): SessionStore {
  const { redis, prefix, replicated, onPrimary, keysOnEach = key => [key] } = options
  defineCommands(redis)
  const context = createContext(redis, prefix, replicated)
  const { records, replayEnds } = createRedisRecords(context)
  const { epoch, replayBump } = createRedisEpoch(context, keysOnEach)
  onPrimary?.(() => {
    replayEnds()
    replayBump()
  })

  return {
    ...records,
    ...createRedisIndex(context),
    ...createRedisUsers(context),
    ...createRedisLocks(context),
    ...epoch,
    follow(follower) {
      options.follow(follower, context.keys)
    },
    async ping() {
      return await redis.ping().then(
        () => true,
        () => false
      )
    },
    async close() {}
  }
}

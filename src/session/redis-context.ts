/**
 * Shared by the parts of the Redis session store: the client, key names, and writes that replicas
 * confirm.
 */
import type { Cluster, Redis } from 'ioredis'
import type { IdentityKey } from './identity-key.ts'
import { StoreUnavailable } from './store.ts'

/** `every` also waits for replicas that are away; see the services' replicated writes. */
type Confirmation = 'every' | 'connected'

/** Writes that count only once the replicas have them. */
export interface ReplicatedWrites {
  readonly run: <T>(
    key: string,
    confirmation: Confirmation,
    write: (on: Redis) => Promise<T>
  ) => Promise<T>
}

/** The names of the store's keys. */
export function createKeys(prefix: string) {
  // One prefix for all keys whose changes are announced.
  const tracked = `${prefix}session`
  const session = `${tracked}:`
  const lock = (name: string) => `${prefix}lock:${name}`
  return {
    tracked,
    session,
    /**
     * In the slot of the session's record, whose key is the hash tag. Changes are not announced.
     */
    clock: (key: string) => `${prefix}clock:{${session}${key}}`,
    epoch: `${tracked}-epoch`,
    index: (user: IdentityKey) => `${prefix}identity:${user}`,
    signedIn: `${prefix}signed-in`,
    users: (source: string) => `${prefix}users:${source}`,
    lock,
    /**
     * In the slot of the lock, whose key is the hash tag; it begins as all keys do, for ACL users.
     */
    fence: (name: string) => `${prefix}fence:{${lock(name)}}`
  }
}

export interface RedisContext {
  readonly redis: Redis | Cluster
  readonly keys: ReturnType<typeof createKeys>
  /** @throws StoreUnavailable where Redis, or a replica that has to confirm, does not answer */
  readonly write: <T>(
    key: string,
    confirmation: Confirmation,
    work: (on: Redis | Cluster) => Promise<T>
  ) => Promise<T>
}

/** @param replicated without it a write counts as soon as the primary has it */
export function createContext(
  redis: Redis | Cluster,
  prefix: string,
  replicated: ReplicatedWrites | undefined
): RedisContext {
  return {
    redis,
    keys: createKeys(prefix),
    write: async (key, confirmation, work) =>
      await orUnavailable(
        replicated === undefined ? work(redis) : replicated.run(key, confirmation, work)
      )
  }
}

export async function orUnavailable<T>(command: Promise<T>): Promise<T> {
  try {
    return await command
  } catch (error) {
    throw new StoreUnavailable(error)
  }
}

/** A reply of the wrong form: the connection's replies are probably out of step. */
export function nonsense(): StoreUnavailable {
  return new StoreUnavailable(new Error('Redis gave an answer that makes no sense'))
}

export function isListOfTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every(each => typeof each === 'string')
}

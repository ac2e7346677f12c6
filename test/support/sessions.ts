/** Parts of tests of sessions and their stores. */
import type { RedisConfig } from '../../src/config/schema/gateway.ts'
import { createRedisDialler } from '../../src/services/redis.ts'
import { MemoryStore } from '../../src/session/memory-store.ts'
import { RedisStore } from '../../src/session/redis-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { Sessions } from '../../src/session/sessions.ts'
import type { Follower, Opening, SessionStore } from '../../src/session/store.ts'
import { Tracking } from '../../src/session/tracking.ts'
import {
  createSecretId,
  type Evaluation,
  keyOf,
  type NewSession,
  type SignedIn,
  signedInOf
} from '../../src/session/types.ts'
import { steadyClock } from '../../src/steady-clock.ts'
import { until } from './until.ts'

type CleanUp = (undo: () => unknown) => void
type Options = ConstructorParameters<typeof Sessions>[0]

export const minute = 60_000
export const hour = 60 * minute
const seal = createSeal(['a secret of at least thirty-two characters'])

const usual: Options['config'] = {
  idle: 30 * minute,
  absolute: 8 * hour,
  remembered: {},
  perUser: { max: 5, over: 'evict-oldest' }
}

export const newSession = (user = 'u', more: Partial<NewSession> = {}): NewSession => ({
  identity: { id: user, username: user, name: user, roles: [], profile: {} },
  source: 's',
  remembered: false,
  address: '',
  agent: '',
  ...more
})

export const sessionsOver = (store: SessionStore, more: Partial<Options> = {}): Sessions =>
  new Sessions({
    store,
    seal,
    config: usual,
    ...more
  })

/** What a store is asked to open. */
export const openingOf = (user: SignedIn, more: Partial<Opening> = {}): Opening => ({
  key: keyOf(createSecretId(user)),
  stored: { sealed: 'sealed', idleMs: hour, absoluteMs: hour },
  user,
  max: 3,
  refuse: false,
  ...more
})

/** Opens a session as a sign-in does. */
export async function signIn(sessions: Sessions, opening = newSession()) {
  const secretId = createSecretId(signedInOf(opening))
  return { secretId, live: await sessions.open(secretId, opening) }
}

/** The session of a cookie's value, as a request finds it. */
export async function look(sessions: Sessions, secretId: string): Promise<Evaluation> {
  const key = keyOf(secretId)
  const live = sessions.cached(key)
  return live === undefined ? await sessions.read(key) : { live }
}

/** A store with other methods in the place of some of its own. */
export function withMethods(store: SessionStore, methods: Partial<SessionStore>): SessionStore {
  return new Proxy(store, {
    get: (target, name: keyof SessionStore) => methods[name] ?? target[name].bind(target as never)
  })
}

/** One store in memory for several replicas, which all hear of its changes; its time is the test's. */
export function sharedMemory() {
  const clock = { now: 1_000_000 }
  steadyClock.now = () => clock.now
  const store = new MemoryStore()
  const followers: Follower[] = []
  store.follow({
    onChanged: key => followers.forEach(each => each.onChanged(key)),
    onReset: () => followers.forEach(each => each.onReset())
  })
  /** Calls by name, and the names of methods that fail. */
  const state = { calls: {} as Record<string, number>, fails: new Set<string>() }
  const count = (name: string) => {
    state.calls[name] = (state.calls[name] ?? 0) + 1
    if (state.fails.has(name)) throw new Error('away')
  }
  const methods: Partial<SessionStore> = {
    follow: follower => void followers.push(follower),
    read: async key => {
      count('read')
      return await store.read(key)
    },
    touch: async (key, idleMs) => {
      count('touch')
      return await store.touch(key, idleMs)
    },
    replace: async (...args) => {
      count('replace')
      return await store.replace(...args)
    }
  }
  const replica = (more: Partial<Options> = {}) => sessionsOver(withMethods(store, methods), more)
  return { clock, store, state, replica }
}

/** Time-outs are long: a busy machine is no fault. */
export const redisConfig = (given: Partial<RedisConfig>): RedisConfig => ({
  url: '',
  sentinels: [],
  primary: 'mymaster',
  cluster: [],
  tls: false,
  prefix: 'test:',
  commandTimeout: 20_000,
  ...given
})

/** A store with a client of its own, as a process has it. */
export async function redisStore(cleanUp: CleanUp, url: string, prefix = '{test}:') {
  return await storeAt(cleanUp, { url }, prefix)
}

/** The same for a Cluster, Sentinels, or a server with more to say than its address. */
export async function storeAt(cleanUp: CleanUp, given: Partial<RedisConfig>, prefix = '{cg}:') {
  // In a Cluster, the slot of the keys says which primary announces their changes.
  const config = redisConfig({ ...given, prefix: prefix.replaceAll(/[{}]/g, '') })
  const dialler = createRedisDialler(config)
  const client = dialler.client()
  const refusals: Error[] = []
  const tracking = new Tracking({
    dial: () => dialler.trackingConnection(client),
    onRefused: error => void refusals.push(error)
  })
  const store = new RedisStore({ redis: client, prefix, tracking })
  dialler.onTopology(client, isOther => {
    store.replay(isOther)
    tracking.dial()
  })
  await until('Redis answers', () => client.status === 'ready')
  cleanUp(() => {
    tracking.close()
    client.disconnect()
    dialler.close()
  })
  return { client, store, refusals }
}

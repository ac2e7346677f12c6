/** Changes reach other replicas: the cache over a real Redis, with two clients. */
import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { keyOf } from '../../src/session/types.ts'
import { testRedis } from '../support/redis.ts'
import { redisStore, sessionsOver, signIn, withMethods, look } from '../support/sessions.ts'
import { until } from '../support/until.ts'

async function replica(t: Test, url: string) {
  const { client, store, refusals } = await redisStore(t.after, url)
  const reads = { count: 0 }
  const counted = withMethods(store, {
    read: async key => {
      reads.count++
      return await store.read(key)
    }
  })
  const sessions = sessionsOver(counted)
  return { client, store, refusals, reads, sessions }
}

async function setUp(t: Test) {
  const redis = await testRedis(t.after)
  const [here, there] = [await replica(t, redis.url), await replica(t, redis.url)]
  const areFollowed = () => [here, there].every(({ sessions }) => sessions.hasNews())
  await until('both follow', areFollowed)
  const admin = new Redis(redis.url)
  t.after(() => admin.disconnect())
  /** Cuts the connections that bring the news. */
  const cut = async () => {
    const list = String(await admin.client('LIST'))
    for (const line of list
      .split('\n')
      .filter(each => each.includes('name=console-gateway-news'))) {
      await admin.client('KILL', 'ID', /\bid=(\d+)/.exec(line)?.[1] ?? '').catch(() => {})
    }
  }
  return { redis, here, there, admin, cut, areFollowed }
}

/** The announcement of its opening may come during a read, or after it. */
async function keep(sessions: ReturnType<typeof sessionsOver>, secretId: string): Promise<void> {
  await until('it is kept', async () => {
    await look(sessions, secretId)
    await wait(10)
    return sessions.cached(keyOf(secretId)) !== undefined
  })
}

/** Milliseconds until the cache of `sessions` has dropped the key. */
async function dropped(sessions: ReturnType<typeof sessionsOver>, key: string): Promise<number> {
  const startedAt = performance.now()
  await until('the change has come', () => sessions.cached(key) === undefined)
  return performance.now() - startedAt
}

t.test('a repeated request asks Redis for nothing; a change is there within 100 ms', async t => {
  const { here, there } = await setUp(t)
  const times: number[] = []
  for (let n = 0; n < 20; n++) {
    const { secretId, live } = await signIn(here.sessions)
    await keep(there.sessions, secretId)
    const { count } = there.reads
    for (let request = 0; request < 5; request++) await look(there.sessions, secretId)
    t.equal(there.reads.count, count)
    await here.sessions.end(live, 'revoked')
    times.push(await dropped(there.sessions, live.key))
    t.same(await look(there.sessions, secretId), { ended: 'revoked' })
  }
  const median = times.toSorted((a, b) => a - b)[10] ?? Infinity
  t.ok(median < 100, `${median.toFixed(1)} ms`)
})

t.test('a connection that is cut: each request asks, then none again', async t => {
  const { here, there, cut, areFollowed } = await setUp(t)
  const { secretId, live } = await signIn(here.sessions)
  await keep(there.sessions, secretId)
  await cut()
  await until('nothing is kept', () => there.sessions.cached(live.key) === undefined)
  await here.sessions.end(live, 'revoked')
  t.same(await look(there.sessions, secretId), { ended: 'revoked' })
  await until('both follow again', areFollowed)
  const next = await signIn(here.sessions)
  await keep(there.sessions, next.secretId)
  await here.sessions.end(next.live, 'revoked')
  await dropped(there.sessions, next.live.key)
})

t.test('a Redis that hangs is not followed after two seconds, and is once it answers', async t => {
  const { redis, here, there, areFollowed } = await setUp(t)
  const { secretId, live } = await signIn(here.sessions)
  await keep(there.sessions, secretId)
  redis.signal('SIGSTOP')
  const startedAt = performance.now()
  await until('it does not count', () => there.sessions.cached(live.key) === undefined)
  t.ok(performance.now() - startedAt > 1000, 'a short fault goes unnoticed')
  redis.signal('SIGCONT')
  await until('both follow again', areFollowed)
  t.match(await look(there.sessions, secretId), { live: { key: live.key } })
})

t.test('a change that comes during a read: its result is not kept', async t => {
  const { url } = await testRedis(t.after)
  const { store } = await redisStore(t.after, url)
  const gate = Promise.withResolvers<void>()
  const gates = [gate.promise]
  const slow = withMethods(store, {
    read: async key => {
      const found = await store.read(key)
      await gates.shift()
      return found
    }
  })
  const sessions = sessionsOver(slow)
  await until('it is followed', () => sessions.hasNews())
  const { secretId, live } = await signIn(sessions)
  const overtaken = look(sessions, secretId)
  await until('it reads', () => gates.length === 0)
  await sessions.credentials.renew(live, { token: 'new' })
  const later = look(sessions, secretId)
  gate.resolve()
  const tokenOf = async (found: typeof later) =>
    ((await found) as { live: typeof live }).live.session.credential?.token
  t.same([await tokenOf(overtaken), await tokenOf(later)], [undefined, 'new'])
  t.equal(await tokenOf(look(sessions, secretId)), 'new')
})

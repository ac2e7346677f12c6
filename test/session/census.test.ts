import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type EndCause, type NewSession } from '../../src/session/session.ts'
import type { SessionStore } from '../../src/session/store.ts'
import { testRedis } from '../support/redis.ts'

const minute = 60_000
const openingOf = (id: string): NewSession => ({
  identity: { id, username: `user ${id}`, name: '', roles: [], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
})

function counted(store: SessionStore, now?: () => number) {
  const opened: string[] = []
  const ended: Array<readonly [EndCause, number]> = []
  const sessions = createSessions({
    store,
    seal: createSeal(['a secret of at least thirty-two characters']),
    lifeTimes: { idle: 10 * minute, absolute: 60 * minute, remembered: {} },
    perUser: { max: 2, over: 'evict-oldest' },
    maxStalenessMs: 2000,
    onOpened: source => opened.push(source),
    onEnded: (cause, count) => ended.push([cause, count]),
    ...(now && { now })
  })
  return { sessions, opened, ended }
}

/** Several at once, as many as a store takes. */
async function openFor(sessions: ReturnType<typeof createSessions>, ids: readonly string[]) {
  for (let index = 0; index < ids.length; index += 50) {
    const some = ids.slice(index, index + 50)
    await Promise.all(some.map(async id => await sessions.open(`of ${id}`, openingOf(id))))
  }
}

const stores: Readonly<Record<string, (t: Test) => Promise<SessionStore>>> = {
  memory: async t => {
    const store = createMemoryStore()
    t.after(() => store.close())
    return store
  },
  Redis: async t => {
    const { url } = await testRedis(t.after)
    const redis = new Redis(url)
    t.after(() => redis.disconnect())
    return createRedisStore({ redis, prefix: 'test:', follow: () => {} })
  }
}

for (const [name, open] of Object.entries(stores)) {
  t.test(`${name}: live sessions are counted exactly up to 500 users`, async t => {
    const { sessions } = counted(await open(t))
    t.same(await sessions.countAlive(), { sessions: 0, users: 0 })
    await openFor(
      sessions,
      Array.from({ length: 400 }, (_, index) => String(index))
    )
    await sessions.open('second of 7', openingOf('7'))
    await sessions.close('of 8', 'revoked')
    t.same(await sessions.countAlive(), { sessions: 400, users: 399 })
    await sessions.closeAll()
    t.same(await sessions.countAlive(), { sessions: 0, users: 0 }, 'everyone was signed out')
  })

  t.test(`${name}: beyond that they are estimated from as many users`, async t => {
    const store = await open(t)
    let looked = 0
    const { sessions } = counted({
      ...store,
      indexEntriesOf: async user => {
        looked++
        return await store.indexEntriesOf(user)
      }
    })
    const ids = Array.from({ length: 1500 }, (_, index) => String(index))
    await openFor(sessions, ids)
    await Promise.all(
      ids
        .filter((_, index) => index % 3 === 1)
        .map(async id => await sessions.close(`of ${id}`, 'revoked'))
    )
    const { sessions: alive, users } = await sessions.countAlive()
    // 1000 are: the standard deviation of a sample of 500 is 26.
    t.ok(Math.abs(alive - 1000) < 200, `${alive} sessions`)
    t.equal(users, alive)
    t.equal(looked, 500)
  })
}

t.test('openings are counted by source, ends by their cause, each once', async t => {
  const clock = { now: 1_700_000_000_000 }
  const store = createMemoryStore(() => clock.now)
  t.after(() => store.close())
  const { sessions, opened, ended } = counted(store, () => clock.now)
  for (const id of ['a', 'b', 'c']) await sessions.open(id, openingOf('1'))
  t.same(opened, ['users-file', 'users-file', 'users-file'])
  t.same(ended.splice(0), [['replaced', 1]], 'the oldest gave way to the third')
  await sessions.close('b', 'revoked', { cause: 'signed-out' })
  await sessions.close('b', 'revoked', { cause: 'signed-out' })
  t.same(ended.splice(0), [['signed-out', 1]])
  t.match(await sessions.get('c'), { live: {} })
  clock.now += 11 * minute
  for (let times = 0; times < 3; times++) t.match(await sessions.get('c'), { ended: 'idle' })
  t.same(ended, [['idle', 1]])
})

import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createSessions, type LifeTimes, type NewSession, type SessionStore, StoreUnavailable } from '../../src/session/session.ts'

const minute = 60_000
const opening: NewSession = { identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} }, source: 'users-file', remembered: false }

function setUp (lifeTimes: LifeTimes = { idle: 30 * minute, absolute: 480 * minute, remembered: {} }) {
  const clock = { now: 1_700_000_000_000 }
  const touches: number[] = []
  const inner = createMemoryStore(() => clock.now)
  const store: SessionStore = { ...inner, touch: async (key, ttlMs) => { touches.push(clock.now); await inner.touch(key, ttlMs) } }
  t.teardown(() => inner.close())
  return { clock, touches, store, sessions: createSessions({ store, lifeTimes, now: () => clock.now }) }
}

t.test('an opened session is resolved with all that was put in', async t => {
  const { sessions } = setUp()
  const session = await sessions.open('secret', { ...opening, credential: { token: 'T' } })
  t.same(await sessions.resolve('secret'), { live: session })
  t.match(session, { identity: opening.identity, credential: { token: 'T' } })
})

t.test('the store never sees the cookie’s value', async t => {
  const keys: string[] = []
  const { store } = setUp()
  const watched = createSessions({ store: { ...store, create: async (key, record, ttl) => { keys.push(key, record); await store.create(key, record, ttl) } }, lifeTimes: { idle: minute, absolute: minute, remembered: {} } })
  await watched.open('the-secret-id', opening)
  t.equal(keys.length, 2)
  t.notOk(keys.some(written => written.includes('the-secret-id')))
})

t.test('a session that is not used ends idle, and says so', async t => {
  const { clock, sessions } = setUp()
  await sessions.open('s', opening)
  clock.now += 30 * minute - 1
  t.ok('live' in await sessions.resolve('s', false), 'a millisecond before')
  clock.now += 1
  t.same(await sessions.resolve('s'), { ended: 'idle' })
})

t.test('use keeps it alive, at the cost of one write a minute at most', async t => {
  const { clock, touches, sessions } = setUp()
  await sessions.open('s', opening)
  for (let second = 0; second < 600; second++) {
    clock.now += 1000
    t.ok('live' in await sessions.resolve('s'))
  }
  t.ok(touches.length <= 10, `${touches.length} writes in ten minutes`)
  clock.now += 29 * minute
  t.ok('live' in await sessions.resolve('s'), 'half an hour after the last use')
})

t.test('a use that does not count leaves the idle clock alone', async t => {
  const { clock, touches, sessions } = setUp()
  await sessions.open('s', opening)
  for (let poll = 0; poll < 30; poll++) {
    clock.now += minute
    await sessions.resolve('s', false)
  }
  t.same(touches, [])
  t.same(await sessions.resolve('s', false), { ended: 'idle' })
})

t.test('a session in constant use ends at its absolute end', async t => {
  const { clock, sessions } = setUp({ idle: 30 * minute, absolute: 60 * minute, remembered: {} })
  await sessions.open('s', opening)
  for (let i = 0; i < 59; i++) {
    clock.now += minute
    t.ok('live' in await sessions.resolve('s'), `minute ${i + 1}`)
  }
  clock.now += minute
  t.same(await sessions.resolve('s'), { ended: 'absolute' })
})

t.test('a remembered session has life-times of its own', async t => {
  const { clock, sessions } = setUp({ idle: minute, absolute: 2 * minute, remembered: { idle: 100 * minute, absolute: 200 * minute } })
  const remembered = await sessions.open('s', { ...opening, remembered: true })
  t.equal(remembered.absoluteEnd - remembered.createdAt, 200 * minute)
  clock.now += 99 * minute
  t.ok('live' in await sessions.resolve('s'))
})

t.test('a closed session stays closed and tells its first reason', async t => {
  const { sessions } = setUp()
  await sessions.open('s', opening)
  t.equal(await sessions.close('s', 'revoked'), true)
  t.equal(await sessions.close('s', 'replaced'), false)
  t.same(await sessions.resolve('s'), { ended: 'revoked' })
})

t.test('a session is not revived by a touch that was under way when it was closed', async t => {
  const { clock, store } = setUp()
  let letGo = () => {}
  const held = new Promise<void>(resolve => { letGo = resolve })
  const touched: Array<Promise<void>> = []
  const slow = createSessions({ store: { ...store, touch: async (key, ttl) => { const late = held.then(() => store.touch(key, ttl)); touched.push(late); await late } }, lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} }, now: () => clock.now })
  await slow.open('s', opening)
  clock.now += 5 * minute
  t.ok('live' in await slow.resolve('s'), 'the request that touches')
  await slow.close('s', 'revoked')
  letGo()
  await Promise.all(touched)
  t.equal(touched.length, 1)
  t.same(await slow.resolve('s'), { ended: 'revoked' })
})

t.test('an id that nobody was given is unknown', async t => {
  t.same(await setUp().sessions.resolve('guess'), { ended: 'unknown' })
})

t.test('damaged and hostile records are no session', async t => {
  const { store, sessions } = setUp()
  const records = ['', 'garbage', '{}', 'null', '[]', '{"__proto__":{"identity":{}}}', '{"id":1}', '{"id":"x","identity":{"id":"1","username":"a","name":"b","roles":"admin"},"createdAt":1,"absoluteEnd":9e99,"idleMs":1}']
  for (const record of records) {
    let key = ''
    const spied = createSessions({ store: { ...store, create: async given => { key = given } }, lifeTimes: { idle: minute, absolute: minute, remembered: {} } })
    await spied.open(`id-${record}`, opening)
    await store.create(key, record, minute * 60)
    t.same(await sessions.resolve(`id-${record}`), { ended: 'unknown' }, record)
  }
})

t.test('a store that cannot answer is told as such, never as "no session"', async t => {
  const { store } = setUp()
  const broken = createSessions({ store: { ...store, read: async () => { throw new StoreUnavailable(new Error('gone')) } }, lifeTimes: { idle: minute, absolute: minute, remembered: {} } })
  await t.rejects(broken.resolve('s'), { code: 'session.unavailable', status: 503 })
})

t.test('a touch that fails does not fail the request', async t => {
  const { clock, store } = setUp()
  const failures: unknown[] = []
  const sessions = createSessions({ store: { ...store, touch: async () => { throw new StoreUnavailable('gone') } }, lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} }, now: () => clock.now, onTouchFailed: error => failures.push(error) })
  await sessions.open('s', opening)
  clock.now += 5 * minute
  t.ok('live' in await sessions.resolve('s'))
  await Promise.resolve()
  t.equal(failures.length, 1)
})

/** What the class of sessions adds to its store: their clocks, the cache, credentials of back-ends. */
import { mock } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { liveIn } from '../../src/session/store.ts'
import { endByProvider, providerName } from '../../src/session/provider-sessions.ts'
import type { Sessions } from '../../src/session/sessions.ts'
import { keyOf } from '../../src/session/types.ts'
import { testRedis } from '../support/redis.ts'
import {
  minute,
  newSession,
  redisStore,
  sessionsOver,
  sharedMemory,
  signIn,
  look,
  withMethods
} from '../support/sessions.ts'
import { until } from '../support/until.ts'

t.test('use is written once a minute', async t => {
  const { replica, clock, state } = sharedMemory()
  const sessions = replica()
  const { secretId } = await signIn(sessions)
  for (let second = 0; second < 29 * 60; second++) {
    sessions.use(liveIn(await look(sessions, secretId)))
    clock.now += 1000
  }
  t.equal(state.calls['touch'], 28)
})

t.test('a use that cannot be written is tried again a second later', async t => {
  const { replica, clock, state } = sharedMemory()
  const sessions = replica()
  const { secretId } = await signIn(sessions)
  await look(sessions, secretId)
  state.fails.add('touch')
  clock.now += minute
  for (let n = 0; n < 10; n++) sessions.use(liveIn(await look(sessions, secretId)))
  await until('it failed', () => state.calls['touch'] === 1)
  for (let n = 0; n < 10; n++) sessions.use(liveIn(await look(sessions, secretId)))
  t.equal(state.calls['touch'], 1)
  state.fails.clear()
  clock.now += 1000
  sessions.use(liveIn(await look(sessions, secretId)))
  t.equal(state.calls['touch'], 2)
  clock.now += 29 * minute
  t.match(await look(replica(), secretId), { live: {} })
})

t.test('a provider’s logout ends a sign-in that is under way, at whatever moment', async t => {
  const { store } = await redisStore(t.after, (await testRedis(t.after)).url)
  const [here, there] = [sessionsOver(store), sessionsOver(store)]
  const name = providerName('s', 'sub', 'u')
  const { open } = store
  store.open = async given => {
    await endByProvider(there, name, 5, {})
    return await open.call(store, given)
  }
  const opening = (issuedAt: number) => newSession('u', { provider: { names: [name], issuedAt } })
  const { secretId } = await signIn(here, opening(4))
  t.same(await look(here, secretId), { ended: 'upstream' })
  store.open = open
  for (const before of [4, 5]) {
    await t.rejects(signIn(here, opening(before)), { code: 'session.upstream' }, `${before}`)
  }
  const later = await signIn(here, opening(6))
  t.match(await look(here, later.secretId), { live: {} }, 'none after it')
})

t.test('a repeated request asks Redis for nothing; a change is there within 100 ms', async t => {
  const { url } = await testRedis(t.after)
  const [here, { store }] = [await redisStore(t.after, url), await redisStore(t.after, url)]
  let reads = 0
  const read: typeof store.read = async key => {
    reads++
    return await store.read(key)
  }
  const [a, b] = [sessionsOver(here.store), sessionsOver(withMethods(store, { read }))]
  await until('both follow', () => a.store.isFollowed() && b.store.isFollowed())
  const times: number[] = []
  for (let n = 0; n < 20; n++) {
    const { secretId, live } = await signIn(a)
    // The announcement of its opening may come during a read, or after it.
    await until('it is kept', async () => {
      await look(b, secretId)
      await wait(10)
      return b.cached(keyOf(secretId)) !== undefined
    })
    const before = reads
    for (let request = 0; request < 5; request++) await look(b, secretId)
    t.equal(reads, before)
    await a.end(live, 'revoked')
    const startedAt = performance.now()
    await until('the change has come', () => b.cached(live.key) === undefined)
    times.push(performance.now() - startedAt)
    t.same(await look(b, secretId), { ended: 'revoked' })
  }
  const median = times.toSorted((one, other) => one - other)[10] ?? Infinity
  t.ok(median < 100, `${median.toFixed(1)} ms`)
})

t.test('a change that comes during a read: its result is not kept', async t => {
  const { store, replica } = sharedMemory()
  const gate = Promise.withResolvers<void>()
  const gates = [gate.promise]
  const { read } = store
  store.read = async key => {
    const found = await read.call(store, key)
    await gates.shift()
    return found
  }
  const sessions = replica()
  const { secretId, live } = await signIn(sessions)
  const overtaken = look(sessions, secretId)
  await until('it reads', () => gates.length === 0)
  await sessions.credentials.renew(live, { credential: { token: 'new' } })
  const later = look(sessions, secretId)
  gate.resolve()
  const tokenOf = async (found: typeof later) => liveIn(await found).session.credential?.token
  t.same([await tokenOf(overtaken), await tokenOf(later)], [undefined, 'new'])
  t.equal(await tokenOf(look(sessions, secretId)), 'new')
})

/** A session with credentials of a back-end, at two replicas. */
async function withCredential(t: Test) {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const memory = sharedMemory()
  const [a, b] = [memory.replica(), memory.replica()]
  const opening = newSession('u', { credential: { token: 'old', cookies: 'a=1' } })
  const { live } = await signIn(a, opening)
  const at = async (sessions: Sessions) => {
    const found = liveIn(await sessions.read(live.key))
    return sessions.credentials.withHeld(found).session.credential
  }
  const isWritten = async (cookies: string) =>
    await until('it is written', async () => (await at(b))?.cookies === cookies)
  /** Gets new ones from a response while they cannot be written. */
  const takeWhileAway = async (credential: object) => {
    memory.state.fails.add('replace')
    a.credentials.take(live, credential)
    await until('it was tried', () => memory.state.calls['replace'] === 1)
    memory.state.fails.clear()
  }
  return { ...memory, a, b, live, at, isWritten, takeWhileAway }
}

t.test('case 7: what a response changed is used here at once, and written once in 5 s', async t => {
  const { a, b, live, state, at, isWritten } = await withCredential(t)
  a.credentials.take(live, { cookies: 'a=2' })
  t.equal((await at(a))?.cookies, 'a=2')
  await isWritten('a=2')
  const written = state.calls['replace'] ?? 0
  for (const cookies of ['a=3', 'a=4', 'a=5']) a.credentials.take(live, { cookies })
  t.match([await at(a), await at(b)], [{ cookies: 'a=5' }, { cookies: 'a=2' }])
  mock.timers.tick(5000)
  await isWritten('a=5')
  t.equal(state.calls['replace'], written + 1, 'once')
})

for (const [title, taken, exchanged] of [
  ['it goes over what another process wrote meanwhile, and leaves the rest', {}, {}],
  ['a token that was exchanged meanwhile stays', { token: 'of a response' }, { expiresAt: 1 }]
] as const) {
  t.test(title, async t => {
    const { a, b, live, at, isWritten, takeWhileAway } = await withCredential(t)
    await takeWhileAway({ ...taken, cookies: 'a=2' })
    const other = { token: 'exchanged', cookies: 'a=1', ...exchanged }
    await b.credentials.renew(live, { credential: other })
    t.same(await at(a), { ...other, cookies: 'a=2' })
    mock.timers.tick(5000)
    await isWritten('a=2')
    t.same(await at(b), { ...other, cookies: 'a=2' })
  })
}

t.test('while the store is away it is held here, and written once it is back', async t => {
  const { a, live, state, isWritten } = await withCredential(t)
  for (const name of ['replace', 'read']) state.fails.add(name)
  a.credentials.take(live, { cookies: 'a=2' })
  for (let turn = 0; turn < 5; turn++) mock.timers.tick(5000)
  t.equal(a.credentials.withHeld(live).session.credential?.cookies, 'a=2')
  state.fails.clear()
  mock.timers.tick(5000)
  await isWritten('a=2')
  t.equal(a.credentials.withHeld(live), live, 'and held no more')
})

t.test('of a session that has ended nothing is held, or asked for again', async t => {
  const { a, b, live, state } = await withCredential(t)
  await b.end(live, 'revoked')
  a.credentials.take(live, { cookies: 'a=2' })
  await until('it is given up', () => a.credentials.withHeld(live) === live)
  const reads = state.calls['read']
  for (let turn = 0; turn < 3; turn++) mock.timers.tick(5000)
  t.same([state.calls['read'], state.calls['replace']], [reads, undefined])
})

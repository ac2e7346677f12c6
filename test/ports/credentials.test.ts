/** Credentials of back-ends in sessions, exchanged or changed at two replicas. */
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import type { Credential, Live } from '../../src/session/types.ts'
import type { Sessions } from '../../src/session/sessions.ts'
import { newSession, sharedMemory, signIn } from '../support/sessions.ts'
import { until } from '../support/until.ts'

async function setUp(t: Test) {
  mock.timers.enable({ apis: ['setInterval'] })
  t.after(() => mock.timers.reset())
  const memory = sharedMemory()
  const [a, b] = [memory.replica(), memory.replica()]
  const opening = newSession('u', { credential: { token: 'old', cookies: 'a=1' } })
  return { ...memory, a, b, ...(await signIn(a, opening)) }
}

async function credentialAt(sessions: Sessions, { key }: Live): Promise<Credential | undefined> {
  const found = await sessions.read(key)
  return 'live' in found ? sessions.credentials.withHeld(found.live).session.credential : undefined
}

t.test('of two exchanges at once one counts, and both get it', async t => {
  const { a, b, live } = await setUp(t)
  const renewed = await Promise.all([
    a.credentials.renew(live, { token: 'by a' }),
    b.credentials.renew(live, { token: 'by b' })
  ])
  const tokens = renewed.map(each => ('live' in each ? each.live.session.credential?.token : each))
  t.equal(tokens[0], tokens[1])
  t.match(tokens[0], /^by [ab]$/)
  for (const sessions of [a, b]) t.same(await credentialAt(sessions, live), { token: tokens[0] })
})

t.test('case 7: what a response changed is used here at once, and written once in 5 s', async t => {
  const { a, b, live, state } = await setUp(t)
  a.credentials.take(live, { cookies: 'a=2' })
  t.equal((await credentialAt(a, live))?.cookies, 'a=2')
  await until('the first is written', async () => (await credentialAt(b, live))?.cookies === 'a=2')
  const written = state.calls['replace']
  for (const cookies of ['a=3', 'a=4', 'a=5']) a.credentials.take(live, { cookies })
  t.equal((await credentialAt(a, live))?.cookies, 'a=5')
  t.equal((await credentialAt(b, live))?.cookies, 'a=2')
  mock.timers.tick(5000)
  await until('the last is written', async () => (await credentialAt(b, live))?.cookies === 'a=5')
  t.equal(state.calls['replace'], (written ?? 0) + 1, 'once')
})

t.test('it goes over what another process wrote meanwhile, and leaves the rest', async t => {
  const { a, b, live, state } = await setUp(t)
  state.fails.add('replace')
  a.credentials.take(live, { cookies: 'a=2' })
  await until('it was tried', () => state.calls['replace'] === 1)
  state.fails.clear()
  await b.credentials.renew(live, { token: 'new', cookies: 'a=1' })
  t.same(await credentialAt(a, live), { token: 'new', cookies: 'a=2' })
  mock.timers.tick(5000)
  await until('it is written', async () => (await credentialAt(b, live))?.cookies === 'a=2')
  t.same(await credentialAt(b, live), { token: 'new', cookies: 'a=2' })
})

t.test('a token that was exchanged meanwhile stays, whatever a response gave before', async t => {
  const { a, b, live, state } = await setUp(t)
  state.fails.add('replace')
  a.credentials.take(live, { token: 'of a response', cookies: 'a=2' })
  await until('it was tried', () => state.calls['replace'] === 1)
  state.fails.clear()
  const exchanged = { token: 'exchanged', cookies: 'a=1', expiresAt: 1 }
  await b.credentials.renew(live, exchanged)
  t.same(await credentialAt(a, live), { ...exchanged, cookies: 'a=2' })
  mock.timers.tick(5000)
  await until('it is written', async () => (await credentialAt(b, live))?.cookies === 'a=2')
  t.same(await credentialAt(b, live), { ...exchanged, cookies: 'a=2' })
})

t.test('while the store is away it is held here, and written once it is back', async t => {
  const { a, b, live, state } = await setUp(t)
  for (const name of ['replace', 'read']) state.fails.add(name)
  a.credentials.take(live, { cookies: 'a=2' })
  for (let turn = 0; turn < 5; turn++) mock.timers.tick(5000)
  t.equal(a.credentials.withHeld(live).session.credential?.cookies, 'a=2')
  state.fails.clear()
  mock.timers.tick(5000)
  await until('it is written', async () => (await credentialAt(b, live))?.cookies === 'a=2')
  t.equal(a.credentials.withHeld(live), live, 'and held no more')
})

t.test('a session that has ended is not asked for again', async t => {
  const { a, b, live, state } = await setUp(t)
  await b.end(live, 'revoked')
  a.credentials.take(live, { cookies: 'a=2' })
  await until('it is given up', () => a.credentials.withHeld(live) === live)
  const reads = state.calls['read']
  for (let turn = 0; turn < 3; turn++) mock.timers.tick(5000)
  t.same([state.calls['read'], state.calls['replace']], [reads, undefined])
})

t.test('a session that changes whenever it is written is unavailable, not lost', async t => {
  const { store, a, live } = await setUp(t)
  store.replace = async () => false
  await t.rejects(a.credentials.renew(live, { token: 'new' }), { code: 'session.unavailable' })
  t.equal((await credentialAt(a, live))?.token, 'old')
})

import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import type { RefreshPolicy } from '../../src/session/refresh.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'
import { type SessionStore, StoreUnavailable } from '../../src/session/store.ts'

const minute = 60_000
const second = 1000
const idle = 30 * minute
const opening: NewSession = {
  identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}

async function setUp(over: (store: SessionStore) => Partial<SessionStore> = () => ({})) {
  const clock = { now: 1_700_000_000_000 }
  const inner = createMemoryStore(() => clock.now)
  t.teardown(() => inner.close())
  const sessions = createSessions({
    seal: createSeal(['a secret of at least thirty-two characters']),
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 2000,
    store: { ...inner, ...over(inner) },
    lifeTimes: { idle, absolute: 480 * minute, remembered: {} },
    now: () => clock.now
  })
  await sessions.open('secret', opening)
  const live = async () => {
    const found = await sessions.get('secret')
    if (!('live' in found)) throw new Error(`the session is over: ${JSON.stringify(found)}`)
    return found.live
  }
  const left = (idleEnd: number) => Math.round((idleEnd - clock.now) / minute)
  return {
    sessions,
    pass: (ms: number) => {
      clock.now += ms
    },
    /** The minutes that the session then has left. */
    refresh: async (policy: RefreshPolicy = 'after-use') => {
      const refreshed = await sessions.refresh(await live(), policy)
      if (!('live' in refreshed)) return refreshed
      t.ok(Math.abs(refreshed.live.idleEnd - (await live()).idleEnd) <= 1, 'as the store has it')
      return left(refreshed.live.idleEnd)
    },
    use: async () => void sessions.use(await live()),
    live
  }
}

t.test('the first refresh extends the session, as its sign-in was use', async t => {
  const { pass, refresh } = await setUp()
  pass(20 * minute)
  t.equal(await refresh(), 29)
})

t.test('a timer that refreshes alone does not keep a session alive', async t => {
  const { sessions, pass, refresh } = await setUp()
  const lefts: unknown[] = []
  for (let times = 0; times < 5; times++) {
    pass(7 * minute)
    lefts.push(await refresh())
  }
  t.same(lefts, [29, 22, 15, 8, 1])
  pass(minute)
  t.same(await sessions.get('secret'), { ended: 'idle' })
})

t.test('a request since the last refresh lets the next one extend again, once', async t => {
  for (const after of [10, second, 59 * second, 5 * minute]) {
    const { pass, refresh, use } = await setUp()
    pass(10 * minute)
    t.equal(await refresh(), 29)
    pass(after)
    await use()
    pass(10 * minute)
    t.equal(await refresh(), 29, `${after} ms after the refresh`)
    pass(10 * minute)
    t.equal(await refresh(), 19)
  }
})

t.test('a request just before a refresh counts once, and the next counts again', async t => {
  const { pass, refresh, use } = await setUp()
  t.equal(await refresh(), 29, 'right after sign-in')
  pass(10)
  await use()
  pass(12 * minute)
  t.equal(await refresh(), 29)
  pass(12 * minute)
  t.equal(await refresh(), 17)
})

t.test('a refresh long after the last one extends only a session that was used', async t => {
  const { pass, refresh, use } = await setUp()
  await refresh()
  for (let times = 0; times < 4; times++) {
    pass(20 * minute)
    await use()
  }
  t.equal(await refresh(), 29, 'the last refresh is long forgotten')
  pass(5 * minute)
  t.equal(await refresh(), 24)
})

t.test('the other policies extend always, and never', async t => {
  const { pass, refresh } = await setUp()
  pass(10 * minute)
  t.equal(await refresh('never'), 20)
  t.equal(await refresh('always'), 30)
  pass(10 * minute)
  t.equal(await refresh('always'), 30)
})

t.test('a session that ended meanwhile stays ended', async t => {
  for (const policy of ['after-use', 'always'] as const) {
    for (const end of ['of the session', 'of everyone'] as const) {
      const { sessions, live, pass } = await setUp()
      const before = await live()
      pass(minute)
      if (end === 'of everyone') await sessions.closeAll()
      else await sessions.close('secret', 'revoked')
      t.same(await sessions.refresh(before, policy), { ended: 'revoked' }, `${policy}, ${end}`)
      t.same(await sessions.get('secret'), { ended: 'revoked' })
    }
  }
})

t.test('a refresh that the store did not take has not happened', async t => {
  let isAway = false
  const { pass, refresh } = await setUp(store => ({
    touchAfterUse: async (...given) => {
      if (isAway) throw new StoreUnavailable(new Error('away'))
      return await store.touchAfterUse(...given)
    }
  }))
  pass(10 * minute)
  isAway = true
  await t.rejects(refresh(), { code: 'session.unavailable' })
  isAway = false
  t.equal(await refresh(), 29, 'the sign-in still counts as use')
  pass(10 * minute)
  t.equal(await refresh(), 19)
})

t.test('two tabs that refresh at once count as one', async t => {
  const { sessions, live, pass, refresh } = await setUp()
  pass(10 * minute)
  const both = await live()
  await Promise.all([sessions.refresh(both, 'after-use'), sessions.refresh(both, 'after-use')])
  pass(10 * minute)
  t.equal(await refresh(), 19)
})

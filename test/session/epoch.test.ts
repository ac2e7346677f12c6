import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions } from '../../src/session/session.ts'
import { type SessionStore, StoreUnavailable } from '../../src/session/store.ts'
import { opening } from '../support/session-steps.ts'

const hour = 3_600_000
const seal = createSeal(['a secret of at least thirty-two characters'])

/** A process over a store that others use too. */
function processOver(store: SessionStore) {
  const forgotten: object[] = []
  const sessions = createSessions({
    store,
    seal,
    lifeTimes: { idle: hour, absolute: hour, remembered: {} },
    perUser: { max: 9, over: 'refuse' },
    maxStalenessMs: hour,
    onEpochForgotten: each => {
      forgotten.push(each)
    }
  })
  return { sessions, forgotten }
}

/** A store that can forget how often everyone was signed out, and be unable to take it again. */
function forgetfulStore() {
  const inner = createMemoryStore()
  t.teardown(async () => await inner.close())
  const state = { forgets: false, refuses: false }
  const store: SessionStore = {
    ...inner,
    epoch: async () => (state.forgets ? 0 : await inner.epoch()),
    restoreEpoch: async epoch => {
      if (state.refuses) throw new StoreUnavailable(new Error('away'))
      await inner.restoreEpoch(epoch)
      state.forgets = false
    }
  }
  return { state, store }
}

t.test('a process that has not heard of close-everyone opens sessions that live', async t => {
  const inner = createMemoryStore()
  t.teardown(async () => await inner.close())
  const here = processOver({ ...inner, follow: () => {} })
  // Up, and never told of anything.
  const there = processOver({ ...inner, follow: follower => follower.onUp() })
  await there.sessions.open('before', opening('u'))
  await here.sessions.closeAll()
  await there.sessions.open('after', opening('u'))
  for (const { sessions } of [here, there]) {
    t.match(await sessions.get('after'), { live: {} })
  }
  t.match(await here.sessions.get('before'), { ended: 'revoked' })
  t.same([here.forgotten, there.forgotten], [[], []])
})

t.test(
  'a store that forgot close-everyone is told again, and nobody who was signed out is back',
  async t => {
    const { state, store } = forgetfulStore()
    const before = processOver(store)
    await before.sessions.open('old', opening('u'))
    await before.sessions.closeAll()
    await before.sessions.open('new', opening('u'))
    state.forgets = true
    // It knows only what the session carries.
    const fresh = processOver(store)
    t.match(await fresh.sessions.get('new'), { live: {} })
    t.match(await fresh.sessions.get('old'), { ended: 'revoked' })
    t.same(fresh.forgotten, [{ found: 0, greatest: 1 }])
    t.equal(await store.epoch(), 1)
  }
)

t.test(
  'a process that knows the count itself needs no session to see that the store forgot it',
  async t => {
    const { state, store } = forgetfulStore()
    const { sessions, forgotten } = processOver(store)
    await sessions.open('old', opening('u'))
    await sessions.closeAll()
    t.match(await sessions.get('old'), { ended: 'revoked' })
    state.forgets = true
    t.match(await sessions.get('old'), { ended: 'revoked' })
    t.match(forgotten, [{ found: 0, greatest: 1 }])
  }
)

t.test('until the store takes the count again a session is 503, and never 401', async t => {
  const { state, store } = forgetfulStore()
  const before = processOver(store)
  await before.sessions.closeAll()
  await before.sessions.open('new', opening('u'))
  state.forgets = true
  state.refuses = true
  const { sessions, forgotten } = processOver(store)
  for (let n = 0; n < 2; n++) await t.rejects(sessions.get('new'), { code: 'session.unavailable' })
  t.equal(forgotten.length, 2, 'told each time')
  state.refuses = false
  t.match(await sessions.get('new'), { live: {} })
})

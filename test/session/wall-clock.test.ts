/** Sessions in memory while the wall clock is set. */
import t, { type Test } from 'tap'
import { describeSession } from '../../src/session/describe.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions } from '../../src/session/session.ts'
import { wallClock } from '../support/clock.ts'

const minute = 60_000
const hour = 60 * minute
const opening = {
  identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}
const alice = identityKey({ source: 'users-file', identity: { id: '1' } })

function setUp(t: Test) {
  const setClock = wallClock(t.after)
  const store = createMemoryStore()
  t.after(() => store.close())
  const sessions = createSessions({
    store,
    seal: createSeal(['a secret of at least thirty-two characters']),
    lifeTimes: { idle: 10 * minute, absolute: 30 * minute, remembered: {} },
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 2000
  })
  return { setClock, store, sessions }
}

for (const [name, step] of [
  ['an hour ahead', hour],
  ['an hour back', -hour]
] as const) {
  t.test(`set ${name}, the clock neither ends nor prolongs a session`, async t => {
    const { setClock, sessions } = setUp(t)
    await sessions.open('secret', opening)
    setClock(step)
    for (const lookup of [await sessions.get('secret'), await sessions.get('secret')]) {
      if (!('live' in lookup)) return t.fail(JSON.stringify(lookup))
      const idleIn = lookup.live.idleEnd - sessions.now()
      t.ok(idleIn > 9 * minute && idleIn <= 10 * minute, `idle in ${idleIn} ms`)
      const absoluteIn = lookup.live.session.absoluteEnd - sessions.now()
      t.ok(absoluteIn > 29 * minute && absoluteIn <= 30 * minute, `ends in ${absoluteIn} ms`)
    }
    t.same(await sessions.countAlive(), { sessions: 1, users: 1 })
    t.equal((await sessions.signedIn(10)).length, 1)
  })

  t.test(`set ${name}, the clock is that of the times that are shown`, async t => {
    const { setClock, sessions } = setUp(t)
    await sessions.open('secret', opening)
    setClock(step)
    const [listed] = await sessions.list(alice)
    if (listed === undefined) return t.fail('no session')
    const shown = describeSession(listed, sessions.times())
    for (const time of [shown.startedAt, shown.lastUsedAt]) {
      const ago = Date.now() - Date.parse(time)
      t.ok(Math.abs(ago) < minute, `${time}: ${ago} ms ago`)
    }
    t.ok(shown.idleIn > 9 * 60 && shown.idleIn <= 10 * 60, `idle in ${shown.idleIn} s`)
  })

  t.test(`set ${name}, the clock changes neither records nor locks`, async t => {
    const { setClock, store } = setUp(t)
    await store.create('key', 'record', 10 * minute)
    await store.lock('name', 'owner', 10 * minute)
    setClock(step)
    const { ttlMs = 0 } = (await store.read('key')) ?? {}
    t.ok(ttlMs > 9 * minute && ttlMs <= 10 * minute, `${ttlMs}`)
    t.equal(await store.lock('name', 'other', minute), false)
    t.match(await store.fence('name', 'owner', minute), { isContested: false })
  })
}

t.test('set back, the clock lets use set the idle clock', async t => {
  const { setClock, store, sessions } = setUp(t)
  const live = await sessions.open('secret', opening)
  const half = { ...live, idleEnd: live.idleEnd - 5 * minute }
  await store.touch(live.key, 15 * minute, 0)
  setClock(-hour)
  t.ok(sessions.use(half) > half.idleEnd)
})

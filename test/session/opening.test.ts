/** Sign-ins: how long a session lives, and which sessions count against the maximum of a user. */
import t from 'tap'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { keyOf } from '../../src/session/record.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'
import { type SessionStore, StoreUnavailable } from '../../src/session/store.ts'

type Options = Parameters<typeof createSessions>[0]

const minute = 60_000
const opening: NewSession = {
  identity: { id: '1', username: 'mia', name: 'Mia', roles: [], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}
const user = identityKey(opening)
const lifeTimes = { idle: 30 * minute, absolute: 480 * minute, remembered: {} }

function setUp(
  options: Partial<Options> = {},
  change: (store: SessionStore) => object = () => ({})
) {
  const clock = { now: 1_700_000_000_000 }
  const inner = createMemoryStore(() => clock.now)
  t.teardown(() => inner.close())
  const store = { ...inner, ...change(inner) }
  const opened: string[] = []
  const sessions = createSessions({
    store,
    seal: createSeal(['a secret of at least thirty-two characters']),
    lifeTimes,
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 2000,
    now: () => clock.now,
    onOpened: source => void opened.push(source),
    ...options
  })
  const areAlive = (...ids: string[]) =>
    Promise.all(ids.map(async id => 'live' in (await sessions.get(id))))
  return { clock, store, sessions, opened, areAlive }
}

t.test('only a session that is to be remembered has the life-times of those', async t => {
  const remembered = { idle: 100 * minute, absolute: 200 * minute }
  const { sessions } = setUp({ lifeTimes: { idle: 3 * minute, absolute: 4 * minute, remembered } })
  const lives = async (isRemembered: boolean) => {
    const { session, idleEnd } = await sessions.open(String(isRemembered), {
      ...opening,
      remembered: isRemembered
    })
    const { createdAt, idleMs, absoluteEnd } = session
    return [idleMs / minute, (idleEnd - createdAt) / minute, (absoluteEnd - createdAt) / minute]
  }
  t.same(await lives(true), [100, 100, 200])
  t.same(await lives(false), [3, 3, 4])
})

t.test('what config leaves out for remembered sessions is as for others', async t => {
  const { sessions } = setUp({ lifeTimes: { ...lifeTimes, remembered: { absolute: 9 * minute } } })
  const { session } = await sessions.open('s', { ...opening, remembered: true })
  t.equal(session.absoluteEnd - session.createdAt, 9 * minute)
  t.equal(session.idleMs, 9 * minute, 'no session goes idle after its absolute end')
})

t.test('sessions that are over, but still in the index, take nobody’s place', async t => {
  const gone = ['g1', 'g2', 'g3', 'g4', 'g5'].map(id => ({ key: keyOf(id), at: 1 }))
  for (const over of ['evict-oldest', 'refuse'] as const) {
    const { sessions, clock, areAlive } = setUp({ perUser: { max: 5, over } }, store => ({
      indexSession: async (...entry: Parameters<SessionStore['indexSession']>) => [
        ...gone,
        ...(await store.indexSession(...entry))
      ]
    }))
    const ids = ['a', 'b', 'c', 'd', 'e']
    for (const id of ids) {
      await sessions.open(id, opening)
      clock.now++
    }
    t.same(await areAlive(...ids), [true, true, true, true, true], over)
    const sixth = sessions.open('f', opening)
    if (over === 'refuse') await t.rejects(sixth, { code: 'login.too-many' })
    else await sixth
    t.same(
      await areAlive('a', 'b', 'f'),
      over === 'refuse' ? [true, true, false] : [false, true, true]
    )
  }
})

t.test('a sign-in that fails at the maximum leaves no session that nobody holds', async t => {
  let isAway = false
  const { sessions, areAlive } = setUp({}, store => ({
    end: async (...given: Parameters<SessionStore['end']>) => {
      const wasAlive = await store.end(...given)
      if (isAway) throw new StoreUnavailable('a replica does not confirm')
      return wasAlive
    }
  }))
  const devices = ['d1', 'd2', 'd3', 'd4', 'd5']
  for (const id of devices) await sessions.open(id, opening)
  isAway = true
  await t.rejects(sessions.open('failed', opening), { code: 'session.unavailable' })
  t.same(await areAlive('failed', ...devices), [false, false, true, true, true, true])
  await sessions.open('again', opening)
  t.same(await areAlive('again', ...devices), [true, false, true, true, true, true])
})

t.test('up to the maximum no session is looked at', async t => {
  let reads = 0
  const { sessions } = setUp({ perUser: { max: 2, over: 'refuse' } }, store => ({
    read: async (key: string) => {
      reads++
      return await store.read(key)
    }
  }))
  await sessions.open('a', opening)
  await sessions.open('b', opening)
  t.equal(reads, 0)
  await t.rejects(sessions.open('c', opening), { code: 'login.too-many' })
  t.ok(reads >= 3)
})

t.test(
  'sessions that a replaced secret sealed take no place of a maximum that refuses',
  async t => {
    const perUser = { max: 1, over: 'refuse' } as const
    const { sessions, store } = setUp({ perUser })
    await sessions.open('old', opening)
    const other = createSeal(['another secret of thirty-two characters'])
    const { sessions: after } = setUp({
      store: { ...store, follow: () => {} },
      seal: other,
      perUser
    })
    await after.open('new', opening)
    t.match(await after.get('new'), { live: {} })
    await t.rejects(after.open('further', opening), { code: 'login.too-many' })
  }
)

t.test('a lower maximum ends as many as are too many, the oldest first', async t => {
  const { sessions, store, clock, areAlive } = setUp()
  for (const id of ['a', 'b', 'c', 'd']) {
    await sessions.open(id, opening)
    clock.now++
  }
  const lower = setUp({
    store: { ...store, follow: () => {} },
    perUser: { max: 2, over: 'evict-oldest' }
  })
  lower.clock.now = clock.now
  await lower.sessions.open('e', opening)
  t.same(await areAlive('a', 'b', 'c', 'd', 'e'), [false, false, false, true, true])
})

t.test('a sign-in is counted by its source, and its user is found by name', async t => {
  const { sessions, store, opened } = setUp()
  await sessions.open('a', { ...opening, source: 'upstream-login:b' })
  t.same(opened, ['upstream-login:b'])
  t.match(await store.signedIn(10), [{ source: 'upstream-login:b', id: '1', username: 'mia' }])
  t.same(await store.sessionKeysOf(user), [])
})

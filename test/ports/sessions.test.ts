/** Sessions through their class, at one replica or two over one store. */
import t from 'tap'
import { describeSession, timeLeft } from '../../src/session/describe.ts'
import { liveIn } from '../../src/session/store.ts'
import type { Revoked, Session } from '../../src/session/types.ts'
import { steadyClock } from '../../src/steady-clock.ts'
import {
  hour,
  minute,
  newSession,
  sessionsOver,
  sharedMemory,
  signIn,
  look
} from '../support/sessions.ts'
import { until } from '../support/until.ts'

const u = { source: 's', id: 'u', username: 'u' }

/** The ends that were counted and recorded. */
function recorder() {
  const ended: Array<[string, number]> = []
  const revoked: Revoked[] = []
  return {
    ended,
    revoked,
    onEnded: (cause: string, count: number) => void ended.push([cause, count]),
    onRevoked: (each: Revoked) => void revoked.push(each)
  }
}

t.test('a session is its sign-in’s, by the cookie’s value alone', async t => {
  const { replica, store } = sharedMemory()
  const [a, b] = [replica(), replica()]
  const opening = newSession('u', {
    address: '192.0.2.1',
    agent: 'browser',
    credential: { token: 'secret token' }
  })
  const { secretId, live } = await signIn(a, opening)
  t.match(live.session, opening)
  t.match(live.session.id, /^[0-9a-f]{12}$/)
  t.same(liveIn(await look(b, secretId)).session, live.session)
  for (const wrong of ['', 'x', secretId.slice(0, -1), live.key, live.session.id]) {
    t.same(await look(b, wrong), { ended: 'unknown' }, wrong)
  }
  const stored = JSON.stringify(await store.read(live.key))
  t.notMatch(live.key + stored, new RegExp(`${secretId.slice(16)}|secret token|192`))
})

t.test('idle and absolute ends, also of a remembered sign-in', async t => {
  const { replica, clock, state } = sharedMemory()
  const { onEnded, ended } = recorder()
  const remembered = { idle: 24 * hour, absolute: 48 * hour }
  const lifeTimes = { idle: 30 * minute, absolute: hour, remembered }
  const [a, b] = [replica({ lifeTimes, onEnded }), replica({ lifeTimes })]
  const [idle, used] = [await signIn(a), await signIn(a)]
  const long = await signIn(a, newSession('u', { remembered: true }))
  for (let passed = 0; passed < 50; passed += 10) {
    // A look-up is no use.
    await look(b, idle.secretId)
    a.use(liveIn(await look(a, used.secretId)))
    clock.now += 10 * minute
  }
  for (let n = 0; n < 2; n++) t.same(await look(a, idle.secretId), { ended: 'idle' })
  a.use(liveIn(await look(a, used.secretId)))
  clock.now += 10 * minute
  for (let n = 0; n < 2; n++) t.same(await look(a, used.secretId), { ended: 'absolute' })
  t.same(
    ended.map(each => each.join()),
    ['idle,1', 'absolute,1'],
    'each is counted once'
  )
  a.use(used.live)
  t.same(await look(b, used.secretId), { ended: 'absolute' })
  t.equal(state.calls['touch'], 6)
  clock.now += 22 * hour
  a.use(liveIn(await look(b, long.secretId)))
  clock.now += 23 * hour
  t.match(await look(b, long.secretId), { live: {} })
  clock.now += 2 * hour
  t.same(await look(b, long.secretId), { ended: 'absolute' })
})

t.test('use is written once a minute, and what another replica wrote counts', async t => {
  const { replica, clock, state } = sharedMemory()
  const [a, b] = [replica(), replica()]
  const { secretId } = await signIn(a)
  await look(b, secretId)
  for (let second = 0; second < 29 * 60; second++) {
    a.use(liveIn(await look(a, secretId)))
    clock.now += 1000
  }
  t.equal(state.calls['touch'], 28)
  clock.now += 10 * minute
  t.match(await look(b, secretId), { live: {} }, 'b knew of no use, and asks')
  t.equal(b.mayBeLater(liveIn(await look(b, secretId))), true)
  t.match(await b.extend(liveIn(await look(b, secretId))), {
    live: { idleEnd: clock.now + 30 * minute }
  })
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

t.test('a late request revives nothing', async t => {
  const { replica } = sharedMemory()
  const [a, b] = [replica(), replica()]
  const { secretId, live } = await signIn(a)
  const late = liveIn(await look(b, secretId))
  t.equal(await a.end(live, 'revoked'), true)
  t.equal(await b.end(late, 'replaced'), false)
  b.use(late)
  t.same(await b.extend(late), { ended: 'revoked' })
  t.same(await b.credentials.renew(late, { token: 'new' }), { ended: 'revoked' })
  b.credentials.take(late, { cookies: 'a=1' })
  for (const sessions of [a, b]) t.same(await look(sessions, secretId), { ended: 'revoked' })
})

t.test('at most so many sessions of a user: the one unused longest gives way', async t => {
  const { replica, clock } = sharedMemory()
  const events = recorder()
  const sessions = replica({ perUser: { max: 2, over: 'evict-oldest' }, ...events })
  const [first, second] = [await signIn(sessions), await signIn(sessions)]
  clock.now += 2 * minute
  sessions.use(liveIn(await look(sessions, first.secretId)))
  await signIn(sessions, newSession('u', { address: '192.0.2.7' }))
  t.same(await look(sessions, second.secretId), { ended: 'replaced' })
  t.match(await look(sessions, first.secretId), { live: {} })
  const by = { by: 'sign-in', reason: 'replaced', user: u }
  t.match(events.revoked, [{ ...by, address: '192.0.2.7', sessions: [second.live.session.id] }])
  const { secretId } = await signIn(sessions, newSession('v'))
  const other = liveIn(await look(sessions, secretId))
  await signIn(sessions, newSession('u'), other)
  t.same(await look(sessions, secretId), { ended: 'replaced' })
  t.match(events.revoked[1], { by: 'sign-in', user: { id: 'v' } }, 'the browser’s former one')
})

t.test('a user’s sessions: listed oldest first, ended one by one, all but one, all', async t => {
  const { replica, clock } = sharedMemory()
  const events = recorder()
  const sessions = replica(events)
  const all: Array<Awaited<ReturnType<typeof signIn>>> = []
  for (let n = 0; n < 4; n++) all.push(await signIn(sessions))
  const other = await signIn(sessions, newSession('v'))
  const elsewhere = await signIn(sessions, newSession('u', { source: 'another' }))
  const ids = all.map(({ live }) => live.session.id)
  const listed = async () => (await sessions.list(u)).map(({ session }) => session.id)
  t.same((await listed()).toSorted(), ids.toSorted())
  const [first = '', , third = ''] = ids
  const endedOf = async (which: object, end: object = {}) =>
    (await sessions.endOf(u, which, end)).sessions.map(({ id }) => id)
  t.same(await endedOf({ only: first }, { by: 'user' }), [first])
  t.same(await endedOf({ only: first }, { by: 'user' }), [])
  t.same(await endedOf({ only: other.live.session.id }), [], 'of another user')
  t.equal((await endedOf({ except: third }, { cause: 'signed-out' })).length, 2)
  t.same(await listed(), [third])
  t.equal(await sessions.end(all[2]!.live, 'upstream', { by: 'upstream' }), true)
  t.same(events.ended, [
    ['revoked', 1],
    ['signed-out', 2],
    ['upstream', 1]
  ])
  t.match(events.revoked, [
    { by: 'user', reason: 'revoked', sessions: [first] },
    { by: 'upstream', reason: 'upstream', sessions: [third] }
  ])
  t.equal((await sessions.store.signedIn(9)).total, 2)
  await sessions.store.endAll()
  for (const { secretId } of [other, elsewhere]) {
    t.same(await look(sessions, secretId), { ended: 'revoked' })
  }
  clock.now += 11 * minute
  t.same(await look(sessions, other.secretId), { ended: 'unknown' }, 'nobody remembers why')
})

t.test('the users file decides at each look-up, and nothing is written', async t => {
  const { replica, store, state } = sharedMemory()
  let file: (session: Session) => Session | undefined = session => session
  const events = recorder()
  const [sessions, old] = [replica({ review: session => file(session), ...events }), replica()]
  const { secretId, live } = await signIn(sessions)
  const kept = await signIn(sessions, newSession('v'))
  await look(sessions, secretId)
  file = session => ({ ...session, identity: { ...session.identity, roles: ['admin'] } })
  t.same(liveIn(await look(sessions, secretId)).session.identity.roles, [], 'kept until a reload')
  sessions.forget()
  t.same(liveIn(await look(sessions, secretId)).session.identity.roles, ['admin'])
  file = session => (session.identity.id === 'u' ? undefined : session)
  sessions.forget()
  t.same(await look(sessions, secretId), { ended: 'revoked' })
  t.match(await look(old, secretId), { live: {} }, 'a replica with another file')
  t.same(await store.read(live.key), { ...(await store.read(live.key)), sealed: live.sealed })
  t.match(state.calls, { touch: undefined, replace: undefined })
  t.equal(await sessions.endReviewed({ ...u, id: 'v' }), 0)
  t.equal(await sessions.endReviewed(u), 1)
  t.same(await look(old, secretId), { ended: 'revoked' })
  t.match(events.revoked, [{ by: 'users-file', sessions: [live.session.id] }])
  t.match(await look(sessions, kept.secretId), { live: {} })
})

t.test('times for people follow the wall clock; ends do not', async t => {
  const { store } = sharedMemory()
  const sessions = sessionsOver(store)
  const { live } = await signIn(sessions)
  const { aheadMs } = steadyClock
  steadyClock.aheadMs = () => hour
  t.after(() => (steadyClock.aheadMs = aheadMs))
  const now = sessions.now()
  t.equal(sessions.times().aheadMs, hour)
  const shown = describeSession(
    { ...live, idleEnd: now + 10 * minute },
    { ...sessions.times(), now }
  )
  t.equal(shown.lastUsedAt, new Date(now - 20 * minute + hour).toISOString())
  t.equal(shown.idleIn, 600)
  t.notMatch(JSON.stringify(shown), new RegExp(`${live.key}|${live.sealed}`))
  t.match(timeLeft({ ...live, absoluteEnd: now + 5999 }, now), { idleIn: 5, absoluteIn: 5 })
  t.match(timeLeft(live, live.absoluteEnd + 1), { idleIn: 0, absoluteIn: 0 })
})

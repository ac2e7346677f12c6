/** The last requests of a process. */
import t from 'tap'
import { RecentRequests } from '../../src/observability/recent-requests.ts'
import { Trail, TrailAttempt } from '../../src/observability/trail.ts'

function ended(id: string, members: Partial<Trail> = {}): Trail {
  return Object.assign(new Trail(id, 'GET', `/api/${id}`, '192.0.2.1'), { status: 200, ...members })
}

/** Its call goes on after the response, as a sign-out at a back-end does. */
function withOpenCall(trail: Trail): TrailAttempt {
  return trail.addAttempt(new TrailAttempt('backend', 'http://192.0.2.2'))
}

const idsOf = (recent: RecentRequests, query = {}) =>
  recent.find(query).requests.map(({ id }) => id)

t.test('the newest come first, and the oldest give way', async t => {
  const recent = new RecentRequests({ keep: 3, keepFailed: 3 })
  for (const [index, id] of ['a', 'b', 'c', 'd', 'e'].entries()) {
    recent.add(ended(id, { at: 1000 + index }))
  }
  t.same(idsOf(recent), ['e', 'd', 'c'])
  t.match(recent.find({}).kept.ok, {
    kept: 3,
    overwritten: 2,
    oldestAt: new Date(1002).toISOString()
  })
})

t.test('requests that succeed do not push out those that failed', async t => {
  const recent = new RecentRequests({ keep: 2, keepFailed: 2 })
  recent.add(ended('refused', { status: 401 }))
  recent.add(ended('hidden', { status: 200, code: 'login.refused' }))
  for (const id of ['a', 'b', 'c']) recent.add(ended(id))
  t.same(idsOf(recent, { status: 'failed' }).toSorted(), ['hidden', 'refused'])
  t.same(recent.find({}).kept.failed.overwritten, 0)
})

t.test('0 keeps none', async t => {
  const recent = new RecentRequests({ keep: 0, keepFailed: 0 })
  for (const id of ['a', 'b']) recent.add(ended(id))
  t.same(recent.find({}).requests, [])
  t.match(recent.find({}).kept.ok, { kept: 0, overwritten: 0 })
})

t.test('of failed requests too the newest come first, and the oldest give way', async t => {
  const recent = new RecentRequests({ keep: 3, keepFailed: 4 })
  for (const [index, id] of ['a', 'b', 'c', 'd', 'e', 'f'].entries()) {
    recent.add(ended(id, { at: 1000 + index, status: 500 }))
  }
  t.same(idsOf(recent, { status: 'failed', last: 1 }), ['f'])
  t.same(idsOf(recent), ['f', 'e', 'd', 'c'])
  t.match(recent.find({}).kept.failed, {
    kept: 4,
    overwritten: 2,
    oldestAt: new Date(1002).toISOString()
  })
})

t.test('the clock says which of two requests is newer, whichever of them failed', async t => {
  const recent = new RecentRequests({ keep: 3, keepFailed: 3 })
  recent.add(ended('later', { at: 2000 }))
  recent.add(ended('earlier', { at: 1000, status: 500 }))
  t.same(idsOf(recent), ['later', 'earlier'])
})

t.test('a request whose call goes on after its response is found once, and has ended', async t => {
  const recent = new RecentRequests({ keep: 10, keepFailed: 10 })
  const trail = ended('signed-out')
  const call = withOpenCall(trail)
  recent.add(trail)
  t.same(idsOf(recent), ['signed-out'])
  t.same(idsOf(recent, { status: 'running' }), [])
  call.end(200)
  for (let times = 0; times < 2; times++) {
    t.match(recent.find({}).requests, [{ id: 'signed-out', attempts: [{ status: 200 }] }])
    t.equal(recent.find({}).kept.ok.kept, 1)
  }
})

t.test('of requests whose calls never end, no more are held than are kept', async t => {
  const recent = new RecentRequests({ keep: 5, keepFailed: 0 })
  for (let index = 0; index < 30; index++) {
    const trail = ended(`r${index}`, { at: index })
    withOpenCall(trail)
    recent.add(trail)
  }
  const ids = Array.from({ length: 10 }, (_, back) => `r${29 - back}`)
  t.same(idsOf(recent), ids, 'five as they are, and five in the ring')
})

t.test('queries by id, user, status and route; an id that was used twice gives both', async t => {
  const recent = new RecentRequests({ keep: 10, keepFailed: 10 })
  recent.add(ended('twice', { at: 1, user: 'ann', userId: '1', route: 'orders' }))
  recent.add(ended('twice', { at: 2, user: 'ben', userId: '2', route: 'users', status: 503 }))
  recent.add(ended('once', { at: 3, user: 'ann', userId: '1', route: 'users', status: 404 }))
  t.equal(recent.find({ id: 'twice' }).requests.length, 2)
  t.same(idsOf(recent, { user: 'ann' }), ['once', 'twice'])
  t.same(idsOf(recent, { user: '2' }), ['twice'])
  t.same(idsOf(recent, { status: '4xx' }), ['once'])
  t.same(idsOf(recent, { status: '503' }), ['twice'])
  t.same(idsOf(recent, { route: 'users', user: 'ann' }), ['once'])
  t.match(recent.find({ last: 2 }), { requests: { length: 2 }, hasMore: true })
  t.equal(recent.find({ last: 3 }).hasMore, false)
  recent.add(ended('slow down', { at: 0, route: 'limited', status: 499 }))
  recent.add(ended('broken', { at: 0, route: 'limited', status: 500 }))
  t.same(idsOf(recent, { status: '4xx', route: 'limited' }), ['slow down'])
})

t.test('a query gives at most 500, whatever it asks for', async t => {
  const recent = new RecentRequests({ keep: 2000, keepFailed: 0 })
  for (let index = 0; index < 2000; index++) recent.add(ended(`r${index}`))
  t.match(recent.find({ last: 1_000_000 }), { requests: { length: 500 }, hasMore: true })
})

t.test('requests that run are found until they end, whatever their order', async t => {
  const recent = new RecentRequests({ keep: 10, keepFailed: 10 }, ({ trail }) => {
    trail.user = 'ann'
  })
  const [a, b, c] = ['a', 'b', 'c'].map((id, index) => new Trail(id, 'GET', `/api/${index}`, ''))
  for (const trail of [a, b, c]) recent.begin({ trail: trail as Trail })
  const running = () => idsOf(recent, { status: 'running' }).toSorted()
  t.same(running(), ['a', 'b', 'c'])
  t.match(recent.find({ id: 'b', user: 'ann' }).requests, [{ isRunning: true, status: 0 }])
  t.same(idsOf(recent, { status: 'failed' }), [])
  recent.end(Object.assign(a as Trail, { status: 200 }))
  t.same(running(), ['b', 'c'])
  recent.end(Object.assign(c as Trail, { status: 500 }))
  t.same(running(), ['b'])
  recent.end(Object.assign(b as Trail, { status: 200 }))
  t.same(running(), [])
  t.same(idsOf(recent, { status: 'failed' }), ['c'])
  t.match(recent.find({}), { requests: { length: 3 }, kept: { ok: { kept: 2 } } })
  t.ok(recent.find({}).requests.every(({ isRunning }) => !isRunning))
})

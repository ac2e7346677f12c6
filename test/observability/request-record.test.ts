/** A trail as JSON. */
import t from 'tap'
import { recordOf } from '../../src/observability/request-record.ts'
import { Trail, TrailAttempt, type TrailRule } from '../../src/observability/trail.ts'

const rule = (name: string): TrailRule => ({
  name,
  rate: { max: 10, windowMs: 60_000, burst: 4 },
  enforced: true
})

t.test('limits have the count and the number that it is held against', async t => {
  const trail = new Trail('id', 'GET', '/', '192.0.2.1')
  trail.rules = [rule('used'), rule('over')]
  trail.verdicts = [
    { exceeded: false, remaining: 1, resetMs: 1000 },
    { exceeded: true, remaining: 0, resetMs: 1000 }
  ]
  t.match(recordOf(trail).limits, [
    { name: 'used', count: 3, max: 4, isExceeded: false },
    { name: 'over', count: 4, max: 4, isExceeded: true }
  ])
})

t.test(
  'attempts have their times from the beginning of the request, and their outcome',
  async t => {
    const trail = new Trail('id', 'GET', '/', '192.0.2.1')
    const refused = trail.addAttempt(new TrailAttempt('backend', '127.0.0.1:1'))
    refused.fail(Object.assign(new Error('no'), { code: 'ECONNREFUSED' }), 'upstream.refused')
    const part = trail.addAttempt(new TrailAttempt('backend', '127.0.0.1:2', 'part', 'roles'))
    part.end(200)
    trail.addMissing('regions')
    const { attempts, missing } = recordOf(trail)
    t.match(attempts, [
      { address: '127.0.0.1:1', failure: 'upstream.refused', reason: 'ECONNREFUSED' },
      { address: '127.0.0.1:2', purpose: 'part', part: 'roles', status: 200, failure: undefined }
    ])
    t.ok(attempts?.every(({ atMs, ms = -1 }) => atMs >= 0 && ms >= 0))
    t.same(missing, ['regions'])
  }
)

t.test('the age of a session is that at the beginning of the request', async t => {
  const trail = new Trail('id', 'GET', '/', '192.0.2.1')
  t.equal(recordOf(trail).session, undefined)
  trail.sessionFrom = 'cache'
  trail.sessionOpenedAt = trail.at - 5000
  t.match(recordOf(trail).session, { from: 'cache', ageMs: 5000 })
  trail.sessionOpenedAt = trail.at + 5000
  t.match(recordOf(trail).session, { ageMs: 0 }, 'another clock may be ahead')
})

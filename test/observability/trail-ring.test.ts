/** The ring of trails: what fits, what gives way, and what is said of it. */
import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import t from 'tap'
import { bytesPerTrail, TrailRing } from '../../src/observability/trail-ring.ts'
import { Trail, TrailAttempt } from '../../src/observability/trail.ts'
import { seed } from '../support/seed.ts'

function trailOf(id: number, pathLength: number, name = 'orders'): Trail {
  const trail = new Trail(`id-${id}`, 'GET', `/${'a'.repeat(pathLength)}`, '192.0.2.1')
  return Object.assign(trail, { at: id, route: name, status: 200 })
}

const idsOf = (ring: TrailRing) => ring.newest(Infinity, () => true).map(({ at }) => at)

t.test('the newest are there, newest first, however long each is', async () => {
  const lengths = fc.array(fc.oneof(fc.nat({ max: 40 }), fc.constant(511)), { maxLength: 400 })
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 90 }), lengths, (size, pathLengths) => {
      const ring = new TrailRing(size)
      for (const [id, length] of pathLengths.entries()) {
        ring.add(trailOf(id, length))
        const newest = Array.from({ length: ring.length }, (_, back) => id - back)
        assert.deepEqual(idsOf(ring), newest)
        assert.equal(ring.length + ring.overwritten, id + 1)
        assert.equal(ring.oldest?.at, newest.at(-1))
      }
    }),
    { seed, numRuns: 60 }
  )
})

t.test('ordinary ones all fit, and long ones give way to others earlier', async t => {
  const ring = new TrailRing(1000)
  for (let id = 0; id < 3000; id++) ring.add(trailOf(id, 40))
  t.equal(ring.length, 1000)
  t.equal(ring.overwritten, 2000)
  for (let id = 0; id < 3000; id++) ring.add(trailOf(id, 500))
  t.ok(ring.length < 1000)
  t.ok(ring.length > (1000 * bytesPerTrail) / (500 + bytesPerTrail))
  t.equal(ring.length + ring.overwritten, 6000)
})

t.test('a long one takes the place of those alone that stood there', async t => {
  const ring = new TrailRing(1000)
  let id = 1e6
  while (ring.overwritten === 0) ring.add(trailOf(id++, 500))
  const { length } = ring
  const lengths = Array.from({ length: 3 * length }, () => {
    ring.add(trailOf(id++, 500))
    return ring.length
  })
  t.same(new Set(lengths), new Set([length]))
})

t.test('names of more configs than have numbers cost what was kept, and no memory', async t => {
  const ring = new TrailRing(100)
  for (let id = 0; id < 60_050; id++) ring.add(trailOf(id, 1, `route-${id}`))
  t.ok(ring.length < 100)
  t.equal(ring.length + ring.overwritten, 60_050)
  t.match(
    ring.newest(1, () => true),
    [{ at: 60_049, route: 'route-60049' }]
  )
})

/** In a function of its own, whose variables are gone when it ends. */
function addTrails(ring: TrailRing): Array<WeakRef<object>> {
  return Array.from({ length: 10 }, (_, id) => {
    const trail = trailOf(id, 10)
    const attempt = trail.addAttempt(new TrailAttempt('backend', 'http://192.0.2.2'))
    ring.add(trail)
    return [new WeakRef(trail), new WeakRef(attempt)]
  }).flat()
}

t.test('nothing of a trail stays in memory but its bytes', async t => {
  const ring = new TrailRing(10)
  const references = addTrails(ring)
  t.equal(ring.length, 10)
  // Weak references hold until the end of the turn.
  await new Promise(resolve => setImmediate(resolve))
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  t.same(
    references.filter(reference => reference.deref() !== undefined),
    []
  )
})

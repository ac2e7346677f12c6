/** Random trails as bytes, and read again. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { recordOf } from '../../src/observability/request-record.ts'
import { maxTrailBytes, TrailBytes } from '../../src/observability/trail-bytes.ts'
import { Trail, TrailAttempt } from '../../src/observability/trail.ts'
import { seed } from '../support/seed.ts'

const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ maxLength: 60 }),
  fc.constantFrom('', '\ud800', 'ä'.repeat(64), '\u20ac'.repeat(512), 'x'.repeat(512))
)
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
/** Parts of a millisecond that four bytes hold without a rest. */
const ms = fc.integer({ min: 0, max: 1_000_000 }).map(quarters => quarters / 4)
const count = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const status = fc.integer({ min: 0, max: 599 })
const texts = optional(fc.array(text, { minLength: 1, maxLength: 5 }))

const rule = fc.record({
  name: text,
  rate: fc.record({ max: count, windowMs: count, burst: count }),
  enforced: fc.boolean()
})
const verdict = fc.record({
  exceeded: fc.boolean(),
  remaining: fc.double({ min: 0, max: 1e9, noNaN: true }),
  resetMs: count
})
const attempt = fc.record({
  upstream: text,
  address: text,
  purpose: fc.constantFrom('request' as const, 'part' as const, 'renewal' as const),
  part: optional(text),
  atMs: ms,
  ms: optional(ms),
  status: optional(fc.integer({ min: 100, max: 599 })),
  failure: fc.constantFrom(undefined, 'left' as const, 'upstream.timeout' as const),
  reason: optional(text)
})
const members = fc.record({
  at: fc.nat({ max: 4e12 }),
  route: text,
  alias: optional(fc.record({ path: text, target: text })),
  upstream: optional(text),
  sessionFrom: fc.constantFrom(undefined, 'cache' as const, 'store' as const, 'none' as const),
  sessionMs: ms,
  sessionOpenedAt: optional(fc.nat({ max: 4e12 })),
  sessionEnded: optional(text),
  limitsMs: ms,
  limit: optional(text),
  limitMax: optional(count),
  needsRoles: texts,
  queueMs: ms,
  upstreamMs: optional(ms),
  missing: texts,
  isFallback: fc.boolean(),
  shapeMs: ms,
  status,
  code: fc.constantFrom(undefined, 'upstream.timeout' as const, 'route.forbidden' as const),
  isCut: fc.boolean(),
  sent: optional(count),
  ms,
  user: optional(text),
  userId: optional(text),
  session: optional(text),
  source: optional(text)
})
const trails = fc
  .record({
    ids: fc.tuple(text, text, text),
    target: text,
    members,
    rules: fc.array(rule, { maxLength: 4 }),
    verdicts: fc.array(verdict, { maxLength: 4 }),
    attempts: fc.array(attempt, { maxLength: 4 }),
    traceId: optional(fc.stringMatching(/^[0-9a-f]{32}$/))
  })
  .map(({ ids, target, members: values, rules, verdicts, attempts, traceId }) => {
    const [id, method, address] = ids
    const trail = Object.assign(new Trail(id, method, target, address), values, {
      trace: traceId && { traceId },
      rules,
      verdicts: verdicts.slice(0, rules.length)
    }) as Trail
    for (const { atMs, upstream, address: asked, ...rest } of attempts) {
      const startedAt = trail.startedAt + atMs
      trail.addAttempt(Object.assign(new TrailAttempt(upstream, asked), { ...rest, startedAt }))
    }
    return trail
  })

/** Half of a character outside the first plane has no UTF-8. */
function wellFormed(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, each: unknown) =>
    typeof each === 'string' ? each.toWellFormed() : each
  )
}

t.test('a trail is the same after it was bytes, whatever it holds', async () => {
  const bytes = new TrailBytes(4 * maxTrailBytes)
  fc.assert(
    fc.property(fc.array(trails, { minLength: 1, maxLength: 4 }), written => {
      const starts: number[] = []
      let end = 0
      for (const trail of written) {
        starts.push(end)
        end = bytes.write(trail, end)
        assert.ok(end - (starts.at(-1) ?? 0) <= maxTrailBytes)
      }
      for (const [index, start] of starts.entries()) {
        assert.deepEqual(
          wellFormed(recordOf(bytes.read(start))),
          wellFormed(recordOf(written[index] as Trail))
        )
      }
    }),
    { seed, numRuns: 100 }
  )
})

t.test('long texts and lists are cut, and the rest is kept', async t => {
  const bytes = new TrailBytes(maxTrailBytes)
  const trail = Object.assign(new Trail('id', 'GET', '/api', '192.0.2.1'), {
    user: '\u20ac'.repeat(1000),
    missing: Array.from({ length: 1000 }, (_, index) => `part-${index}`),
    userId: '1',
    status: 200
  })
  for (let index = 0; index < 1000; index++) {
    trail.addAttempt(new TrailAttempt('backend', `http://192.0.2.${index}`))
  }
  t.ok(bytes.write(trail, 0) <= maxTrailBytes)
  const read = bytes.read(0)
  t.match(read, { user: '\u20ac'.repeat(512), userId: '1', status: 200 })
  t.match(read.missing, { length: 64, 63: 'part-63' })
  t.match(read.attempts, { length: 64, 63: { address: 'http://192.0.2.63' } })
})

t.test('the longest trail has room in what the bounds say', async t => {
  const bytes = new TrailBytes(maxTrailBytes)
  const long = '\u20ac'.repeat(512)
  const list = Array.from({ length: 64 }, (_, index) => `name-${index}`)
  const trail = Object.assign(new Trail(long, 'GET', long, long), {
    ...{ user: long, userId: long, session: long, trace: { traceId: long } },
    ...{ missing: list, needsRoles: list, status: 200 },
    rules: list.map(name => {
      return { name, rate: { max: 1, windowMs: 1, burst: 1 }, enforced: true }
    }),
    verdicts: list.map(() => ({ exceeded: true, remaining: 0, resetMs: 1 }))
  })
  for (const name of list) trail.addAttempt(new TrailAttempt('backend', name))
  bytes.write(trail, 0)
  t.match(bytes.read(0), {
    ...{ requestId: long, trace: { traceId: long } },
    ...{ missing: list, needsRoles: list },
    verdicts: { length: 64, 63: { exceeded: true } },
    attempts: { length: 64, 63: { address: 'name-63' } }
  })
})

t.test('each detail is kept, also where it is the only one', async t => {
  const details: Array<Partial<Trail>> = [
    { alias: { path: '/a', target: '/b' } },
    { isFallback: true },
    { limit: 'burst' },
    { missing: ['stock'] },
    { sessionEnded: 'revoked' },
    { limitMax: 0 },
    { needsRoles: ['admin'] }
  ]
  for (const detail of details) {
    const bytes = new TrailBytes(maxTrailBytes)
    bytes.write(Object.assign(new Trail('id', 'GET', '/api', '192.0.2.1'), detail), 0)
    t.match(bytes.read(0), detail)
  }
})

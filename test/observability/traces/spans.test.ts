/** Spans of random trails, in both encodings, read by a decoder that is not ours. */
import assert from 'node:assert/strict'
import fc from 'fast-check'
import t from 'tap'
import { writeJson } from '../../../src/observability/traces/otlp-json.ts'
import { writeProtobuf } from '../../../src/observability/traces/otlp-protobuf.ts'
import {
  countSpans,
  type EndedRequest,
  type Span,
  spansOf
} from '../../../src/observability/traces/spans.ts'
import { Trail, TrailAttempt } from '../../../src/observability/trail.ts'
import { decode, type DecodedSpan } from '../../support/collector.ts'
import { seed } from '../../support/seed.ts'

const origin = {
  resource: [
    ['service.name', 'console-gateway'],
    ['process.pid', 4711]
  ] as const,
  scope: { name: 'console-gateway', version: '1.2.3' }
}
const kinds = ['', 'SPAN_KIND_INTERNAL', 'SPAN_KIND_SERVER', 'SPAN_KIND_CLIENT']

const hexOf = (length: number) => fc.stringMatching(new RegExp(`^[1-9a-f][0-9a-f]{${length - 1}}$`))
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.string({ unit: 'grapheme', maxLength: 60 }),
  fc.constantFrom('', '\ud800', 'ä'.repeat(64), 'x'.repeat(43))
)
const ms = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e7, noNaN: true }))
const attempt = fc.record({
  upstream: text,
  purpose: fc.constantFrom('request' as const, 'part' as const, 'sign-in' as const),
  part: fc.option(text, { nil: undefined }),
  startedAt: ms,
  ms: fc.option(ms, { nil: undefined }),
  status: fc.option(fc.integer({ min: 200, max: 599 }), { nil: undefined }),
  failure: fc.option(fc.constantFrom('upstream.timeout' as const, 'left' as const), {
    nil: undefined
  }),
  span: fc.option(
    fc.record({
      spanId: hexOf(16),
      method: fc.constantFrom('GET', 'POST', 'PROPFIND'),
      url: fc.webPath().map(path => `http://backend.example:8080${path}`)
    }),
    { nil: undefined }
  )
})
const trace = fc.record({
  traceId: hexOf(32),
  spanId: hexOf(16),
  parentId: fc.option(hexOf(16), { nil: undefined }),
  sampled: fc.constant(true),
  isRecorded: fc.constant(true),
  isLogged: fc.constant(true),
  state: fc.option(fc.constantFrom('foo=1', 'a=1,b=2'), { nil: undefined })
})
const members = fc.record({
  route: text,
  sessionFrom: fc.constantFrom(undefined, 'cache' as const, 'store' as const),
  sessionMs: ms,
  sessionAt: ms,
  limitsMs: ms,
  limitsAt: ms,
  limit: fc.option(text, { nil: undefined }),
  shapeMs: ms,
  shapeAt: ms,
  queueMs: ms,
  missing: fc.option(fc.array(text, { minLength: 1, maxLength: 3 }), { nil: undefined }),
  status: fc.constantFrom(200, 204, 403, 499, 502),
  code: fc.constantFrom(undefined, 'upstream.timeout' as const, 'route.forbidden' as const),
  isCut: fc.boolean(),
  ms
})
const endedRequest: fc.Arbitrary<EndedRequest> = fc
  .record({
    method: fc.constantFrom('GET', 'DELETE', 'PROPFIND'),
    target: text,
    members,
    attempts: fc.array(attempt, { maxLength: 4 }),
    trace,
    template: fc.option(text, { nil: undefined })
  })
  .map(({ method, target, members: values, attempts, trace: context, template }) => {
    const trail = new Trail('4f0c', method, target, '192.0.2.7')
    Object.assign(trail, values)
    for (const values of attempts) {
      trail.addAttempt(Object.assign(new TrailAttempt('', ''), values))
    }
    return { trail, trace: context, scheme: 'https', template }
  })

function expected(span: Span) {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentId ?? '',
    traceState: span.state ?? '',
    name: span.name.toWellFormed(),
    kind: kinds[span.kind],
    flags: span.isParentRemote ? 0x301 : 0x101,
    isError: span.isError,
    attributes: Object.fromEntries(
      span.attributes.map(([name, value]) => [
        name,
        typeof value === 'string' ? value.toWellFormed() : value
      ])
    )
  }
}

t.test(
  'whatever a trail holds, both encodings are what the published protobuf describes',
  async () => {
    const request = fc.array(endedRequest, { minLength: 1, maxLength: 5 })
    fc.assert(
      fc.property(request, fc.boolean(), (requests, hasRedis) => {
        const spans = requests.flatMap(each => spansOf(each, hasRedis))
        const decoded = decode(writeProtobuf(origin, spans), 'application/x-protobuf')
        assert.deepEqual(decode(writeJson(origin, spans), 'application/json'), decoded)
        assert.equal(decoded.scope, 'console-gateway 1.2.3')
        assert.deepEqual(decoded.resource, Object.fromEntries(origin.resource))
        assert.equal(decoded.spans.length, spans.length)
        for (const [index, span] of spans.entries()) {
          const { startTimeUnixNano, endTimeUnixNano, ...rest } = decoded.spans[
            index
          ] as DecodedSpan
          assert.deepEqual(rest, expected(span))
          assert.ok(Math.abs(Number(startTimeUnixNano) / 1e6 - span.startMs) < 0.001)
          assert.ok(BigInt(endTimeUnixNano) >= BigInt(startTimeUnixNano))
        }
      }),
      { seed, numRuns: 200 }
    )
  }
)

t.test('the queue counts as many spans as are written', async () => {
  fc.assert(
    fc.property(endedRequest, request => countSpans(request) === spansOf(request, true).length),
    { seed }
  )
})

t.test('no span says a query, a user or an address of a client', async t => {
  const trail = new Trail('id', 'GET', '/api/orders?token=secret', '192.0.2.7')
  Object.assign(trail, { user: 'alice', userId: '17', session: 'public-id', status: 200 })
  const context = { ...fc.sample(trace, { seed, numRuns: 1 })[0] } as EndedRequest['trace']
  const spans = spansOf({ trail, trace: context, scheme: 'https', template: '/api/orders' }, false)
  t.equal(spans[0]?.name, 'GET /api/orders')
  t.notMatch(JSON.stringify(spans), /secret|alice|public-id|192\.0\.2\.7|"17"/)
})

/** W3C Trace Context, by the cases of its Recommendation. */
import t from 'tap'
import { contextOf, readTraceparent, writeContext } from '../../src/observability/traces/context.ts'
import { samplerOf } from '../../src/observability/traces/tracer.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const sampled = `00-${traceId}-${spanId}-01`
const asByDefault = { ratio: 1, followsCaller: true }

t.test('a traceparent of this version is read, whatever its reserved flags are', async t => {
  t.same(readTraceparent(sampled), { traceId, spanId, sampled: true })
  t.same(readTraceparent(`00-${traceId}-${spanId}-00`), { traceId, spanId, sampled: false })
  t.equal(readTraceparent(`00-${traceId}-${spanId}-fe`)?.sampled, false)
  t.equal(readTraceparent(`00-${traceId}-${spanId}-ff`)?.sampled, true)
})

t.test('a malformed traceparent counts as none', async t => {
  const malformed = {
    'empty': '',
    'upper case of the trace': `00-${traceId.toUpperCase()}-${spanId}-01`,
    'upper case of the span': `00-${traceId}-${spanId.toUpperCase()}-01`,
    'a trace of zeros': `00-${'0'.repeat(32)}-${spanId}-01`,
    'a span of zeros': `00-${traceId}-${'0'.repeat(16)}-01`,
    'the invalid version': `ff-${traceId}-${spanId}-01`,
    'more than version 00 has': `${sampled}-what`,
    'a dash at its end': `${sampled}-`,
    'a short trace': `00-${traceId.slice(1)}-${spanId}-01`,
    'a long span': `00-${traceId}-${spanId}0-01`,
    'no flags': `00-${traceId}-${spanId}`,
    'one digit of flags': `00-${traceId}-${spanId}-1`,
    'other digits': `00-${traceId.replace('a', 'g')}-${spanId}-01`,
    'a blank before it': ` ${sampled}`,
    'two of them, as Node joins them': `${sampled}, ${sampled}`,
    'two of a later version': `cc-${traceId}-${spanId}-01-x, cc-${traceId}-${spanId}-01`
  }
  for (const [what, header] of Object.entries(malformed)) {
    t.equal(readTraceparent(header), undefined, what)
  }
})

t.test('of a later version the members of this one are read', async t => {
  const expected = { traceId, spanId, sampled: true }
  t.same(readTraceparent(`cc-${traceId}-${spanId}-01`), expected)
  t.same(readTraceparent(`cc-${traceId}-${spanId}-01-what-the-future`), expected)
  t.equal(readTraceparent(`cc-${traceId}-${spanId}-01.what`), undefined)
  t.equal(readTraceparent(`cc-${traceId}-${spanId}-011`), undefined)
})

t.test('a tracestate over 512 characters does not pass', async t => {
  const stateOf = (tracestate: string) =>
    contextOf({ traceparent: sampled, tracestate }, asByDefault, true).state
  const long = `k=${'y'.repeat(510)}`
  t.equal(stateOf(long), long)
  t.equal(stateOf(`${long}y`), undefined)
})

t.test('a caller’s trace goes on, with a span of the gateway’s own', async t => {
  const context = contextOf({ traceparent: sampled, tracestate: 'foo=1' }, asByDefault, true)
  t.match(context, { traceId, parentId: spanId, sampled: true, isRecorded: true, state: 'foo=1' })
  t.match(context.spanId, /^[0-9a-f]{16}$/)
  t.not(context.spanId, spanId)
  const headers: Record<string, string> = { tracestate: 'foo=other' }
  writeContext(headers, context, true)
  t.same(headers, {
    traceparent: `00-${traceId}-${context.spanId}-01`,
    tracestate: 'foo=1'
  })
})

t.test('without spans of its own the gateway names the caller’s span', async t => {
  const headers: Record<string, string> = {}
  for (const flags of ['00', '01']) {
    const traceparent = `00-${traceId}-${spanId}-${flags}`
    writeContext(headers, contextOf({ traceparent }, asByDefault, false), true)
    t.equal(headers['traceparent'], traceparent)
  }
})

t.test('a tracestate passes only with its traceparent, and where it may', async t => {
  const headers: Record<string, string> = { tracestate: 'foo=1' }
  writeContext(headers, contextOf({ tracestate: 'foo=1' }, asByDefault, true), true)
  t.notOk('tracestate' in headers, 'no traceparent')
  headers['tracestate'] = 'foo=1'
  writeContext(
    headers,
    contextOf({ traceparent: sampled, tracestate: 'foo=1' }, asByDefault, true),
    false
  )
  t.notOk('tracestate' in headers, 'not to this upstream')
})

t.test('a new trace has ids of its own, which never repeat', async t => {
  const contexts = Array.from({ length: 2000 }, () =>
    contextOf({ traceparent: 'x' }, asByDefault, true)
  )
  t.equal(new Set(contexts.map(context => context.traceId)).size, contexts.length)
  t.equal(new Set(contexts.map(context => context.spanId)).size, contexts.length)
  const headers: Record<string, string> = {}
  for (const context of contexts.slice(0, 20)) {
    writeContext(headers, context, true)
    const { traceId, spanId } = context
    t.same(readTraceparent(headers['traceparent'] ?? ''), { traceId, spanId, sampled: true })
    t.equal(context.parentId, undefined)
  }
})

t.test('samplers: of the parent, of all, of none, of a share of the traces', async t => {
  const samplerFor = (name: string, ratio: number) => {
    const environment = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: String(ratio) }
    return samplerOf(environment, problem => t.fail(problem))
  }
  const decide = (name: string, ratio: number, flags?: string) => {
    const headers = flags === undefined ? {} : { traceparent: `00-${traceId}-${spanId}-${flags}` }
    return contextOf(headers, samplerFor(name, ratio), true).sampled
  }
  t.equal(decide('always_on', 1, '00'), true)
  t.equal(decide('always_off', 1, '01'), false)
  t.equal(decide('parentbased_always_on', 1, '00'), false)
  t.equal(decide('parentbased_always_on', 1), true)
  t.equal(decide('parentbased_always_off', 1, '01'), true)
  t.equal(decide('parentbased_always_off', 1), false)
  t.equal(decide('traceidratio', 0, '01'), false)
  t.equal(decide('traceidratio', 1, '00'), true)
  t.equal(decide('parentbased_traceidratio', 0, '01'), true)
  const sampler = samplerFor('traceidratio', 0.25)
  const contexts = Array.from({ length: 20_000 }, () => contextOf({}, sampler, true))
  const share = contexts.filter(({ sampled: isSampled }) => isSampled)
  t.ok(Math.abs(share.length / 20_000 - 0.25) < 0.03, `${share.length} of 20,000`)
})

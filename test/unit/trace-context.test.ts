/** W3C Trace Context, by the cases of its Recommendation. Through HTTP: http/export.test.ts. */
import t from 'tap'
import { contextOf, readTraceparent } from '../../src/observability/traces/context.ts'
import { samplerOf } from '../../src/observability/traces/tracer.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const spanId = 'b7ad6b7169203331'
const sampled = `00-${traceId}-${spanId}-01`
const asByDefault = { ratio: 1, followsCaller: true }

t.test('a traceparent is read, whatever its reserved flags and a later version are', async t => {
  for (const [rest, isSampled = true, version = '00'] of [
    ['01'],
    ['00', false],
    ['fe', false],
    ['ff'],
    ['01', true, 'cc'],
    ['01-what-the-future', true, 'cc']
  ] as const) {
    const header = `${version}-${traceId}-${spanId}-${rest}`
    t.same(readTraceparent(header), { traceId, spanId, sampled: isSampled }, header)
  }
})

t.test('a malformed traceparent counts as none', async t => {
  const zeros = '0'.repeat(32)
  for (const header of [
    '',
    `${sampled}-what`,
    // As Node joins two of them.
    `${sampled}, ${sampled}`,
    `cc-${traceId}-${spanId}-01-x, cc-${traceId}-${spanId}-01`,
    `ff-${traceId}-${spanId}-01`,
    `cc-${traceId}-${spanId}-011`,
    `00-${traceId}-${spanId}`,
    `00-${traceId}-${spanId}-1`,
    ...[traceId.toUpperCase(), zeros, traceId.slice(1), traceId.replace('a', 'g')].map(
      trace => `00-${trace}-${spanId}-01`
    ),
    ...[spanId.toUpperCase(), zeros.slice(16), `${spanId}0`].map(span => `00-${traceId}-${span}-01`)
  ]) {
    t.equal(readTraceparent(header), undefined, header)
  }
})

t.test('a tracestate over 512 characters does not pass', async t => {
  const stateOf = (tracestate: string) =>
    contextOf({ traceparent: sampled, tracestate }, asByDefault, true).state
  const long = `k=${'y'.repeat(510)}`
  t.equal(stateOf(long), long)
  t.equal(stateOf(`${long}y`), undefined)
})

t.test('samplers: of the parent, of all, of none, of a share of the traces', async t => {
  const samplerFor = (name: string, ratio: number) => {
    const environment = { OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: String(ratio) }
    return samplerOf(environment, problem => t.fail(problem))
  }
  for (const [name, ratio, flags, isSampled] of [
    ['always_on', 1, '00', true],
    ['always_off', 1, '01', false],
    ['parentbased_always_on', 1, '00', false],
    ['parentbased_always_on', 1, '', true],
    ['parentbased_always_off', 1, '01', true],
    ['parentbased_always_off', 1, '', false],
    ['traceidratio', 0, '01', false],
    ['traceidratio', 1, '00', true],
    ['parentbased_traceidratio', 0, '01', true]
  ] as const) {
    const headers = flags === '' ? {} : { traceparent: `00-${traceId}-${spanId}-${flags}` }
    const context = contextOf(headers, samplerFor(name, ratio), true)
    t.equal(context.sampled, isSampled, `${name} ${ratio} ${flags}`)
  }
  const sampler = samplerFor('traceidratio', 0.25)
  const contexts = Array.from({ length: 20_000 }, () => contextOf({}, sampler, true))
  const share = contexts.filter(each => each.sampled)
  t.ok(Math.abs(share.length / 20_000 - 0.25) < 0.03, `${share.length} of 20,000`)
})

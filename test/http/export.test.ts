/** Traces from the console’s request to the back-ends and to the collector. */
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import {
  type DecodedSpan,
  exportTo,
  only,
  setEnvironment,
  type TestCollector,
  testCollector
} from '../support/collector.ts'
import { testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerId = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${callerId}-01`
const headers = { traceparent, tracestate: 'foo=1' }
const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$/

const backend = await testUpstream(t.teardown, json(200, { data: [{ noticeId: 'n1' }] }))
const traced = {
  backend: backend.url,
  routes: {
    upstreams: { strict: { url: backend.url, passHeaders: ['accept'] } },
    routes: {
      fine: { access: 'public', answer: { json: {} } },
      any: { access: 'public' },
      strict: { access: 'public', upstream: 'strict' },
      notices: {
        path: '/api/notices/:id',
        upstream: 'b',
        rewrite: '/internal/:id',
        shape: 'notices',
        parts: { count: { upstream: 'b', rewrite: '/count', into: 'count' } }
      }
    },
    shapes: { notices: [{ unwrap: 'data' }, { wrap: 'list' }] }
  }
}

const ofTrace = (collector: TestCollector) =>
  collector.spans().filter(span => span.traceId === traceId)
const requestIds = (collector: TestCollector) =>
  collector.spans().map(({ attributes }) => attributes['console_gateway.request_id'])
const idOf = (response: { readonly headers: Headers }) => response.headers.get('x-request-id')

t.test('without a collector calls have a context, and the caller’s goes on', async t => {
  const gateway = await testGateway(t.after, traced)
  const contextOf = async (path: string, sent = {}) => {
    await gateway.call(path, { headers: sent })
    return backend.seen.at(-1)?.headers ?? {}
  }
  const [first, second] = [await contextOf('/api/any'), await contextOf('/api/any')]
  const traces = [first, second].map(each => pattern.exec(String(each['traceparent']))?.[1])
  t.equal(new Set(traces.filter(Boolean)).size, 2, 'two traces')
  t.match(await contextOf('/api/any', headers), headers)
  const listed = await contextOf('/api/strict', headers)
  t.equal(listed['traceparent'], traceparent)
  t.notOk('tracestate' in listed, 'the client’s data passes by the list')
  const malformed = { ...headers, traceparent: traceparent.toUpperCase() }
  const replaced = await contextOf('/api/any', malformed)
  t.match(replaced['traceparent'], pattern, 'a malformed one is replaced')
  t.notOk('tracestate' in replaced)
  const line = await gateway.logged(({ msg, traceId: id }) => msg === 'request' && id === traceId)
  t.equal(line['route'], 'any')
  t.equal(gateway.log.filter(({ traceId: id }) => id !== undefined).length, 2, 'no others')
})

t.test('with OTEL_SDK_DISABLED the headers of the client pass as they are', async t => {
  setEnvironment(t.after, { OTEL_SDK_DISABLED: 'true' })
  const gateway = await testGateway(t.after, traced)
  await gateway.call('/api/any')
  t.notOk('traceparent' in (backend.seen.at(-1)?.headers ?? {}))
  await gateway.call('/api/any', { headers })
  t.equal(backend.seen.at(-1)?.headers['traceparent'], traceparent)
})

t.test('a request’s spans hang together, and on those of the caller and the back-ends', async t => {
  const redis = await testRedis(t.after)
  const collector = await testCollector(t.after)
  exportTo(t.after, collector.url)
  const files = { ...traced, redis: { url: redis.url, commandTimeout: '30s' } }
  // At another replica, so that this one looks in Redis for the session.
  const cookie = await (await testGateway(t.after, files)).signIn('bob')
  const gateway = await testGateway(t.after, files)
  const before = backend.seen.length
  const answer = await gateway.call('/api/notices/17?token=secret', { cookie, headers })
  t.equal(answer.status, 200)
  const isServer = ({ kind }: DecodedSpan) => kind === 'SPAN_KIND_SERVER'
  // It ends last, and they are exported in the order of their ends.
  await until('the spans came', () => ofTrace(collector).some(isServer))
  const spans = ofTrace(collector)
  const server = only(spans, isServer)
  t.match(server, {
    ...{ name: 'GET /api/notices/:id', parentSpanId: callerId, traceState: 'foo=1' },
    ...{ flags: 0x301, isError: false },
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/api/notices/:id',
      'http.response.status_code': 200,
      'url.path': '/api/notices/17',
      'url.scheme': 'http',
      'console_gateway.route': 'notices',
      'console_gateway.request_id': idOf(answer)
    }
  })
  for (const span of spans) {
    t.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
    if (span === server) continue
    t.equal(span.parentSpanId, server.spanId)
    t.ok(BigInt(span.startTimeUnixNano) >= BigInt(server.startTimeUnixNano))
  }
  const calls = backend.seen.slice(before)
  t.equal(calls.length, 2)
  for (const { url, headers: sent } of calls) {
    const full = backend.url + url.split('?')[0]
    const span = only(spans, ({ attributes }) => attributes['url.full'] === full)
    t.match(sent, { traceparent: `00-${traceId}-${span.spanId}-01`, tracestate: 'foo=1' }, url)
    t.match(span, {
      kind: 'SPAN_KIND_CLIENT',
      attributes: { 'http.response.status_code': 200, 'console_gateway.upstream': 'b' }
    })
  }
  t.ok(only(spans, ({ name }) => name === 'shape'))
  const { kind, attributes } = only(spans, ({ name }) => name === 'session')
  t.same([kind, attributes['db.system.name']], ['SPAN_KIND_CLIENT', 'redis'])
  t.notMatch(JSON.stringify(collector.requests), /secret|bob/)
  const line = await gateway.logged(({ msg, route }) => msg === 'request' && route === 'notices')
  t.equal(line['traceId'], traceId)
  t.match(collector.requests[0], {
    path: '/v1/traces',
    headers: { 'content-type': 'application/x-protobuf' },
    resource: { 'service.name': 'console-gateway' }
  })
})

for (const [variables, warning] of [
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /is not a URL of http or https; no traces/],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:1', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /"grpc"/],
  [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /takes otlp or none, not "zipkin"/],
  [{ OTEL_TRACES_EXPORTER: 'otlp' }, /OTEL_EXPORTER_OTLP_ENDPOINT is not set/],
  [{ OTEL_TRACES_SAMPLER: 'some' }, /does not take "some": parentbased_always_on is taken/],
  [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' }, /1 is taken/]
] as const) {
  t.test(`a setting that cannot be taken is a warning: ${JSON.stringify(variables)}`, async t => {
    setEnvironment(t.after, variables)
    const gateway = await testGateway(t.after, traced)
    t.match((await gateway.logged(({ event }) => event === 'traces.config'))['msg'], warning)
    t.equal(await gateway.status('/api/fine'), 200)
  })
}

t.test('a collector with TLS is believed by OTEL_EXPORTER_OTLP_CERTIFICATE alone', async t => {
  const authority = testAuthority(t.after)
  const collector = await testCollector(t.after, authority)
  exportTo(t.after, collector.url)
  const stranger = await testGateway(t.after, traced)
  await stranger.call('/api/fine')
  await stranger.logged(({ event }) => event === 'traces.failing')
  t.equal(collector.requests.length, 0)
  setEnvironment(t.after, { OTEL_EXPORTER_OTLP_CERTIFICATE: authority.certificate })
  const gateway = await testGateway(t.after, traced)
  const id = idOf(await gateway.call('/api/fine'))
  await until('the span came', () => requestIds(collector).includes(id))
})

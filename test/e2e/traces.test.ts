/** Traces from the console's request to the back-ends and to the collector. */
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { createServer } from 'node:http'
import { type DecodedSpan, setEnvironment, testCollector } from '../support/collector.ts'
import { testGateway } from '../support/gateway.ts'
import { freePort, listen } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { signInAt } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerId = 'b7ad6b7169203331'
const traceparent = `00-${traceId}-${callerId}-01`
const pattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$/

const exportTo = (t: Test, url: string, more: Readonly<Record<string, string>> = {}) =>
  setEnvironment(t.after, {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_BSP_SCHEDULE_DELAY: '20',
    ...more
  })

function only(spans: readonly DecodedSpan[], fits: (span: DecodedSpan) => boolean): DecodedSpan {
  const [span, ...others] = spans.filter(fits)
  if (span === undefined || others.length > 0) throw new Error(`${others.length + 1} spans, not 1`)
  return span
}

t.test(
  'without a collector each call to a back-end has a context, and the caller’s goes on',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: {
          backend: { url: backend.url },
          strict: { url: backend.url, passHeaders: ['accept'] }
        },
        routes: {
          any: {
            path: '/api/any',
            methods: ['GET', 'POST'],
            access: 'public',
            upstream: 'backend'
          },
          strict: { path: '/api/strict', access: 'public', upstream: 'strict' }
        }
      }
    })
    await gateway.call('/api/any')
    await gateway.call('/api/any', { method: 'POST', json: { a: 1 } })
    const [first, second] = backend.seen.map(({ headers }) => String(headers['traceparent']))
    t.match(first, pattern)
    t.match(second, pattern)
    t.not(pattern.exec(first ?? '')?.[1], pattern.exec(second ?? '')?.[1], 'two traces')
    const headers = { traceparent, tracestate: 'foo=1 , bar=2' }
    await gateway.call('/api/any', { headers })
    t.match(backend.seen[2]?.headers, headers)
    await gateway.call('/api/strict', { headers })
    t.equal(backend.seen[3]?.headers['traceparent'], traceparent)
    t.notOk(
      'tracestate' in (backend.seen[3]?.headers ?? {}),
      'the client’s data passes by the list'
    )
    await gateway.call('/api/any', {
      headers: { traceparent: traceparent.toUpperCase(), tracestate: 'foo=1' }
    })
    t.match(backend.seen[4]?.headers['traceparent'], pattern, 'a malformed one is replaced')
    t.notOk('tracestate' in (backend.seen[4]?.headers ?? {}))
    const line = await gateway.logged(({ msg, traceId: id }) => msg === 'request' && id === traceId)
    t.equal(line['route'], 'any')
    t.equal(gateway.log.filter(({ traceId: id }) => id !== undefined).length, 2, 'no others')
  }
)

t.test('with OTEL_SDK_DISABLED the headers of the client pass as they are', async t => {
  const backend = await testUpstream(t.after)
  const routes = {
    upstreams: { backend: { url: backend.url } },
    routes: { any: { path: '/api/any', access: 'public', upstream: 'backend' } }
  }
  setEnvironment(t.after, { OTEL_SDK_DISABLED: 'true' })
  const gateway = await testGateway(t.after, { routes })
  await gateway.call('/api/any')
  t.notOk('traceparent' in (backend.seen[0]?.headers ?? {}))
  await gateway.call('/api/any', { headers: { traceparent } })
  t.equal(backend.seen[1]?.headers['traceparent'], traceparent)
})

t.test('a request’s spans hang together, and on those of the caller and the back-ends', async t => {
  const redis = await testRedis(t.after)
  const collector = await testCollector(t.after)
  exportTo(t, collector.url)
  const backend = await testUpstream(t.after, json(200, { data: [{ noticeId: 'n1' }] }))
  const gateway = await testGateway(
    t.after,
    {
      gateway: { redis: { url: redis.url }, session: { secrets: ['${SECRET}'] } },
      routes: {
        upstreams: { backend: { url: backend.url } },
        routes: {
          notices: {
            path: '/api/notices/:id',
            upstream: 'backend',
            rewrite: '/internal/:id',
            shape: 'notices',
            parts: { count: { upstream: 'backend', rewrite: '/count', into: 'count' } }
          }
        },
        shapes: { notices: [{ unwrap: 'data' }, { wrap: 'list' }] }
      }
    },
    { SECRET: 'x'.repeat(32) }
  )
  const cookie = await gateway.signIn('bob')
  const headers = { traceparent, tracestate: 'foo=1' }
  const answer = await gateway.call('/api/notices/17?token=secret', { cookie, headers })
  t.equal(answer.status, 200)
  const ofTrace = () => collector.spans().filter(span => span.traceId === traceId)
  await until('the spans came', () => ofTrace().length >= 4)
  const spans = ofTrace()
  const server = only(spans, ({ kind }) => kind === 'SPAN_KIND_SERVER')
  t.match(server, {
    name: 'GET /api/notices/:id',
    parentSpanId: callerId,
    traceState: 'foo=1',
    flags: 0x301,
    isError: false,
    attributes: {
      'http.request.method': 'GET',
      'http.route': '/api/notices/:id',
      'http.response.status_code': 200,
      'url.path': '/api/notices/17',
      'url.scheme': 'http',
      'console_gateway.route': 'notices',
      'console_gateway.request_id': answer.headers.get('x-request-id')
    }
  })
  for (const span of spans) {
    t.ok(BigInt(span.endTimeUnixNano) >= BigInt(span.startTimeUnixNano))
    if (span === server) continue
    t.equal(span.parentSpanId, server.spanId)
    t.ok(BigInt(span.startTimeUnixNano) >= BigInt(server.startTimeUnixNano))
  }
  for (const { url, headers: sent } of backend.seen) {
    const span = only(
      spans,
      ({ attributes }) => attributes['url.full'] === backend.url + url.split('?')[0]
    )
    t.equal(sent['traceparent'], `00-${traceId}-${span.spanId}-01`, url)
    t.equal(sent['tracestate'], 'foo=1')
    t.match(span, {
      kind: 'SPAN_KIND_CLIENT',
      attributes: { 'http.response.status_code': 200, 'console_gateway.upstream': 'backend' }
    })
  }
  t.ok(only(spans, ({ name }) => name === 'shape'))
  t.notMatch(JSON.stringify(collector.requests), /secret|bob/)
  const line = await gateway.logged(
    line => line['route'] === 'notices' && line['msg'] === 'request'
  )
  t.equal(line['traceId'], traceId)
  t.match(collector.requests[0], {
    path: '/v1/traces',
    headers: { 'content-type': 'application/x-protobuf' },
    resource: { 'service.name': 'console-gateway' }
  })
})

t.test('the session’s lookup in Redis is a span', async t => {
  const redis = await testRedis(t.after)
  const collector = await testCollector(t.after)
  const files = {
    gateway: {
      redis: { url: redis.url, prefix: 'traces:', commandTimeout: '30s' },
      session: { secrets: ['${SECRET}'] }
    }
  }
  exportTo(t, collector.url)
  const environment = { SECRET: 'x'.repeat(32) }
  const other = await testGateway(t.after, files, environment)
  const cookie = await other.signIn('bob')
  const gateway = await testGateway(t.after, files, environment)
  await gateway.call('/api/account/profile', { cookie, headers: { traceparent } })
  const ofTrace = () => collector.spans().filter(span => span.traceId === traceId)
  await until('the span came', () => ofTrace().some(({ name }) => name === 'session'))
  t.match(
    only(ofTrace(), ({ name }) => name === 'session'),
    {
      kind: 'SPAN_KIND_CLIENT',
      attributes: { 'db.system.name': 'redis' }
    }
  )
})

t.test('the calls of a sign-in and of a sign-out have the context too', async t => {
  const backend = await testUpstream(t.after, json(200, { id: '1', token: 't' }))
  const { gateway, routes } = signInAt(backend.url, {
    token: 'token',
    logout: { path: '/logout', method: 'POST' }
  })
  const running = await testGateway(t.after, { gateway, routes })
  const headers = { traceparent }
  const signedIn = await running.call('/api/auth/admin/login', {
    method: 'POST',
    headers,
    json: { username: 'u', password: 'p' }
  })
  t.equal(signedIn.status, 200, signedIn.text)
  const cookie = signedIn.headers
    .getSetCookie()
    .map(each => each.split(';')[0])
    .join('; ')
  await running.call('/api/account/logout', { method: 'POST', cookie, headers })
  await until('the back-end’s session was ended', () => backend.seen.length === 2)
  t.same(
    backend.seen.map(seen => seen.headers['traceparent']),
    [traceparent, traceparent]
  )
})

t.test('a WebSocket handshake has the context, and is a span', async t => {
  const collector = await testCollector(t.after)
  exportTo(t, collector.url)
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  const url = `http://127.0.0.1:${await listen(server)}`
  t.after(() => server.close())
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { backend: { url } },
      routes: {
        events: { path: '/api/events', access: 'public', upstream: 'backend', websocket: {} }
      }
    }
  })
  const connected = once(sockets, 'connection')
  const client = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/events?token=secret`, {
    headers: { traceparent, origin: gateway.url }
  })
  t.after(() => client.terminate())
  const [, { headers }] = (await connected) as [unknown, { headers: Record<string, string> }]
  const ofTrace = () => collector.spans().filter(span => span.traceId === traceId)
  await until('the spans came', () => ofTrace().length === 2)
  const span = only(ofTrace(), ({ kind }) => kind === 'SPAN_KIND_CLIENT')
  t.equal(headers['traceparent'], `00-${traceId}-${span.spanId}-01`)
  t.match(span.attributes, { 'url.full': `${url}/api/events`, 'http.response.status_code': 101 })
})

t.test('each attempt is a span with a context of its own', async t => {
  const collector = await testCollector(t.after)
  exportTo(t, collector.url)
  const backend = await testUpstream(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { backend: { urls: [dead, backend.url] } },
      routes: { any: { path: '/api/any', access: 'public', upstream: 'backend' } }
    }
  })
  const retried = () =>
    collector.spans().find(({ attributes }) => attributes['error.type'] !== undefined)
  await until('an address refused', async () => {
    await gateway.call('/api/any')
    return retried() !== undefined
  })
  const { traceId: id = '' } = retried() ?? {}
  await until(
    'both spans came',
    () => collector.spans().filter(span => span.traceId === id).length === 3
  )
  const spans = collector.spans().filter(span => span.traceId === id)
  t.match(only(spans, ({ isError }) => isError).attributes, {
    'url.full': `${dead}/api/any`,
    'error.type': 'upstream.refused'
  })
  const good = only(spans, ({ kind, isError }) => kind === 'SPAN_KIND_CLIENT' && !isError)
  const sent = backend.seen.map(({ headers }) => headers['traceparent'])
  t.ok(sent.includes(`00-${id}-${good.spanId}-01`))
})

/** The export of traces by whole gateways: clients that ask for too much, TLS, renewals. */
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import { type TestCollector, testCollector } from '../support/collector.ts'
import { cookieOf, testGateway } from '../support/gateway.ts'
import { signInAt } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`
const routes = { routes: { fine: { path: '/api/fine', access: 'public', answer: { json: {} } } } }

const exportTo = (url: string) => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: url,
  OTEL_BSP_SCHEDULE_DELAY: '20'
})

const requestIds = ({ requests }: TestCollector) =>
  requests.flatMap(({ spans }) => spans.map(span => span.attributes['console_gateway.request_id']))

t.test('the span of each request is exported once', async t => {
  const collector = await testCollector(t.after)
  const gateway = await testGateway(t.after, { routes }, exportTo(collector.url))
  const ids: Array<string | null> = []
  for (let count = 0; count < 20; count++) {
    ids.push((await gateway.call('/api/fine')).headers.get('x-request-id'))
  }
  await until('all spans came', () => requestIds(collector).length >= ids.length)
  t.same(requestIds(collector).toSorted(), ids.toSorted())
})

t.test('a client that has all of its requests sampled fills a bounded queue, no more', async t => {
  const collector = await testCollector(t.after)
  collector.answer = () => {}
  const gateway = await testGateway(
    t.after,
    { routes },
    {
      ...exportTo(collector.url),
      OTEL_BSP_MAX_QUEUE_SIZE: '50',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10'
    }
  )
  const count = 300
  const headers = { traceparent }
  for (let index = 0; index < count; index++) {
    t.equal((await gateway.call('/api/fine', { headers })).status, 200)
  }
  const metric = async (name: string) => {
    const lines = (await (await gateway.ops('/metrics')).text()).split('\n')
    const line = lines.find(each => each.startsWith(`console_gateway_trace_spans_${name} `))
    return Number(line?.split(' ')[1] ?? 0)
  }
  await until('each span waits, was dropped, or is in the batch that hangs', async () => {
    const queued = await metric('queued')
    const sent = count - queued - (await metric('dropped_total{reason="queue"}'))
    return queued > 40 && queued <= 50 && sent > 0 && sent <= 10
  })
})

t.test('a collector with TLS is believed by OTEL_EXPORTER_OTLP_CERTIFICATE alone', async t => {
  const authority = testAuthority(t.after)
  const collector = await testCollector(t.after, authority)
  const stranger = await testGateway(t.after, { routes }, exportTo(collector.url))
  await stranger.call('/api/fine')
  await stranger.logged(({ event }) => event === 'traces.failing')
  t.equal(collector.requests.length, 0)
  const gateway = await testGateway(
    t.after,
    { routes },
    { ...exportTo(collector.url), OTEL_EXPORTER_OTLP_CERTIFICATE: authority.certificate }
  )
  const id = (await gateway.call('/api/fine')).headers.get('x-request-id')
  await until('the span came', () => requestIds(collector).includes(id))
})

t.test('the renewal of a token has the context of the request that needs it', async t => {
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const token = { id: '1', token: seen.url, refresh: 'r', expiresIn: 1 }
    json(200, seen.url === '/login' ? token : { ...token, expiresIn: 3600 })(
      request,
      response,
      seen
    )
  })
  const { gateway: login, routes: upstreams } = signInAt(backend.url, {
    token: 'token',
    refreshToken: 'refresh',
    expires: { path: 'expiresIn' },
    refresh: {
      path: '/renew',
      body: { refresh: '{refreshToken}' },
      before: '60s',
      token: 'token'
    }
  })
  const gateway = await testGateway(t.after, {
    gateway: login,
    routes: {
      upstreams: { b: { ...upstreams.upstreams.b, credential: 'bearer' } },
      routes: { orders: { path: '/api/orders', upstream: 'b' } }
    }
  })
  const credentials = { username: 'ann', password: 'p' }
  const signedIn = await gateway.call('/api/auth/admin/login', { json: credentials })
  await gateway.call('/api/orders', { cookie: cookieOf(signedIn), headers: { traceparent } })
  await until('the token was renewed', () => backend.seen.some(({ url }) => url === '/renew'))
  const renewal = backend.seen.find(({ url }) => url === '/renew')
  t.equal(renewal?.headers['traceparent'], traceparent)
})

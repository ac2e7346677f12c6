/** Every call to a back-end stands in the story of the request that needed it, and has its trace. */
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import t, { type Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import type { FoundRequests } from '../../src/observability/failures.ts'
import { type Called, cookieOf, type TestGateway, testGateway } from '../support/gateway.ts'
import { exportTo, only, testCollector } from '../support/collector.ts'
import { misbehavingUpstream } from '../support/misbehaving.ts'
import { freePort, listen } from '../support/ports.ts'
import { signInAt } from '../support/sign-in.ts'
import { json as answer, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`

type Request = FoundRequests['requests'][number]

const idOf = ({ headers }: Pick<Called, 'headers'>) => headers.get('x-request-id') ?? ''

/** The request's story, once it has ended and so many attempts have. */
async function storyOf(gateway: TestGateway, id: string, attempts = 0): Promise<Request> {
  let story: Request | undefined
  await until('the request and its calls have ended', async () => {
    const response = await gateway.ops(`/ops/api/requests/${id}`)
    story = ((await response.json()) as FoundRequests).requests[0]
    const ended = story?.attempts?.filter(({ ms }) => ms !== undefined) ?? []
    return story !== undefined && ended.length >= attempts
  })
  if (story === undefined) throw new Error('not remembered')
  return story
}

async function consoleOf(t: Test, routes: object, upstreams: object): Promise<TestGateway> {
  return await testGateway(t.after, { routes: { upstreams, routes } })
}

t.test('a sign-in, the renewal of its token, and the sign-out', async t => {
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const refreshed = { token: 'second', expiresIn: 3600 }
    const first = { id: '1', token: 'first', refreshToken: 'r', expiresIn: 1 }
    answer(200, seen.url === '/login' ? first : refreshed)(request, response, seen)
  })
  const { gateway: login, routes } = signInAt(backend.url, {
    token: 'token',
    refreshToken: 'refreshToken',
    expires: { path: 'expiresIn' },
    refresh: {
      path: '/renew',
      body: { refresh: '{refreshToken}' },
      token: 'token'
    },
    logout: { path: '/logout', method: 'POST' }
  })
  const gateway = await testGateway(t.after, {
    gateway: login,
    routes: {
      upstreams: { b: { ...routes.upstreams.b, credential: 'bearer' } },
      routes: { orders: { path: '/api/orders', methods: ['POST'], upstream: 'b' } }
    }
  })
  const json = { username: 'ann', password: 'p' }
  const headers = { traceparent }
  const signedIn = await gateway.call('/api/auth/admin/login', { json, headers })
  t.equal(signedIn.status, 200, signedIn.text)
  const address = backend.url
  t.match(await storyOf(gateway, idOf(signedIn), 1), {
    user: 'ann',
    attempts: [{ purpose: 'sign-in', upstream: 'b', address, status: 200, ms: Number }]
  })
  const cookie = cookieOf(signedIn)
  const orders = await gateway.call('/api/orders', { cookie, headers, method: 'POST' })
  const { attempts = [] } = await storyOf(gateway, idOf(orders), 2)
  // The renewal runs beside the request as long as the old token is valid.
  for (const purpose of ['renewal', 'request']) {
    const attempt = attempts.find(each => each.purpose === purpose)
    t.match(attempt, { address, status: 200, ms: Number }, purpose)
  }
  const signedOut = await gateway.call('/api/account/logout', { method: 'POST', cookie, headers })
  t.match(await storyOf(gateway, idOf(signedOut), 1), {
    user: 'ann',
    session: String,
    sessionFrom: /cache|store/,
    attempts: [{ purpose: 'sign-out', address, status: 200, ms: Number }]
  })
  const contexts = backend.seen.map(seen => `${seen.url} ${String(seen.headers['traceparent'])}`)
  for (const path of ['/login', '/renew', '/logout']) {
    t.ok(contexts.includes(`${path} ${traceparent}`), `the context of ${path}`)
  }
})

t.test('a WebSocket’s handshake, which is over before the WebSocket is', async t => {
  const collector = await testCollector(t.after)
  exportTo(t.after, collector.url)
  const server = createServer()
  const connected = once(new WebSocketServer({ server }), 'connection')
  const url = `http://127.0.0.1:${await listen(server)}`
  t.after(() => server.close())
  const gateway = await consoleOf(
    t,
    { events: { path: '/api/events', access: 'public', upstream: 'backend', websocket: {} } },
    { backend: { url } }
  )
  const client = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/events?token=secret`, {
    headers: { traceparent, origin: gateway.url }
  })
  t.after(() => client.terminate())
  const [{ headers }] = (await once(client, 'upgrade')) as [{ headers: Record<string, string> }]
  const id = headers['x-request-id'] ?? ''
  t.match(await storyOf(gateway, id, 1), {
    status: 101,
    attempts: [{ purpose: 'websocket', address: url, status: 101, ms: Number }]
  })
  const [, { headers: sent }] = (await connected) as [unknown, IncomingMessage]
  const ofTrace = () => collector.spans().filter(span => span.traceId === traceId)
  await until('the spans came', () => ofTrace().length === 2)
  const span = only(ofTrace(), ({ kind }) => kind === 'SPAN_KIND_CLIENT')
  t.equal(sent['traceparent'], `00-${traceId}-${span.spanId}-01`)
  t.match(span.attributes, { 'url.full': `${url}/api/events`, 'http.response.status_code': 101 })
})

t.test('a retry at another address: both attempts with their outcome', async t => {
  const collector = await testCollector(t.after)
  exportTo(t.after, collector.url)
  const backend = await testUpstream(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const gateway = await consoleOf(
    t,
    { any: { path: '/api/any', access: 'public', upstream: 'backend' } },
    { backend: { url: [dead, backend.url] } }
  )
  let retried: Request | undefined
  // Requests that the other address answered at once are not kept.
  await until('an address refused', async () => {
    const id = idOf(await gateway.call('/api/any'))
    await gateway.logged(({ requestId }) => requestId === id)
    const response = await gateway.ops(`/ops/api/requests/${id}`)
    retried = ((await response.json()) as FoundRequests).requests[0]
    return retried !== undefined
  })
  t.match(retried, {
    status: 200,
    attempts: [
      { address: dead, failure: 'upstream.refused', reason: 'ECONNREFUSED', ms: Number },
      { address: backend.url, status: 200, ms: Number }
    ]
  })
  const refused = () =>
    collector.spans().find(({ attributes }) => attributes['error.type'] === 'upstream.refused')
  await until('its span came', () => refused() !== undefined)
  const ofTrace = () => collector.spans().filter(span => span.traceId === refused()?.traceId)
  await until('the others came', () => ofTrace().length === 3)
  t.equal(refused()?.attributes['url.full'], `${dead}/api/any`)
  const good = only(ofTrace(), ({ kind, isError }) => kind === 'SPAN_KIND_CLIENT' && !isError)
  const contexts = backend.seen.map(({ headers }) => headers['traceparent'])
  t.ok(contexts.includes(`00-${good.traceId}-${good.spanId}-01`), 'each attempt has its own')
})

t.test('a kept connection that breaks, and the attempt that follows', async t => {
  const backend = await misbehavingUpstream(t.after)
  const gateway = await consoleOf(
    t,
    { reset: { path: '/api/reset', access: 'public', upstream: 'backend' } },
    { backend: { url: backend.url } }
  )
  const failed = await gateway.call('/api/reset?bytes=0')
  const broken = { address: backend.url, failure: 'upstream.reset', ms: Number }
  t.match(await storyOf(gateway, idOf(failed), 2), {
    status: 502,
    code: 'upstream.reset',
    attempts: [broken, broken]
  })
})

t.test('time-outs, and a part that fails beside one that does not', async t => {
  const slow = await misbehavingUpstream(t.after)
  const backend = await testUpstream(t.after)
  const part = { upstream: 'slow', rewrite: '/silent', required: false, into: 'count' }
  const gateway = await consoleOf(
    t,
    {
      silent: { path: '/api/silent', access: 'public', upstream: 'slow' },
      parted: {
        path: '/api/parted',
        access: 'public',
        upstream: 'backend',
        parts: {
          count: part,
          names: { upstream: 'backend', rewrite: '/names', into: 'names' }
        }
      }
    },
    { backend: { url: backend.url }, slow: { url: slow.url, responseTimeout: '100ms' } }
  )
  const timedOut = await gateway.call('/api/silent')
  t.match(await storyOf(gateway, idOf(timedOut), 1), {
    status: 504,
    attempts: [{ upstream: 'slow', failure: 'upstream.timeout', ms: Number }]
  })
  const parted = await gateway.call('/api/parted')
  const { attempts = [], ...story } = await storyOf(gateway, idOf(parted), 3)
  t.match(story, { status: 200, missing: ['count'] })
  const attemptOf = (name?: string) => attempts.find(attempt => attempt.part === name)
  t.match(attemptOf(), { purpose: 'request', upstream: 'backend', status: 200 })
  t.match(attemptOf('names'), { purpose: 'part', upstream: 'backend', status: 200 })
  t.match(attemptOf('count'), { purpose: 'part', failure: 'upstream.timeout' })
})

t.test('the fixed response of a route whose back-end failed', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(503).end()
  })
  const gateway = await consoleOf(
    t,
    {
      fixed: {
        path: '/api/fixed',
        upstream: 'backend',
        fallback: { body: { data: [] }, status: 203 }
      }
    },
    { backend: { url: backend.url } }
  )
  const cookie = await gateway.signIn()
  const response = await gateway.call('/api/fixed', { cookie })
  t.match(response, { status: 203, text: '{"data":[]}' })
  t.match(await storyOf(gateway, idOf(response), 1), {
    isFallback: true,
    status: 203,
    attempts: [{ status: 503, ms: Number }]
  })
  const head = await gateway.call('/api/fixed', { cookie, method: 'HEAD' })
  t.match(head, { status: 203, text: '' })
  t.equal(head.headers.get('content-length'), '11')
})

/** Every call to a back-end stands in the story of the request that needed it, and has its trace. */
import t from 'tap'
import type { FoundRequests } from '../../src/observability/failures.ts'
import { type DecodedSpan, exportTo, only, testCollector } from '../support/collector.ts'
import { type Called, cookieOf, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'
import { dial, webSocketUpstream } from '../support/websocket.ts'

const collector = await testCollector(t.teardown)
exportTo(t.teardown, collector.url)
const misbehaving = await rawUpstream(t.teardown, (socket, head) => {
  if (head.includes('/reset ')) socket.resetAndDestroy()
})
const dead = `http://127.0.0.1:${await freePort()}`
const backend = await testUpstream(t.teardown, (request, response, seen) => {
  const bodies: Record<string, object> = {
    '/login': { id: '1', token: 'first', refreshToken: 'r', expiresIn: 1 },
    '/renew': { token: 'second', expiresIn: 3600 }
  }
  const status = seen.url === '/api/fixed' ? 503 : 200
  json(status, bodies[seen.url] ?? {})(request, response, seen)
})
const webSockets = await webSocketUpstream(t.teardown)

const gateway = await testGateway(t.teardown, {
  backend: { url: backend.url, credential: 'bearer' },
  source: {
    token: 'token',
    refreshToken: 'refreshToken',
    expires: { path: 'expiresIn' },
    refresh: { path: '/renew', body: { refresh: '{refreshToken}' }, token: 'token' },
    logout: { path: '/logout', method: 'POST' }
  },
  routes: {
    upstreams: {
      // The second one is asked first.
      pair: { url: [backend.url, dead] },
      sockets: { url: webSockets.url },
      breaks: { url: misbehaving.url },
      slow: { url: misbehaving.url, responseTimeout: '100ms' }
    },
    routes: {
      orders: { methods: ['POST'] },
      fixed: { access: 'public', fallback: { body: { data: [] } } },
      any: { access: 'public', upstream: 'pair' },
      events: { access: 'public', upstream: 'sockets', websocket: {} },
      reset: { access: 'public', upstream: 'breaks' },
      silent: { access: 'public', upstream: 'slow' },
      parted: {
        ...{ path: '/api/parted', access: 'public', upstream: 'b' },
        parts: {
          count: { upstream: 'slow', rewrite: '/silent', required: false, into: 'count' },
          names: { upstream: 'b', rewrite: '/names', into: 'names' }
        }
      }
    }
  }
})

type Request = FoundRequests['requests'][number]

const idOf = ({ headers }: Called) => headers.get('x-request-id') ?? ''

/** The request's story, once it has ended and so many attempts have. */
async function storyOf(id: string, attempts: number): Promise<Request> {
  let story: Request | undefined
  await until('the request and its calls have ended', async () => {
    story = (await gateway.opsJson(`requests?id=${id}`)).requests[0]
    const ended = story?.attempts?.filter(({ ms }) => ms !== undefined) ?? []
    return story !== undefined && ended.length >= attempts
  })
  return story as Request
}

/** A trace of a caller, and the spans of it that the gateway exports. */
function traceOf(n: number) {
  const id = `0af7651916cd43dd8448eb211c80310${n}`
  return {
    headers: { traceparent: `00-${id}-b7ad6b7169203331-01` },
    /** That of the call to this URL, once it is there. */
    spanOf: async (url: string) => {
      const fits = (span: DecodedSpan) => span.traceId === id && span.attributes['url.full'] === url
      await until('the span came', () => collector.spans().some(fits))
      return only(collector.spans(), fits)
    },
    /** What the back-end was told by the call that has this span. */
    contextOf: (span: DecodedSpan) => `00-${id}-${span.spanId}-01`
  }
}

t.test('a sign-in, the renewal of its token, and the sign-out', async t => {
  const { headers, spanOf, contextOf } = traceOf(1)
  const address = backend.url
  const json = { username: 'ann', password: 'p' }
  const signedIn = await gateway.call('/api/auth/admin/login', { json, headers })
  t.match(await storyOf(idOf(signedIn), 1), {
    user: 'ann',
    attempts: [{ purpose: 'sign-in', upstream: 'b', address, status: 200, ms: Number }]
  })
  const cookie = cookieOf(signedIn)
  const orders = await gateway.call('/api/orders', { cookie, headers, method: 'POST' })
  const { attempts = [] } = await storyOf(idOf(orders), 2)
  // The renewal runs beside the request as long as the old token is valid.
  for (const purpose of ['renewal', 'request']) {
    const attempt = attempts.find(each => each.purpose === purpose)
    t.match(attempt, { address, status: 200, ms: Number }, purpose)
  }
  const signedOut = await gateway.call('/api/account/logout', { method: 'POST', cookie, headers })
  t.match(await storyOf(idOf(signedOut), 1), {
    user: 'ann',
    session: String,
    sessionFrom: /cache|store/,
    attempts: [{ purpose: 'sign-out', address, status: 200, ms: Number }]
  })
  for (const path of ['/login', '/renew', '/logout']) {
    const span = await spanOf(address + path)
    const call = backend.seen.find(({ url }) => url === path)
    t.equal(call?.headers['traceparent'], contextOf(span), path)
  }
})

t.test('a WebSocket’s handshake, which is over before the WebSocket is', async t => {
  const { headers, spanOf, contextOf } = traceOf(2)
  const { url } = webSockets
  const from = gateway.log.length
  await dial(`${gateway.url}/api/events?token=secret`, { headers })
  const line = await gateway.logged(({ path }) => path === '/api/events', from)
  t.match(await storyOf(String(line['requestId']), 1), {
    status: 101,
    attempts: [{ purpose: 'websocket', address: url, status: 101, ms: Number }]
  })
  const span = await spanOf(`${url}/api/events`)
  t.equal(webSockets.requests[0]?.headers['traceparent'], contextOf(span))
  t.match(span, { kind: 'SPAN_KIND_CLIENT', attributes: { 'http.response.status_code': 101 } })
})

t.test('a retry at another address: both attempts with their outcome', async t => {
  const { headers, spanOf, contextOf } = traceOf(3)
  const refused = { address: dead, failure: 'upstream.refused', reason: 'ECONNREFUSED', ms: Number }
  const story = await storyOf(idOf(await gateway.call('/api/any', { headers })), 2)
  t.match(story, {
    status: 200,
    attempts: [refused, { address: backend.url, status: 200, ms: Number }]
  })
  t.match(await spanOf(`${dead}/api/any`), {
    isError: true,
    attributes: { 'error.type': 'upstream.refused' }
  })
  const good = await spanOf(`${backend.url}/api/any`)
  const contexts = backend.seen.map(seen => seen.headers['traceparent'])
  t.ok(contexts.includes(contextOf(good)), 'each attempt has its own')
})

t.test('a connection that breaks, a time-out and a fixed response', async t => {
  const broken = { address: misbehaving.url, failure: 'upstream.reset', ms: Number }
  const silent = { upstream: 'slow', failure: 'upstream.timeout', ms: Number }
  for (const [path, status, more, attempts] of [
    ['/api/reset', 502, { code: 'upstream.reset' }, [broken, broken]],
    ['/api/silent', 504, { code: 'upstream.timeout' }, [silent]],
    ['/api/fixed', 200, { isFallback: true }, [{ status: 503, ms: Number }]]
  ] as const) {
    const story = await storyOf(idOf(await gateway.call(path)), attempts.length)
    t.match(story, { status, ...more, attempts }, path)
  }
  t.match(await gateway.call('/api/fixed'), { status: 200, text: '{"data":[]}' })
  const head = await gateway.call('/api/fixed', { method: 'HEAD' })
  t.same([head.status, head.text, head.headers.get('content-length')], [200, '', '11'])
})

t.test('a part that fails beside one that does not', async t => {
  const { attempts = [], ...story } = await storyOf(idOf(await gateway.call('/api/parted')), 3)
  t.match(story, { status: 200, missing: ['count'] })
  const attemptOf = (name?: string) => attempts.find(({ part }) => part === name)
  t.match(attemptOf(), { purpose: 'request', upstream: 'b', status: 200 })
  t.match(attemptOf('names'), { purpose: 'part', upstream: 'b', status: 200 })
  t.match(attemptOf('count'), { purpose: 'part', failure: 'upstream.timeout' })
})

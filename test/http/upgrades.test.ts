/**
 * Upgrades: none is served but a WebSocket's where a route takes it, none hangs, none is told to a
 * back-end.
 */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { webSocketUpstream } from '../support/websocket.ts'
import { answersBegun, refuses, serves, wireRoutes } from '../support/wire.ts'

const sockets = await webSocketUpstream(t.after)
const more = {
  shaped: { path: '/api/shaped', access: 'public', upstream: 'backend', shape: 'unwrapped' },
  chat: { path: '/api/chat', access: 'public', upstream: 'sockets', websocket: {} }
}
const backend = await testUpstream(t.after, json(200, { data: 1 }))
const routes = wireRoutes(backend.url, {}, more)
// More than a socket takes at once.
const bytes = 8 * 1024 * 1024
const gateway = await testGateway(t.after, {
  gateway: { console: { root: 'pages' } },
  code: { 'pages/app.js': 'a'.repeat(bytes) },
  routes: {
    ...routes,
    upstreams: { ...routes.upstreams, sockets: { url: sockets.url } },
    shapes: { unwrapped: [{ unwrap: 'data' }] }
  }
})
const cookie = await gateway.signIn()
const signedIn = `Cookie: ${cookie}`
const wire = { gateway, backend, cookie, signedIn }
const webSocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13'
]

const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk']
const whole = { enough: () => false }

/** One ordinary answer, the end of the connection, and no back-end that is told of the offer. */
async function ignores(t: Test, title: string, bytes: string, statuses: readonly number[]) {
  const answer = await raw(gateway.url, bytes, whole)
  t.ok(statuses.includes(answer.status), `${title}: ${answer.status}`)
  t.ok(answer.closed, `${title}: the connection ends`)
  t.equal(answersBegun(answer.whole), 1, `${title}: one answer`)
  for (const { headers } of backend.seen.splice(0)) {
    t.notOk(headers['upgrade'] ?? headers['http2-settings'], title)
    t.notMatch(headers['connection'], /upgrade/i, title)
  }
}

t.test('WebSocket handshakes are ignored where no route takes them', async t => {
  for (const path of ['/api/notices', '/api/things/ws', '/api/open/ws', '/api/nothing', '/']) {
    for (const origin of [[], ['Origin: https://evil.example'], [`Origin: ${gateway.url}`]]) {
      const bytes = request(`GET ${path}`, [signedIn, ...webSocket, ...origin])
      await ignores(t, path, bytes, [200, 404])
    }
  }
  await ignores(t, 'no session', request('GET /api/notices', webSocket), [401])
  await serves(t, wire)
})

t.test('so are bogus handshakes, and offers of other protocols', async t => {
  const keys = ['Sec-WebSocket-Key: twice', 'Sec-WebSocket-Key: short']
  const bogus: string[][] = [
    ['Connection: Upgrade', 'Upgrade: websocket'],
    ['Connection: upgrade, keep-alive', 'Upgrade: WEBSOCKET'],
    ['Upgrade: websocket'],
    ['Connection: keep-alive', 'Upgrade: websocket'],
    ['Connection: close', 'Upgrade: h2c'],
    ...['', 'a, b, c', 'TLS/1.2', 'h2'].map(offer => ['Connection: Upgrade', `Upgrade: ${offer}`]),
    [...webSocket.slice(0, 3), 'Sec-WebSocket-Version: 99'],
    ...keys.map(key => [...webSocket, key]),
    [...webSocket, `Sec-WebSocket-Protocol: ${'a,'.repeat(1000)}`],
    [...webSocket, 'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=999'],
    h2c,
    [...h2c, 'Upgrade: TLS/1.2']
  ]
  for (const fields of bogus) {
    const title = fields.join(' | ').slice(0, 80)
    await ignores(t, title, request('GET /api/notices', [signedIn, ...fields]), [200])
  }
  for (const [path, status] of [
    ['/api/shaped', 200],
    ['/api/session', 200],
    ['/nowhere', 404]
  ] as const) {
    for (const fields of [webSocket, h2c]) {
      await ignores(t, path, request(`GET ${path}`, [signedIn, ...fields]), [status])
    }
  }
  for (const [framing, body] of [
    ['Content-Length: 2', '{}'],
    ['Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n']
  ] as const) {
    const fields = [signedIn, 'Content-Type: application/json', framing, ...h2c]
    const answer = await raw(gateway.url, request('POST /api/things/1', fields, body), whole)
    t.equal(answer.status, 200, framing)
    t.equal(String(backend.seen.at(-1)?.body), '{}')
  }
  for (const method of ['POST', 'PUT', 'HEAD', 'DELETE']) {
    const fields = [signedIn, ...webSocket, 'Content-Length: 0']
    await ignores(t, method, request(`${method} /api/things/1`, fields), [200])
  }
  await ignores(t, 'OPTIONS', request('OPTIONS /api/things/1', [signedIn, ...webSocket]), [405])
  await serves(t, wire)
})

t.test('case 3: the operators’ listener ignores them too', async t => {
  for (const fields of [webSocket, webSocket.slice(0, 2), h2c]) {
    for (const [path, status] of [
      ['/healthz', 200],
      ['/readyz', 200],
      ['/metrics', 401],
      ['/nowhere', 401]
    ] as const) {
      const asked = request(`GET ${path}`, fields).replace('gateway.test', '127.0.0.1')
      const answer = await raw(gateway.opsUrl, asked, whole)
      t.match(answer, { status, closed: true }, path)
    }
  }
})

t.test('case 3: an offer beside WebSocket is ignored where a route takes WebSocket', async t => {
  for (const list of ['h2c, websocket', 'WebSocket, h2c']) {
    const fields = ['Connection: Upgrade', `Upgrade: ${list}`, ...webSocket.slice(2)]
    const { status, head } = await raw(gateway.url, request('GET /api/chat', fields), {
      enough: text => text.includes('\r\n\r\n')
    })
    t.equal(status, 101, list)
    t.match(head, /^upgrade: websocket\r?$/im)
  }
  t.not((await raw(gateway.url, request('GET /api/chat', h2c), whole)).status, 101)
})

t.test('a long file comes whole to curl --http2 and Java clients, which offer h2c', async t => {
  const answer = await raw(gateway.url, request('GET /app.js', h2c), whole)
  t.same([answer.status, answer.body.length], [200, bytes])
})

t.test('odd targets of an upgrade are refused', async t => {
  const targets = [
    ...['/api/notices#x', 'http://gateway.test/api/notices', '*', '//', '/\\', '?'],
    ...['/api/notices/..;/..;/internal', '/api/things/../../internal', '/api/things/%zz'],
    ...['/api/things/%2e%2e/internal', `/${'a'.repeat(9000)}`]
  ]
  for (const target of targets) {
    await refuses(t, wire, target.slice(0, 60), request(`GET ${target}`, [signedIn, ...webSocket]))
  }
  await serves(t, wire)
})

t.test('what follows an upgrade is not read', async t => {
  const hidden = request('GET /api/things/hidden', [signedIn])
  for (const [fields, status] of [
    [webSocket, 400],
    [h2c, 200]
  ] as const) {
    const first = request('GET /api/notices', [signedIn, ...fields])
    for (const behind of [hidden, first, 'no request at all']) {
      await ignores(t, behind.slice(0, 20), first + behind, [status])
    }
  }
  const behind = await raw(
    gateway.url,
    request('GET /api/notices', [signedIn]) +
      request('GET /api/notices', [signedIn, ...webSocket]) +
      hidden,
    whole
  )
  t.ok(behind.closed)
  t.ok(answersBegun(behind.whole) <= 1, 'at most the answer of the request before it')
  t.notOk(backend.seen.some(({ url }) => url.includes('hidden')))
  await serves(t, wire)
})

t.end()

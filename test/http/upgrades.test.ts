/** Upgrades: none is served but a WebSocket's where a route takes it, none hangs, none is told. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { webSocketUpstream } from '../support/websocket.ts'
import { answersBegun, refuses, serves, wireRoutes } from '../support/wire.ts'

const sockets = await webSocketUpstream(t.teardown)
const more = {
  shaped: { path: '/api/shaped', access: 'public', upstream: 'backend', shape: 'unwrapped' },
  chat: { path: '/api/chat', access: 'public', upstream: 'sockets', websocket: {} }
}
const backend = await testUpstream(t.teardown, json(200, { data: 1 }))
const routes = wireRoutes(backend.url, {}, more)
const gateway = await testGateway(t.teardown, {
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
async function ignores(t: Test, line: string, fields: string[], status: number, behind = '') {
  const title = [line, ...fields.filter(each => each !== signedIn), behind].join(' | ').slice(0, 99)
  const answer = await raw(gateway.url, request(line, fields, behind), whole)
  t.match(answer, { status, closed: true }, title)
  t.equal(answersBegun(answer.whole), 1, `${title}: one answer`)
  const bodies = []
  for (const { headers, body } of backend.seen.splice(0)) {
    t.notOk(headers['upgrade'] ?? headers['http2-settings'], title)
    t.notMatch(headers['connection'], /upgrade/i, title)
    bodies.push(String(body))
  }
  return bodies
}

/** What they get that offer something else than plain HTTP. */
const anywhere: Readonly<Record<string, number>> = {
  'GET /api/things/ws': 200,
  'GET /api/open/ws': 200,
  'GET /api/shaped': 200,
  'GET /api/session': 200,
  'GET /api/nothing': 404,
  'GET /': 404,
  'POST /api/things/1': 200,
  'HEAD /api/things/1': 200,
  'OPTIONS /api/things/1': 405
}
const keys = ['Sec-WebSocket-Key: twice', 'Sec-WebSocket-Key: short']
const offers: readonly string[][] = [
  [...webSocket, 'Origin: https://evil.example'],
  ['Connection: upgrade, keep-alive', 'Upgrade: WEBSOCKET'],
  ['Upgrade: websocket'],
  ['Connection: keep-alive', 'Upgrade: websocket'],
  ...['', 'a, b, c', 'TLS/1.2', 'h2'].map(offer => ['Connection: Upgrade', `Upgrade: ${offer}`]),
  [...webSocket.slice(0, 3), 'Sec-WebSocket-Version: 99'],
  ...keys.map(key => [...webSocket, key]),
  [...webSocket, `Sec-WebSocket-Protocol: ${'a,'.repeat(1000)}`],
  [...webSocket, 'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=999'],
  [...h2c, 'Upgrade: TLS/1.2']
]

t.test('what is offered is ignored where no route takes it', async t => {
  for (const [line, status] of Object.entries(anywhere)) {
    for (const offer of [webSocket, h2c]) {
      await ignores(t, line, [signedIn, 'Content-Length: 0', ...offer], status)
    }
  }
  for (const offer of offers) await ignores(t, 'GET /api/notices', [signedIn, ...offer], 200)
  await ignores(t, 'GET /api/notices', webSocket, 401)
  for (const [framing, body] of [
    ['Content-Length: 2', '{}'],
    ['Transfer-Encoding: chunked', '2\r\n{}\r\n0\r\n\r\n']
  ] as const) {
    const fields = [signedIn, 'Content-Type: application/json', framing, ...h2c]
    t.same(await ignores(t, 'POST /api/things/1', fields, 200, body), ['{}'])
  }
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
  // More than a socket takes at once.
  const bytes = 8 * 1024 * 1024
  const { url } = await testGateway(t.after, {
    gateway: { console: { root: 'pages' } },
    code: { 'pages/app.js': 'a'.repeat(bytes) }
  })
  const answer = await raw(url, request('GET /app.js', h2c), whole)
  t.same([answer.status, answer.body.length], [200, bytes])
})

t.test('odd targets of an upgrade are refused', async t => {
  const targets = [
    ...['/api/notices#x', 'http://gateway.test/api/notices', '*', '/', '//', '/\\', '?'],
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
  const first = request('GET /api/notices', [signedIn, ...webSocket])
  for (const [offer, status] of [
    [webSocket, 400],
    [h2c, 200]
  ] as const) {
    for (const behind of [hidden, first, 'no request at all']) {
      await ignores(t, 'GET /api/notices', [signedIn, ...offer], status, behind)
    }
  }
  const before = request('GET /api/notices', [signedIn])
  const answer = await raw(gateway.url, before + first + hidden, whole)
  t.ok(answer.closed)
  t.ok(answersBegun(answer.whole) <= 1, 'at most the answer of the request before it')
  t.notOk(backend.seen.some(({ url }) => url.includes('hidden')))
  await serves(t, wire)
})

/** Offers of other protocols (`Upgrade`) are ignored, but for WebSocket where a route takes it. */
import t from 'tap'
import { raw, request } from '../support/raw.ts'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { webSocketUpstream } from '../support/websocket.ts'

const h2c = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAEAAEAA']
const handshake = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13'
]
/** wire/upgrades tries more of them, by all methods. */
const offers: Readonly<Record<string, string[]>> = {
  'curl --http2, Java': h2c,
  'two fields': ['Connection: Upgrade', 'Upgrade: h2c', 'Upgrade: TLS/1.2'],
  'not named by Connection': ['Connection: close', 'Upgrade: h2c'],
  'WebSocket': handshake,
  'WebSocket, by a proxy’s fixed line': handshake.slice(0, 2)
}

const backend = await testUpstream(t.after, json(200, { data: 1 }))
const sockets = await webSocketUpstream(t.after)
const gateway = await testGateway(t.after, {
  routes: {
    upstreams: { backend: { url: backend.url }, sockets: { url: sockets.url } },
    shapes: { unwrapped: [{ unwrap: 'data' }] },
    routes: {
      raw: { path: '/raw', access: 'public', methods: ['GET', 'POST'], upstream: 'backend' },
      shaped: { path: '/shaped', access: 'public', upstream: 'backend', shape: 'unwrapped' },
      chat: { path: '/chat', access: 'public', upstream: 'sockets', websocket: {} }
    }
  }
})
const signedIn = `Cookie: ${await gateway.signIn()}`
const ask = async (line: string, fields: string[], body = '') =>
  await raw(gateway.url, request(line, fields, body), { enough: () => false })

for (const [name, fields] of Object.entries(offers)) {
  t.test(`case 3: the offer is ignored on every route: ${name}`, async t => {
    for (const [line, status] of [
      ['GET /raw', 200],
      ['GET /shaped', 200],
      ['GET /api/session', 200],
      ['GET /nowhere', 404]
    ] as const) {
      const answer = await ask(line, [signedIn, ...fields])
      t.same([answer.status, answer.closed], [status, true], line)
    }
    t.equal((await ask('GET /api/session', fields)).status, 401, 'without a session')
    for (const body of [['Content-Length: 2'], ['Transfer-Encoding: chunked']]) {
      const bytes = body[0] === 'Content-Length: 2' ? '{}' : '2\r\n{}\r\n0\r\n\r\n'
      const type = 'Content-Type: application/json'
      const posted = await ask('POST /raw', [type, ...body, ...fields], bytes)
      t.equal(posted.status, 200, `POST, ${body[0]}`)
      t.equal(String(backend.seen.at(-1)?.body), '{}')
    }
    for (const { headers } of backend.seen.splice(0)) {
      t.notOk(headers['upgrade'] ?? headers['http2-settings'], 'no back-end is told')
      t.notMatch(headers['connection'], /upgrade|http2/i)
    }
  })

  t.test(`case 3: also by the operators’ listener: ${name}`, async t => {
    for (const [path, status] of [
      ['/healthz', 200],
      ['/readyz', 200],
      ['/metrics', 401],
      ['/nowhere', 401]
    ] as const) {
      const asked = request(`GET ${path}`, fields).replace('gateway.test', '127.0.0.1')
      const answer = await raw(gateway.opsUrl, asked, { enough: () => false })
      t.equal(answer.status, status, path)
      t.ok(answer.closed)
    }
  })
}

t.test('case 3: an offer beside WebSocket is ignored where a route takes WebSocket', async t => {
  for (const list of ['h2c, websocket', 'WebSocket, h2c']) {
    const fields = [...handshake.slice(0, 1), `Upgrade: ${list}`, ...handshake.slice(2)]
    const answer = await raw(gateway.url, request('GET /chat', fields), {
      enough: text => text.includes('\r\n\r\n')
    })
    t.equal(answer.status, 101, list)
    t.match(answer.head, /^upgrade: websocket\r?$/im)
  }
  t.not((await ask('GET /chat', h2c)).status, 101)
})

t.end()

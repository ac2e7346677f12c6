/** WebSocket through the gateway, by real sockets. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { stringify } from 'yaml'
import { configFolder, testGateway } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { beginMaintenance } from '../support/ops.ts'
import { freePort, listen } from '../support/ports.ts'
import { raw, request } from '../support/raw.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'
import { closed, dial, frame, message, refusal, webSocketUpstream } from '../support/websocket.ts'
import { open } from './support.ts'

const handshake = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
]

const routes = (url: string, websocket: object = {}, more: object = {}) => ({
  upstreams: { b: { url } },
  routes: {
    chat: { path: '/api/chat', upstream: 'b', rewrite: '/chat', websocket },
    admin: { path: '/api/admin', upstream: 'b', access: { roles: ['admin'] }, websocket },
    open: { path: '/api/open', upstream: 'b', access: 'public', websocket },
    plain: { path: '/api/plain', upstream: 'b' }
  },
  ...more
})

/** A gateway before an echo, and alice's cookie. */
async function opened(t: Test) {
  const backend = await webSocketUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  return { backend, gateway, cookie: await gateway.signIn() }
}

t.test('a signed-in user’s messages pass both ways, and so does the close', async t => {
  const { backend, gateway, cookie } = await opened(t)
  const client = await dial(`${gateway.url}/api/chat?room=1`, { cookie, protocols: ['a', 'b'] })
  t.equal(client.protocol, 'a')
  const [asked] = backend.requests
  t.equal(asked?.url, '/chat?room=1')
  t.equal(asked?.headers['x-user-name'], 'alice')
  t.equal(asked?.headers.cookie, undefined, 'the session’s cookie stays here')
  client.send('hello')
  t.equal(await message(client), 'hello')
  client.close(4000, 'bye')
  t.same(await closed(client), { code: 4000, reason: 'bye' })
  await until('the upstream’s is closed too', () => backend.open().length === 0)
  t.match(await gateway.logged(line => line['event'] === 'websocket.closed'), {
    route: 'chat',
    by: 'client',
    toUpstream: 1,
    toClient: 1,
    user: 'alice'
  })
  t.match(await gateway.logged(line => line['route'] === 'chat' && line['status'] === 101), {
    user: 'alice'
  })
})

t.test('an upgrade gets the headers that its upstream always gets', async t => {
  const backend = await webSocketUpstream(t.after)
  const fixed = { headers: { 'x-tenant': 'acme', 'x-api-key': '${API_KEY}' } }
  const config = { ...routes(backend.url), upstreams: { b: { url: backend.url, ...fixed } } }
  const gateway = await testGateway(t.after, { routes: config }, { API_KEY: 'of the gateway' })
  const headers = { 'x-api-key': 'of the client', 'x-tenant': 'evil', 'x-other': 'passes' }
  const client = await dial(`${gateway.url}/api/open`, { headers })
  t.match(backend.requests[0]?.headers, {
    'x-api-key': 'of the gateway',
    'x-tenant': 'acme',
    'x-other': 'passes'
  })
  client.close()
  await closed(client)
})

t.test('refusals are ordinary responses', async t => {
  const { backend, gateway } = await opened(t)
  const none = await refusal(`${gateway.url}/api/chat`)
  t.match(none, { status: 401, headers: { connection: 'close' }, body: /session.none/ })
  const cookie = await gateway.signIn('bob')
  t.match(await refusal(`${gateway.url}/api/admin`, { cookie }), { status: 403, body: /forbidden/ })
  t.match(await refusal(`${gateway.url}/api/none`, { cookie }), { status: 404 })
  const headers = { origin: 'https://evil.example' }
  t.match(await refusal(`${gateway.url}/api/chat`, { cookie, headers }), {
    status: 403,
    body: /origin.refused/
  })
  t.equal(backend.requests.length, 0)
  const own = await dial(`${gateway.url}/api/chat`, { cookie, headers: { origin: gateway.url } })
  t.equal((await gateway.call('/api/chat', { cookie })).status, 200, 'beside ordinary GETs')
  own.close()
  await closed(own)
})

t.test('an upgrade behind a request that has its answer still to be sent is refused', async t => {
  const { backend, gateway } = await opened(t)
  const upgrade = request('GET /api/open', handshake)
  for (const [first, status] of [
    [request('GET /', ['expect: something']), 417],
    [request('GET /api/none'), 404]
  ] as const) {
    const answer = await raw(gateway.url, first + upgrade, { enough: () => false })
    t.match(answer, { status, closed: true })
  }
  t.equal(backend.requests.length, 0)
})

t.test('a client that is gone before the hooks have let it pass has no connection', async t => {
  const redis = await testRedis(t.after)
  const backend = await webSocketUpstream(t.after)
  const files = {
    gateway: {
      redis: { url: redis.url, commandTimeout: '5s' },
      session: { secrets: ['${SESSION_SECRET}'] }
    },
    limits: { limits: { all: { by: 'address', max: 50, window: '1m' } } },
    routes: routes(backend.url)
  }
  const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
  const gateway = await testGateway(t.after, files, environment)
  const inFlight = async (count: number) =>
    await until(`${count} in flight`, async () => {
      const metrics = await (await gateway.ops('/metrics')).text()
      return metrics.includes(`\nconsole_gateway_requests_in_flight ${count}\n`)
    })
  redis.signal('SIGSTOP')
  const { socket } = await open(t.after, gateway.url)
  socket.write(request('GET /api/open', handshake))
  await inFlight(1)
  socket.resetAndDestroy()
  await inFlight(0)
  redis.signal('SIGCONT')
  const client = await dial(`${gateway.url}/api/open`)
  t.equal(backend.requests.length, 1, 'the back-end was asked for the second only')
  client.close()
  await closed(client)
})

t.test('4401 within 1 s of a sign-out', async t => {
  const { backend, gateway, cookie } = await opened(t)
  const client = await dial(`${gateway.url}/api/chat`, { cookie })
  const upstream = backend.open()[0]
  const told = closed(client)
  const toldUpstream = upstream && closed(upstream)
  await gateway.call('/api/account/logout', { method: 'POST', cookie })
  const startedAt = performance.now()
  t.same(await told, { code: 4401, reason: 'session.revoked' })
  t.comment(`${performance.now() - startedAt} ms`)
  t.match(await toldUpstream, { code: 1001 })
})

t.test('what the upstream answers instead of a 101 is an ordinary response', async t => {
  const plain = await testUpstream(t.after, json(404, { message: 'no such room' }))
  const gateway = await testGateway(t.after, { routes: routes(plain.url) })
  const cookie = await gateway.signIn()
  t.match(await refusal(`${gateway.url}/api/chat`, { cookie }), {
    status: 404,
    body: /no such room/,
    headers: { connection: 'close' }
  })
  await plain.close()
  t.match(await refusal(`${gateway.url}/api/chat`, { cookie }), {
    status: 502,
    body: /upstream.refused/
  })
})

t.test(
  'an answer to an upgrade that no client could read is 502, and the next is served',
  async t => {
    const length = 'Content-Length: 2'
    const heads = [
      ['HTTP/1.1 600 Odd', length],
      ['HTTP/1.1 999 Odd', length],
      ['HTTP/1.1 099 Odd', length],
      ['HTTP/1.1 000 Odd', 'Content-Length: 9'],
      ['HTTP/1.1 403 Forbidden', 'Transfer-Encoding: gzip']
    ]
    let head: readonly string[] = []
    const backend = await rawUpstream(t.after, socket =>
      socket.end([...head, 'Content-Type: application/json', '', '{}'].join('\r\n'))
    )
    const gateway = await testGateway(t.after, { routes: routes(backend.url) })
    const cookie = await gateway.signIn()
    for (head of heads) {
      const refused = await refusal(`${gateway.url}/api/chat`, { cookie })
      t.match(refused, { status: 502, body: /upstream.invalid/ }, head.join(', '))
    }
    head = ['HTTP/1.1 599 Odd', length]
    t.match(await refusal(`${gateway.url}/api/chat`, { cookie }), { status: 599, body: '{}' })
  }
)

t.test('a 101 that proves nothing, or agrees to what nobody offered, is 502', async t => {
  const accept = (key: string) =>
    createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  let answer: (key: string) => string[] = () => []
  const server = createServer()
  server.on('upgrade', (request, socket) => {
    socket.on('error', () => {})
    const lines = answer(String(request.headers['sec-websocket-key']))
    socket.write(['HTTP/1.1 101 Switching Protocols', ...lines, '', ''].join('\r\n'))
  })
  const port = await listen(server)
  t.after(() => server.close().closeAllConnections())
  const gateway = await testGateway(t.after, { routes: routes(`http://127.0.0.1:${port}`) })
  const cookie = await gateway.signIn()
  const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
  const cases: ReadonlyArray<readonly [string, (key: string) => string[]]> = [
    ['no accept', () => upgrade],
    ['a wrong accept', () => [...upgrade, 'Sec-WebSocket-Accept: wrong']],
    [
      'another protocol',
      key => ['Connection: Upgrade', 'Upgrade: h2c', `Sec-WebSocket-Accept: ${accept(key)}`]
    ],
    [
      'a subprotocol',
      key => [...upgrade, `Sec-WebSocket-Accept: ${accept(key)}`, 'Sec-WebSocket-Protocol: x']
    ],
    [
      'an extension',
      key => [...upgrade, `Sec-WebSocket-Accept: ${accept(key)}`, 'Sec-WebSocket-Extensions: x']
    ]
  ]
  for (const [title, lines] of cases) {
    answer = lines
    const refused = await refusal(`${gateway.url}/api/chat`, { cookie })
    t.match(refused, { status: 502, body: /upstream.invalid/ }, title)
  }
  answer = key => [...upgrade, `Sec-WebSocket-Accept: ${accept(key)}`]
  const client = await dial(`${gateway.url}/api/chat`, { cookie })
  client.terminate()
})

t.test('a handshake that is not one is 400, and never reaches the upstream', async t => {
  const { backend, gateway } = await opened(t)
  const cookie = `Cookie: ${await gateway.signIn()}`
  const bad: ReadonlyArray<readonly [string, string[], string?]> = [
    ['no key', handshake.slice(0, 3)],
    ['a short key', [...handshake.slice(0, 3), 'Sec-WebSocket-Key: short']],
    ['two keys', [...handshake, 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']],
    [
      'an old version',
      [...handshake.slice(0, 2), 'Sec-WebSocket-Version: 8', ...handshake.slice(3)]
    ],
    ['a body', [...handshake, 'Content-Length: 5'], 'hello'],
    ['frames behind it', handshake, 'frames'],
    ['a subprotocol twice', [...handshake, 'Sec-WebSocket-Protocol: a, a']]
  ]
  for (const [title, headers, behind = ''] of bad) {
    const asked = request('GET /api/chat', [cookie, ...headers], behind)
    const answered = await raw(gateway.url, asked, { enough: () => false })
    t.same([answered.status, answered.closed], [400, true], title)
  }
  const posted = request('POST /api/chat', [cookie, ...handshake])
  t.equal((await raw(gateway.url, posted, { enough: () => false })).status, 405)
  t.equal(backend.requests.length, 0)
})

t.test('a client that does not wait for the 101 is refused', async t => {
  const silent = createServer()
  silent.on('upgrade', (_request, socket) => socket.on('error', () => {}))
  const port = await listen(silent)
  t.after(() => silent.close().closeAllConnections())
  const gateway = await testGateway(t.after, { routes: routes(`http://127.0.0.1:${port}`) })
  const cookie = await gateway.signIn()
  const line = await open(t.after, gateway.url)
  const asked = once(silent, 'upgrade')
  line.socket.write(request('GET /api/chat', [`Cookie: ${cookie}`, ...handshake]))
  await asked
  line.socket.write(frame({ opcode: 1, payload: 'early', isMasked: true }))
  await line.closed
  t.match(line.received(), /^HTTP\/1.1 400 /)
  t.match(line.received(), /request.malformed/)
})

t.test('caps by user and by upstream; a place is free again when a connection is over', async t => {
  const backend = await webSocketUpstream(t.after)
  const config = routes(backend.url, {}, { upstreams: { b: { url: backend.url, connections: 3 } } })
  const gateway = await testGateway(t.after, { routes: config })
  const url = `${gateway.url}/api/chat`
  const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
  const first = await dial(url, { cookie: alice })
  for (let count = 1; count < 10; count++) await dial(url, { cookie: alice })
  const over = { status: 429, body: /limit.exceeded/, headers: { 'retry-after': '1' } }
  t.match(await refusal(url, { cookie: alice }), over)
  const anyone = await dial(`${gateway.url}/api/open`)
  t.equal(anyone.readyState, anyone.OPEN, 'on another route a user has places of its own')
  for (let count = 11; count < 15; count++) await dial(url, { cookie: bob })
  const full = { status: 503, body: /overloaded/, headers: { 'retry-after': '1' } }
  t.match(await refusal(url, { cookie: bob }), full)
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, 'console_gateway_limit_refused_total{limit="websocket.perUser"} 1\n')
  t.match(metrics, 'console_gateway_shed_total{reason="streams"} 1\n')
  t.equal((await gateway.call('/api/plain', { cookie: bob })).status, 200, 'the rest works')
  first.terminate()
  await until('a place is free', async () => {
    const again = await dial(url, { cookie: alice }).catch(() => undefined)
    return again?.readyState === WebSocket.OPEN
  })
})

t.test('messages of all lengths, fragments, control frames and close codes', async t => {
  const { backend, gateway, cookie } = await opened(t)
  const url = `${gateway.url}/api/chat`
  const client = await dial(url, { cookie, compress: true })
  t.equal(client.extensions, '', 'nothing is compressed')
  for (const length of [0, 1, 125, 126, 127, 65_535, 65_536, 200_000]) {
    const text = 'aé☃𝄞'.repeat(length).slice(0, length).toWellFormed()
    client.send(text)
    t.equal(await message(client), text, `${length}`)
    const bytes = Buffer.alloc(length, length % 251)
    client.send(bytes)
    const [data] = (await once(client, 'message')) as [Buffer]
    t.ok(bytes.equals(data))
  }
  client.send('one ', { fin: false })
  client.ping('between')
  client.send('two ', { fin: false })
  client.send('three', { fin: true })
  const pong = once(client, 'pong')
  t.equal(await message(client), 'one two three')
  t.equal(String(((await pong) as [Buffer])[0]), 'between')
  for (const code of [1000, 1001, 1003, 1008, 3000, 4999]) {
    const each = await dial(url, { cookie })
    const [upstream] = backend.open().slice(-1)
    const seen = upstream && closed(upstream)
    each.close(code, 'why ☃')
    t.same(await closed(each), { code, reason: 'why ☃' })
    t.same(await seen, { code, reason: 'why ☃' })
    const other = await dial(url, { cookie })
    const told = closed(other)
    backend.open().at(-1)?.close(code, 'bye')
    t.same(await told, { code, reason: 'bye' }, 'and from the upstream')
  }
  client.close()
  await closed(client)
})

t.test('case 9: a subprotocol as long as a token passes, up to the header limit', async t => {
  const { backend, gateway } = await opened(t)
  const token = `eyJ.${'x'.repeat(1500)}`
  const client = await dial(`${gateway.url}/api/open`, { protocols: [token, 'v2'] })
  t.equal(client.protocol, token)
  t.equal(backend.requests[0]?.headers['sec-websocket-protocol'], `${token},v2`)
  client.terminate()
})

t.test('case 22: who is lost is told by the log, and the other side gets to know', async t => {
  const { backend, gateway } = await opened(t)
  const lines: object[] = []
  const logged = async (by: string) =>
    await gateway.logged(line => line['event'] === 'websocket.closed' && line['by'] === by)
  const first = await dial(`${gateway.url}/api/open`)
  const [seen] = backend.open()
  const told = seen && closed(seen)
  first.terminate()
  t.same(await told, { code: 1001, reason: '' }, 'the client has vanished')
  lines.push(await logged('client'))
  const second = await dial(`${gateway.url}/api/open`)
  const toldSecond = closed(second)
  for (const upstream of backend.open()) upstream.terminate()
  t.same(await toldSecond, { code: 1011, reason: '' }, 'the upstream has')
  lines.push(await logged('upstream'))
  t.ok(lines.every(line => !('closeCode' in line)))
})

t.test('a message that is too large ends both sides with 1009, whoever sent it', async t => {
  const backend = await webSocketUpstream(t.after, {}, socket => {
    socket.on('message', data => {
      if (String(data as Buffer) === 'much') socket.send(Buffer.alloc(5000))
    })
  })
  const gateway = await testGateway(t.after, {
    routes: routes(backend.url, { maxMessage: '4KiB' })
  })
  for (const sent of ['much', Buffer.alloc(5000)]) {
    const client = await dial(`${gateway.url}/api/open`)
    const [upstream] = backend.open()
    const toldUpstream = upstream && closed(upstream)
    const told = closed(client)
    client.send(sent)
    t.equal((await told).code, 1009)
    t.equal((await toldUpstream)?.code, 1009)
  }
  t.match(await gateway.logged(line => line['closeCode'] === 1009), { by: 'upstream' })
})

t.test('what an upstream sends together with its 101 arrives', async t => {
  const backend = await webSocketUpstream(t.after, {}, socket => {
    for (const word of ['one', 'two', 'three']) socket.send(word)
  })
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  const client = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/open`)
  const received: string[] = []
  client.on('message', data => received.push(String(data as Buffer)))
  await until('all three', () => received.length === 3)
  t.same(received, ['one', 'two', 'three'])
  client.terminate()
})

t.test('an address that refuses is passed over, and the path is sent as it came', async t => {
  const backend = await webSocketUpstream(t.after)
  const urls = [`http://127.0.0.1:${await freePort()}`, backend.url]
  const upstreams = { b: { urls } }
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams,
      routes: { any: { path: '/api/any/*', upstream: 'b', access: 'public', websocket: {} } }
    }
  })
  const target = "/api/any/a^b|c/'d'?q='e'&f=[g]"
  for (let count = 1; count <= 4; count++) {
    const client = await dial(gateway.url, { path: target })
    t.equal(backend.requests.length, count)
    t.equal(backend.requests.at(-1)?.url, target)
    client.terminate()
  }
})

t.test('a reader that is slow gets everything; one that takes nothing is cut', async t => {
  const piece = Buffer.alloc(64 * 1024)
  const total = 400
  let sent = 0
  const backend = await webSocketUpstream(t.after, {}, socket => {
    const onSent = (error?: Error | null) => {
      if (!error) sent++
    }
    for (let count = 0; count < total; count++) socket.send(piece, onSent)
  })
  const gateway = await testGateway(t.after, {
    gateway: { server: { idleTimeout: '2s' } },
    routes: routes(backend.url)
  })
  const slow = await dial(`${gateway.url}/api/open`)
  let received = 0
  slow.on('message', () => received++)
  slow.pause()
  await until('the upstream is held back', () => sent > 0)
  for (let count = 0; count < 8; count++) {
    slow.pause()
    setTimeout(() => slow.resume(), 100)
    await once(slow, 'message')
  }
  slow.resume()
  await until('all of it', () => received === total)
  t.equal(sent, total)
  slow.terminate()
  sent = 0
  const still = await dial(`${gateway.url}/api/open`)
  still.pause()
  await gateway.logged(line => line['event'] === 'websocket.closed' && line['by'] === 'gateway')
  t.ok(sent < total, `${sent} of ${total} were sent`)
  still.terminate()
})

t.test('text that is not UTF-8 ends the connection with 1007', async t => {
  const { gateway, cookie } = await opened(t)
  const client = await dial(`${gateway.url}/api/chat`, { cookie })
  const socket = Reflect.get(client, '_socket') as Socket
  const told = closed(client)
  socket.write(frame({ opcode: 1, payload: Buffer.from([0xff, 0xfe]), isMasked: true }))
  t.equal((await told).code, 1007)
})

t.test('a connection lives across a reload, and ends with 1012 ten minutes later', async t => {
  const { backend, gateway, cookie } = await opened(t)
  const client = await dial(`${gateway.url}/api/chat`, { cookie })
  const told = closed(client)
  const more = routes(backend.url, {}, { aliases: { '/api/other-chat': '/api/chat' } })
  writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(more))
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  await gateway.reload('operator')
  const second = await dial(`${gateway.url}/api/other-chat`, { cookie })
  client.send('still here')
  t.equal(await message(client), 'still here')
  mock.timers.tick(10 * 60_000)
  t.match(await told, { code: 1012, reason: 'gateway.stopping' })
  second.send('a newer one goes on')
  t.equal(await message(second), 'a newer one goes on')
})

t.test('new config counts for connections that are older', async t => {
  const { backend, gateway } = await opened(t)
  const cookie = await gateway.signIn('bob')
  const [first, second] = [
    await dial(`${gateway.url}/api/chat`, { cookie }),
    await dial(`${gateway.url}/api/chat`, { cookie })
  ]
  const told = closed(first)
  const write = (content: object) =>
    writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(content))
  const narrowed = routes(backend.url)
  const chat = { ...narrowed.routes.chat, access: { roles: ['admin'] } }
  const toldSecond = closed(second)
  write({ ...narrowed, routes: { ...narrowed.routes, chat } })
  await gateway.reload('operator')
  t.same(await told, { code: 4403, reason: 'route.forbidden' })
  t.same(await toldSecond, { code: 4403, reason: 'route.forbidden' })
  write(routes(backend.url))
  await gateway.reload('operator')
  const third = closed(await dial(`${gateway.url}/api/chat`, { cookie }))
  await beginMaintenance(gateway.opsUrl, { routes: ['chat'] })
  t.same(await third, { code: 1013, reason: 'maintenance' })
  t.match(await refusal(`${gateway.url}/api/chat`, { cookie }), { status: 503 })
})

t.test(
  'a stop tells all with 1012, spread over the drain, and waits for none too long',
  async t => {
    const backend = await webSocketUpstream(t.after)
    const gateway = await testGateway(t.after, {
      gateway: { drain: { grace: '2s' } },
      routes: routes(backend.url)
    })
    const cookies = [await gateway.signIn(), await gateway.signIn('bob')]
    const times: number[] = []
    const codes: number[] = []
    for (let index = 0; index < 20; index++) {
      const cookie = cookies[index % 2] ?? ''
      const client = await dial(`${gateway.url}/api/chat`, { cookie })
      client.on('close', code => {
        codes.push(code)
        times.push(performance.now())
      })
    }
    // It never answers a close frame.
    const rude = await open(t.after, gateway.url)
    rude.socket.write(request('GET /api/open', handshake))
    await rude.until(text => text.startsWith('HTTP/1.1 101'))
    const startedAt = performance.now()
    const stoodStillMs = standstill()
    await gateway.stop({ noticeMs: 0 })
    const ms = performance.now() - startedAt
    await until('all clients know', () => codes.length === 20)
    const pausesMs = stoodStillMs()
    t.ok(ms < 4000 + pausesMs, `stopped after ${Math.round(ms)} ms`)
    t.same([...new Set(codes)], [1012])
    const spreadMs = (times.at(-1) ?? 0) - (times[0] ?? 0)
    t.ok(spreadMs + pausesMs > 800, `spread over ${Math.round(spreadMs)} ms`)
  }
)

t.test('300 upgrades that are reset leave nothing behind', async t => {
  const { backend, gateway, cookie } = await opened(t)
  const asked = request('GET /api/chat', [`Cookie: ${cookie}`, ...handshake])
  for (let round = 0; round < 300; round++) {
    const line = await open(t.after, gateway.url)
    const kind = round % 4
    if (kind === 0) line.socket.write(asked, () => line.socket.resetAndDestroy())
    if (kind === 1) line.socket.write(asked.repeat(3), () => line.socket.resetAndDestroy())
    if (kind === 2) line.socket.write(request('GET /api/plain', [`Cookie: ${cookie}`]) + asked)
    if (kind === 3) line.socket.end(asked)
    if (kind >= 2) line.socket.setTimeout(50, () => line.socket.resetAndDestroy())
    await line.closed
  }
  await until('no connection is left at the upstream', () => backend.open().length === 0)
  const clients: WebSocket[] = []
  await until('all places are free again', async () => {
    clients.push(await dial(`${gateway.url}/api/chat`, { cookie }))
    return clients.length === 10
  })
  t.equal(backend.open().length, 10)
  const metrics = await (await gateway.ops('/metrics')).text()
  t.match(metrics, /console_gateway_streams\{route="chat"\} 10\n/)
  t.match(metrics, /console_gateway_requests_in_flight 0\n/)
})

t.test('a sign-out at one replica ends connections at another, with 4401', async t => {
  const redis = await testRedis(t.after)
  const backend = await webSocketUpstream(t.after)
  const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
  const replica = async () =>
    await testGateway(
      t.after,
      await configFolder({
        gateway: {
          redis: { url: redis.url, commandTimeout: '30s' },
          session: { secrets: ['${SESSION_SECRET}'] }
        },
        routes: routes(backend.url)
      }),
      environment
    )
  const [here, there] = await Promise.all([replica(), replica()])
  for (const each of [here, there]) {
    await until('ready', async () => (await each.ops('/readyz')).status === 200)
  }
  const cookie = await there.signIn()
  const client = await dial(`${here.url}/api/chat`, { cookie })
  const told = closed(client)
  await there.call('/api/account/logout', { method: 'POST', cookie })
  const startedAt = performance.now()
  t.same(await told, { code: 4401, reason: 'session.revoked' })
  t.comment(`${Math.round(performance.now() - startedAt)} ms after the sign-out was answered`)
})

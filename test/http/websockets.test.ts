/** WebSocket through the gateway: bound to its session, relayed as it is, and bounded. */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { configFolder, type Files, testGateway } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { freePort } from '../support/ports.ts'
import { beginMaintenance } from '../support/ops.ts'
import { open, raw, request } from '../support/raw.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { rawUpstream } from '../support/upstream.ts'
import {
  closed,
  dial,
  type DialOptions,
  message,
  refusal,
  webSocketUpstream
} from '../support/websocket.ts'

const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
const version = 'Sec-WebSocket-Version: 13'
const handshake = [...upgrade, version, key]

const both = (each: object) => [each, each]
const flood = { pieces: 400, sent: 0 }

/** What the back-end does by the path that it is asked for; it echoes at others. */
const onConnection = (socket: WebSocket, { url }: IncomingMessage) => {
  if (url === '/flood') {
    const onSent = (error?: Error | null) => {
      if (!error) flood.sent++
    }
    for (let n = 0; n < flood.pieces; n++) socket.send(Buffer.alloc(64 * 1024), onSent)
  } else if (url === '/small') socket.on('message', () => socket.send(Buffer.alloc(5000)))
  else socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
}
const backend = await webSocketUpstream(t.teardown, {}, onConnection)

/** What the back-end of `/api/odd` answers to an upgrade with this key; nothing is silence. */
let oddAnswer: (key: string) => readonly string[] = () => []
const odd = await rawUpstream(t.teardown, (socket, head) => {
  const lines = oddAnswer(/^sec-websocket-key: (.*)\r$/im.exec(head)?.[1] ?? '')
  if (lines.length === 0) return
  socket.write([...lines, 'Content-Type: application/json', '', ''].join('\r\n'))
  if (!lines[0]?.includes(' 101 ')) socket.end('{"message":"no room"}')
})

const deadPort = await freePort()
const socket = { websocket: {} }
const anyone = { ...socket, access: 'public' }
const routes = (chat: object = {}) => ({
  upstreams: {
    few: { url: backend.url, connections: 3 },
    two: { url: [`http://127.0.0.1:${deadPort}`, backend.url] },
    odd: { url: odd.url },
    dead: { url: `http://127.0.0.1:${deadPort}` }
  },
  routes: {
    chat: { ...socket, rewrite: '/chat', ...chat },
    admin: { ...socket, access: { roles: ['admin'] } },
    open: { ...anyone, path: '/api/open/*', rewrite: '/*' },
    small: { ...anyone, rewrite: '/small', websocket: { maxMessage: '4KiB' } },
    few: { ...socket, upstream: 'few' },
    fewer: { ...anyone, upstream: 'few' },
    any: { ...anyone, path: '/api/any/*', upstream: 'two' },
    odd: { ...anyone, upstream: 'odd' },
    dead: { ...anyone, upstream: 'dead' },
    plain: {}
  }
})
const headers = { 'x-tenant': 'acme', 'x-api-key': '${API_KEY}' }
const files = { backend: { url: backend.url, headers }, routes: routes() }
const environment = { API_KEY: 'of the gateway' }
const start = async (more: Files = {}) =>
  await testGateway(t.after, { ...files, ...more }, environment)
const shared = await start({ gateway: { server: { idleTimeout: '2s' } } })
const cookie = await shared.signIn()
const bobs = await shared.signIn('bob')
const signedIn = `Cookie: ${cookie}`

/** A client that is gone with its test, and the other end of its connection at the back-end. */
async function connect(t: Test, path: string, options: DialOptions = {}, { url } = shared) {
  const accepted = backend.next()
  const client = await dial(url + path, options)
  t.after(() => client.terminate())
  return { client, upstream: await accepted }
}

const ended = (by: string, from = 0) =>
  shared.logged(line => line['event'] === 'websocket.closed' && line['by'] === by, from)

t.test('a signed-in user’s messages pass both ways, and so does the close', async t => {
  // Case 9: a subprotocol as long as a token.
  const token = `eyJ.${'x'.repeat(1500)}`
  const { client, upstream } = await connect(t, '/api/chat?room=1', {
    cookie,
    protocols: [token, 'v2'],
    headers: { 'x-api-key': 'of the client', 'x-tenant': 'evil', 'x-other': 'passes' }
  })
  t.equal(client.protocol, token)
  t.match(backend.requests[0], {
    url: '/chat?room=1',
    headers: {
      'x-user-name': 'alice',
      'cookie': undefined,
      'sec-websocket-protocol': `${token},v2`,
      'x-api-key': 'of the gateway',
      'x-tenant': 'acme',
      'x-other': 'passes'
    }
  })
  client.send('hello')
  t.equal(await message(client), 'hello')
  const toldUpstream = closed(upstream)
  client.close(4000, 'bye')
  t.same([await closed(client), await toldUpstream], both({ code: 4000, reason: 'bye' }))
  const told = { route: 'chat', toUpstream: 1, toClient: 1, user: 'alice' }
  t.match(await ended('client'), told)
  const line = await shared.logged(({ route, status }) => route === 'chat' && status === 101)
  t.equal(line['user'], 'alice')
})

t.test('refusals are ordinary responses', async t => {
  const asked = backend.requests.length
  const headers = { origin: 'https://evil.example' }
  const cases: ReadonlyArray<readonly [path: string, DialOptions, status: number, code: string]> = [
    ['/api/chat', {}, 401, 'session.none'],
    ['/api/admin', { cookie: bobs }, 403, 'route.forbidden'],
    ['/api/none', { cookie }, 404, 'route.unknown'],
    ['/api/chat', { cookie, headers }, 403, 'origin.refused'],
    ['/api/open/echo', { headers }, 403, 'origin.refused'],
    ['/api/dead', {}, 502, 'upstream.refused']
  ]
  for (const [path, options, status, code] of cases) {
    const refused = await refusal(shared.url + path, options)
    t.match(refused, { status, body: code, headers: { connection: 'close' } }, code)
  }
  t.equal(backend.requests.length, asked)
  await connect(t, '/api/chat', { cookie, headers: { origin: shared.url } })
  t.equal((await shared.call('/api/chat', { cookie })).status, 200, 'beside ordinary GETs')
})

t.test('a handshake that is not one is 400, and never reaches the upstream', async t => {
  const asked = backend.requests.length
  const bad: ReadonlyArray<readonly [title: string, fields: string[], behind?: string]> = [
    ['no key', [...upgrade, version]],
    ['a short key', [...upgrade, version, 'Sec-WebSocket-Key: short']],
    ['two keys', [...handshake, key]],
    ['an old version', [...upgrade, 'Sec-WebSocket-Version: 8', key]],
    ['a body', [...handshake, 'Content-Length: 5'], 'hello'],
    ['frames behind it', handshake, 'frames'],
    ['a subprotocol twice', [...handshake, 'Sec-WebSocket-Protocol: a, a']]
  ]
  const ask = (bytes: string) => raw(shared.url, bytes, { enough: () => false })
  for (const [title, fields, behind] of bad) {
    const bytes = request('GET /api/chat', [signedIn, ...fields], behind)
    t.match(await ask(bytes), { status: 400, closed: true }, title)
  }
  t.equal((await ask(request('POST /api/chat', [signedIn, ...handshake]))).status, 405)
  for (const [first, status] of [
    [request('GET /', ['expect: something']), 417],
    [request('GET /api/none'), 404]
  ] as const) {
    const answer = await ask(first + request('GET /api/chat', [signedIn, ...handshake]))
    t.match(answer, { status, closed: true }, 'nor behind a request that is still to be answered')
  }
  t.equal(backend.requests.length, asked)
})

t.test('a client that does not wait for the 101 is refused', async t => {
  oddAnswer = () => []
  const asked = odd.requests()
  const line = await open(t.after, shared.url)
  line.socket.write(request('GET /api/odd', handshake))
  await until('the back-end has it', () => odd.requests() > asked)
  // A text, masked by zeros.
  line.socket.write(Buffer.from('\x81\x85\0\0\0\0early', 'latin1'))
  await line.closed
  t.match(line.received(), /^HTTP\/1.1 400 [^]*request.malformed/)
})

t.test('what the upstream answers instead of a sound 101 is an ordinary response', async t => {
  const length = 'Content-Length: 21'
  const proof = (key: string) => {
    const text = `${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
    return `Sec-WebSocket-Accept: ${createHash('sha1').update(text).digest('base64')}`
  }
  const switching = (...lines: string[]) => ['HTTP/1.1 101 Switching Protocols', ...lines]
  const invalid = 'upstream.invalid'
  type Case = readonly [answer: typeof oddAnswer, status: number, body: string]
  const cases: readonly Case[] = [
    [() => ['HTTP/1.1 404 Not Found', length], 404, 'no room'],
    [() => ['HTTP/1.1 600 Odd', length], 502, invalid],
    [() => ['HTTP/1.1 099 Odd', length], 502, invalid],
    [() => ['HTTP/1.1 403 Forbidden', 'Transfer-Encoding: gzip'], 502, invalid],
    [() => switching(...upgrade), 502, invalid],
    [() => switching(...upgrade, 'Sec-WebSocket-Accept: wrong'), 502, invalid],
    [key => switching('Connection: Upgrade', 'Upgrade: h2c', proof(key)), 502, invalid],
    [key => switching(...upgrade, proof(key), 'Sec-WebSocket-Protocol: x'), 502, invalid],
    [key => switching(...upgrade, proof(key), 'Sec-WebSocket-Extensions: x'), 502, invalid]
  ]
  for (const [answer, status, body] of cases) {
    oddAnswer = answer
    const refused = await refusal(`${shared.url}/api/odd`)
    t.match(refused, { status, body, headers: { connection: 'close' } }, answer('').join(', '))
  }
  oddAnswer = key => switching(...upgrade, proof(key))
  const client = await dial(`${shared.url}/api/odd`)
  client.terminate()
})

t.test('an address that refuses is passed over, and the path is sent as it came', async t => {
  const target = "/api/any/a^b|c/'d'?q='e'&f=[g]"
  for (let count = 1; count <= 4; count++) {
    await connect(t, '', { path: target })
    t.equal(backend.requests.at(-1)?.url, target)
  }
})

t.test('caps by user and by upstream; a place is free again when a connection is over', async t => {
  const url = `${shared.url}/api/few`
  const { client: first } = await connect(t, '/api/few', { cookie })
  for (let count = 1; count < 10; count++) await connect(t, '/api/few', { cookie })
  const over = { status: 429, body: /limit.exceeded/, headers: { 'retry-after': '1' } }
  t.match(await refusal(url, { cookie }), over)
  await connect(t, '/api/fewer', { cookie })
  for (let count = 11; count < 15; count++) await connect(t, '/api/few', { cookie: bobs })
  const full = { status: 503, body: /overloaded/, headers: { 'retry-after': '1' } }
  t.match(await refusal(url, { cookie: bobs }), full)
  const metrics = await shared.metrics()
  t.match(metrics, 'console_gateway_limit_refused_total{limit="websocket.perUser"} 1\n')
  t.match(metrics, 'console_gateway_shed_total{reason="streams"} 1\n')
  t.equal((await shared.call('/api/plain', { cookie: bobs })).status, 200, 'the rest works')
  first.terminate()
  await until('a place is free', async () => {
    await connect(t, '/api/few', { cookie })
    return true
  })
})

t.test('messages of all lengths, fragments and control frames pass', async t => {
  const { client } = await connect(t, '/api/chat', { cookie, compress: true })
  t.equal(client.extensions, '', 'nothing is compressed')
  for (const length of [0, 1, 126, 65_536, 200_000]) {
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
})

/** Who ends it and how, and what both sides get to know. */
const ends = [
  ...[1000, 1003, 3000, 4999].flatMap(code =>
    (['client', 'upstream'] as const).map(by => [by, code, code, code] as const)
  ),
  ['client', undefined, 1006, 1001] as const,
  ['upstream', undefined, 1011, 1006] as const
]
t.test('case 22: a close passes both ways, and who is lost is told to the other', async t => {
  for (const [by, code, toClient, toUpstream] of ends) {
    const from = shared.log.length
    const each = await connect(t, '/api/open/x')
    const told = Promise.all([closed(each.client), closed(each.upstream)])
    if (code === undefined) each[by].terminate()
    else each[by].close(code, 'why ☃')
    const reason = code === undefined ? '' : 'why ☃'
    const expected = [toClient, toUpstream].map(code => ({ code, reason }))
    t.same(await told, expected, `${code} by the ${by}`)
    t.notOk('closeCode' in (await ended(by, from)), 'no code of the gateway')
  }
})

t.test('a message that is too large ends both sides with 1009, whoever sent it', async t => {
  for (const sent of ['little', Buffer.alloc(5000)]) {
    const { client, upstream } = await connect(t, '/api/small')
    const told = Promise.all([closed(client), closed(upstream)])
    client.send(sent)
    t.match(await told, [{ code: 1009 }, { code: 1009 }])
  }
  t.match(await shared.logged(line => line['closeCode'] === 1009), { by: 'upstream' })
})

t.test('a reader that is slow gets everything; one that takes nothing is cut', async t => {
  const { client: slow } = await connect(t, '/api/open/flood')
  let received = 0
  slow.on('message', () => received++)
  slow.pause()
  await until('the upstream is held back', () => flood.sent > 0)
  for (let count = 0; count < 8; count++) {
    slow.pause()
    setTimeout(() => slow.resume(), 100)
    await once(slow, 'message')
  }
  slow.resume()
  await until('all of it', () => received === flood.pieces)
  t.equal(flood.sent, flood.pieces)
  flood.sent = 0
  const { client: still } = await connect(t, '/api/open/flood')
  still.pause()
  await ended('gateway')
  t.ok(flood.sent < flood.pieces, `${flood.sent} of ${flood.pieces} were sent`)
})

t.test('300 upgrades that are reset leave nothing behind', async t => {
  const asked = request('GET /api/chat', [signedIn, ...handshake])
  const quiet = (socket: Socket) => socket.setTimeout(50, () => socket.resetAndDestroy())
  const ways = [
    (socket: Socket) => socket.write(asked, () => socket.resetAndDestroy()),
    (socket: Socket) => socket.write(asked.repeat(3), () => socket.resetAndDestroy()),
    (socket: Socket) => quiet(socket).write(request('GET /api/plain', [signedIn]) + asked),
    (socket: Socket) => quiet(socket).end(asked)
  ]
  for (let round = 0; round < 75; round++) {
    for (const leave of ways) {
      const line = await open(t.after, shared.url)
      leave(line.socket)
      await line.closed
    }
  }
  await until('no connection is left at the upstream', () => backend.open().length === 0)
  let count = 0
  await until('all places are free again', async () => {
    await connect(t, '/api/chat', { cookie })
    return ++count === 10
  })
  const metrics = await shared.metrics()
  t.match(metrics, /console_gateway_streams\{route="chat"\} 10\n/)
  t.match(metrics, /console_gateway_requests_in_flight 0\n/)
})

t.test('new config counts for connections that are older, and they end in the end', async t => {
  const gateway = await start()
  const cookie = await gateway.signIn('bob')
  const chat = async () => (await connect(t, '/api/chat', { cookie }, gateway)).client
  const reloadWith = async (chat: object = {}, more = '') => {
    const other = await configFolder({ ...files, routes: routes(chat) })
    const text = readFileSync(join(other, 'routes.yaml'), 'utf8')
    writeFileSync(join(gateway.folder, 'routes.yaml'), text + more)
    await gateway.reload('operator')
  }
  const first = Promise.all([closed(await chat()), closed(await chat())])
  await reloadWith({ access: { roles: ['admin'] } })
  t.same(await first, both({ code: 4403, reason: 'route.forbidden' }))
  const third = closed((await connect(t, '/api/few', { cookie }, gateway)).client)
  await beginMaintenance(gateway.opsUrl, { routes: ['few'] })
  t.same(await third, { code: 1013, reason: 'maintenance' })
  t.match(await refusal(`${gateway.url}/api/few`, { cookie }), { status: 503 })
  await reloadWith()
  const older = await chat()
  const told = closed(older)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  await reloadWith({}, 'aliases: { /api/other-chat: /api/chat }\n')
  const { client: newer } = await connect(t, '/api/other-chat', { cookie }, gateway)
  older.send('still here')
  t.equal(await message(older), 'still here')
  mock.timers.tick(10 * 60_000)
  t.match(await told, { code: 1012, reason: 'gateway.stopping' })
  newer.send('a newer one goes on')
  t.equal(await message(newer), 'a newer one goes on')
})

t.test('a stop tells all with 1012, over the drain, and waits for none too long', async t => {
  const gateway = await start({ gateway: { drain: { grace: '2s' } } })
  const cookies = [await gateway.signIn(), await gateway.signIn('bob')]
  const ends: Array<{ readonly code: number; readonly at: number }> = []
  for (let index = 0; index < 20; index++) {
    const cookie = cookies[index % 2] ?? ''
    const { client } = await connect(t, '/api/chat', { cookie }, gateway)
    client.on('close', code => ends.push({ code, at: performance.now() }))
  }
  // It never answers a close frame.
  const rude = await open(t.after, gateway.url)
  rude.socket.write(request('GET /api/open/x', handshake))
  await rude.until(text => text.startsWith('HTTP/1.1 101'))
  const startedAt = performance.now()
  const stoodStillMs = standstill()
  await gateway.stop({ noticeMs: 0 })
  const ms = performance.now() - startedAt
  await until('all clients know', () => ends.length === 20)
  const pausesMs = stoodStillMs()
  t.ok(ms < 4000 + pausesMs, `stopped after ${Math.round(ms)} ms`)
  t.same([...new Set(ends.map(({ code }) => code))], [1012])
  const spreadMs = (ends.at(-1)?.at ?? 0) - (ends[0]?.at ?? 0)
  t.ok(spreadMs + pausesMs > 800, `spread over ${Math.round(spreadMs)} ms`)
})

t.test('a sign-out ends connections with 4401, here and at another replica', async t => {
  const { url: redis } = await testRedis(t.after)
  const [here, there] = [await start({ redis }), await start({ redis })]
  await Promise.all([here.ready(), there.ready()])
  const cookie = await there.signIn()
  const ends = []
  for (const at of [here, there]) ends.push(await connect(t, '/api/chat', { cookie }, at))
  const clients = Promise.all(ends.map(({ client }) => closed(client)))
  const upstreams = Promise.all(ends.map(({ upstream }) => closed(upstream)))
  const stoodStillMs = standstill()
  await there.call('/api/account/logout', { method: 'POST', cookie })
  const startedAt = performance.now()
  t.same(await clients, both({ code: 4401, reason: 'session.revoked' }))
  const ms = performance.now() - startedAt
  t.ok(ms < 1000 + stoodStillMs(), `within ${Math.round(ms)} ms`)
  t.match(await upstreams, both({ code: 1001 }))
})

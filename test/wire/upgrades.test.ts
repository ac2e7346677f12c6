/** Upgrades: none is served, none hangs, none is told to a back-end. */
import t from 'tap'
import { once } from 'node:events'
import { connect } from 'node:net'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { json } from '../support/upstream.ts'
import { answersBegun, open, openWire, refuses, serves } from './support.ts'

const wire = await openWire(
  t.after,
  {
    limits: { inFlightPerUser: 8, limits: { generous: { by: 'user', max: 100_000, window: '1m' } } }
  },
  {
    answer: (question, response, seen) => {
      if (!seen.url.includes('held')) json(200, { ok: 1 })(question, response, seen)
    }
  }
)
const { gateway, backend, signedIn } = wire
const webSocket = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13'
]

t.test(
  'WebSocket handshakes are refused, with and without a session, whatever their origin',
  async t => {
    for (const path of ['/api/notices', '/api/things/ws', '/api/open/ws', '/api/nothing', '/']) {
      for (const fields of [
        [],
        [signedIn],
        [signedIn, 'Origin: https://evil.example'],
        [signedIn, `Origin: ${gateway.url}`]
      ]) {
        await refuses(
          t,
          wire,
          `${path} ${fields.length}`,
          request(`GET ${path}`, [...webSocket, ...fields]),
          { statuses: [400] }
        )
      }
    }
    await serves(t, wire)
  }
)

t.test('bogus handshakes are refused too', async t => {
  const bogus: string[][] = [
    ['Connection: Upgrade', 'Upgrade: websocket'],
    ['Connection: upgrade, keep-alive', 'Upgrade: WEBSOCKET'],
    ['Upgrade: websocket'],
    ['Connection: Upgrade', 'Upgrade: '],
    ['Connection: Upgrade', 'Upgrade: a, b, c'],
    [...webSocket.slice(0, 3), 'Sec-WebSocket-Version: 99'],
    [...webSocket, 'Sec-WebSocket-Key: twice'],
    [...webSocket.slice(0, 2), 'Sec-WebSocket-Key: short', 'Sec-WebSocket-Version: 13'],
    [...webSocket, `Sec-WebSocket-Protocol: ${'a,'.repeat(1000)}`],
    [...webSocket, 'Sec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=999'],
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'],
    ['Connection: Upgrade', 'Upgrade: TLS/1.2'],
    ['Connection: Upgrade', 'Upgrade: h2']
  ]
  for (const fields of bogus) {
    await refuses(
      t,
      wire,
      fields.join(' | ').slice(0, 80),
      request('GET /api/notices', [signedIn, ...fields]),
      { statuses: [400] }
    )
  }
  for (const method of ['POST', 'PUT', 'HEAD', 'OPTIONS', 'DELETE']) {
    const begun = backend.begun()
    const answer = await raw(
      gateway.url,
      request(`${method} /api/things/1`, [signedIn, ...webSocket, 'Content-Length: 0']),
      { enough: () => false }
    )
    t.same([answer.status, answer.closed, backend.begun()], [400, true, begun], method)
  }
  await serves(t, wire)
})

t.test(
  'an Upgrade that Connection does not name is refused as well, so that no back-end takes it',
  async t => {
    for (const fields of [
      ['Connection: keep-alive', 'Upgrade: websocket'],
      ['Connection: close', 'Upgrade: h2c']
    ]) {
      await refuses(t, wire, fields.join(), request('GET /api/notices', [signedIn, ...fields]), {
        statuses: [400]
      })
    }
    const named = await raw(
      gateway.url,
      request('GET /api/notices', [signedIn, 'Connection: Upgrade'])
    )
    t.equal(named.status, 200, 'without an Upgrade there is nothing to refuse')
    t.notOk(backend.seen.at(-1)?.headers['upgrade'])
    t.notMatch(backend.seen.at(-1)?.headers['connection'], /upgrade/i)
  }
)

t.test('odd targets of an upgrade are refused', async t => {
  for (const target of [
    '/api/notices#x',
    '/api/notices?',
    'http://gateway.test/api/notices',
    '*',
    '/',
    '//',
    '/\\',
    '/api/notices/..;/..;/internal',
    '/api/things/../../internal',
    '/api/things/%2e%2e/internal',
    `/${'a'.repeat(9000)}`,
    '?',
    '/api/things/%zz'
  ]) {
    await refuses(t, wire, target.slice(0, 60), request(`GET ${target}`, [signedIn, ...webSocket]))
  }
  await serves(t, wire)
})

t.test('what follows a refused upgrade is not read', async t => {
  const hidden = request('GET /api/things/hidden', [signedIn])
  for (const fields of [
    webSocket,
    ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__']
  ]) {
    await refuses(
      t,
      wire,
      'a request behind it',
      request('GET /api/notices', [signedIn, ...fields], hidden),
      { statuses: [400] }
    )
    await refuses(
      t,
      wire,
      'two upgrades',
      request('GET /api/notices', [signedIn, ...fields]).repeat(2),
      { statuses: [400] }
    )
    await refuses(
      t,
      wire,
      'frames behind it',
      Buffer.concat([
        Buffer.from(request('GET /api/notices', [signedIn, ...fields])),
        Buffer.from([0x81, 0x85, 1, 2, 3, 4, 105, 103, 111, 104, 110, 0xff, 0xff])
      ]),
      { statuses: [400] }
    )
  }
  const behind = await raw(
    gateway.url,
    request('GET /api/notices', [signedIn]) +
      request('GET /api/notices', [signedIn, ...webSocket]) +
      hidden,
    { enough: () => false }
  )
  t.ok(behind.closed)
  t.ok(answersBegun(behind.whole) <= 1, 'at most the answer of the request before it')
  t.notOk(backend.seen.some(({ url }) => url.includes('hidden')))
  await serves(t, wire)
})

t.test('upgrades that are pipelined, reset or left half-open leave nothing behind', async t => {
  for (let round = 0; round < 30; round++) {
    const line = await open(t.after, gateway.url)
    // One user may have eight requests at once: these would fill them if one was kept.
    if (round % 3 === 0) {
      line.socket.write(
        request('GET /api/things/held', [signedIn]).repeat(3) +
          request('GET /api/notices', [signedIn, ...webSocket])
      )
    }
    if (round % 3 === 1) {
      line.socket.write(request('GET /api/notices', [signedIn, ...webSocket]).repeat(5), () =>
        line.socket.resetAndDestroy()
      )
    }
    if (round % 3 === 2) line.socket.write(request('GET /api/notices', [signedIn, ...webSocket]))
    await line.closed
  }
  await until('no request runs', async () => {
    const metrics = await (await gateway.ops('/metrics')).text()
    return metrics.includes('console_gateway_requests_in_flight 0')
  })
  for (let turn = 0; turn < 9; turn++) await serves(t, wire)
})

t.test('a client that keeps its side open after the refusal is cut off', async t => {
  const { hostname, port } = new URL(gateway.url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  socket.on('error', () => {})
  socket.resume().write(request('GET /api/notices', webSocket))
  const closed = new Promise(resolve => socket.once('close', resolve))
  await once(socket, 'end')
  const sending = setInterval(() => socket.write('still here'), 20)
  await closed
  clearInterval(sending)
  await serves(t, wire)
})

t.end()

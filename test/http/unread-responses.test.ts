/** Clients that ask on and read nothing, and what is refused behind a request: no connection stays. */
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import { testGateway } from '../support/gateway.ts'
import { request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { wireRoutes } from '../support/wire.ts'

const stallMs = 400
const largeBytes = 30_000_000
const held: Array<() => void> = []
const backend = await testUpstream(t.teardown, ({ url = '' }, response) => {
  if (url.endsWith('/held')) held.push(() => response.end('late'))
  else response.end('x'.repeat(url.endsWith('/large') ? largeBytes : 12 * 1024))
})
const routes = wireRoutes(backend.url)
const server = { idleTimeout: `${stallMs}ms` }
const { certificate, key } = testAuthority(t.teardown)
const plain = await testGateway(t.teardown, { gateway: { server }, routes })
const encrypted = await testGateway(t.teardown, {
  gateway: {
    server: { ...server, tls: { certificate, key: `file:${key}` } },
    session: { cookie: { secure: true } }
  },
  routes
})

const openFiles = () => readdirSync('/proc/self/fd').length

async function dial({ url }: { url: string }, more: object = {}): Promise<Socket> {
  const { port, protocol } = new URL(url)
  const socket = connect({ ...more, port: Number(port), host: '127.0.0.1' })
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  if (protocol === 'http:') return socket
  const secured = connectTls({ socket, rejectUnauthorized: false }).on('error', () => {})
  await once(secured, 'secureConnect')
  return secured
}

const upgrade = ['Connection: Upgrade', 'Upgrade: websocket']
for (const [title, gateway, path, bytes] of [
  ['many short responses', plain, '/short', request('GET /api/open/short').repeat(40)],
  ['many by TLS', encrypted, '/short', request('GET /api/open/short').repeat(40)],
  ['a response to an upgrade', plain, '/large', request('GET /api/open/large', upgrade)]
] as const) {
  t.test(`a client that reads nothing of ${title} is cut`, async t => {
    const from = gateway.log.length
    const socket = (await dial(gateway)).pause()
    // In whole bursts, until the gateway takes no more of them.
    const isOnce = path === '/large'
    const timer = setInterval(() => {
      if (!isOnce && socket.writableLength === 0) socket.write(bytes)
    }, 5)
    t.after(() => clearInterval(timer))
    socket.write(bytes)
    const cut = await gateway.logged(({ status }) => status === 499, from)
    t.equal(cut['path'], `/api/open${path}`)
  })
}

t.test('one that has read all may wait longer for its next response', async t => {
  const socket = await dial(plain)
  let [bytes, last] = [0, '']
  socket
    .on('data', (chunk: Buffer) => {
      bytes += chunk.length
      last = String(chunk)
    })
    .pause()
  socket.write(request('GET /api/open/large') + request('GET /api/open/held'))
  const pausedAt = performance.now()
  await until('its time runs', () => performance.now() - pausedAt > stallMs / 4)
  socket.resume()
  await until('it waits', () => held.length > 0 && bytes > largeBytes)
  const waitsSince = performance.now()
  await until('it has waited', () => performance.now() - waitsSince > 2 * stallMs)
  held[0]?.()
  await until('it is answered', () => last.endsWith('late'))
  t.notOk(socket.destroyed)
})

for (const [name, refused] of [
  ['CONNECT', request('CONNECT console.test:443')],
  ['an upgrade', request('GET /api/session', upgrade)]
] as const) {
  t.test(`${name} behind other requests leaves no connection and no request open`, async () => {
    await plain.ops('/metrics')
    const before = openFiles()
    for (const first of ['PATCH /nowhere', 'GET /api/open/held']) {
      for (let client = 0; client < 20; client++) {
        const socket = await dial(plain)
        // What follows is read by nobody, so that the end behind it is not seen either.
        socket.write(request(first).repeat(3) + refused + 'x'.repeat(100_000))
        await Promise.race([once(socket, 'data'), once(socket, 'close')]).catch(() => {})
        if (client % 2 === 0) socket.destroy()
        else socket.resetAndDestroy()
      }
    }
    await until('no request runs', async () =>
      (await plain.metrics()).includes('console_gateway_requests_in_flight 0')
    )
    await until('all are gone', () => openFiles() <= before, 15_000)
  })
}

const chunked = ['Transfer-Encoding: chunked']
for (const [code, bytes] of [
  ['session.none', request('GET /api/notices', upgrade)],
  ['request.malformed', 'nothing of HTTP\r\n\r\n'],
  ['request.headers', request('GET /', [`a: ${'b'.repeat(20_000)}`])],
  ['request.too-large', request('POST /api/open/x', chunked, `1;${'x'.repeat(20_000)}\r\na\r\n`)]
] as const) {
  t.test(`${code}: one answer, also to a client that keeps its side open`, async t => {
    await plain.ops('/metrics')
    const before = openFiles()
    const socket = await dial(plain, { allowHalfOpen: true })
    socket.write(bytes)
    const whole = await text(socket)
    t.match(whole, /^HTTP\/1\.1 4\d\d /)
    t.match(whole, `"errorCode":"${code}"`)
    t.equal(whole.match(/HTTP\/1\.1/g)?.length, 1)
    t.ok(socket.writable)
    await until('the gateway has let go', () => openFiles() <= before + 1, 15_000)
  })
}

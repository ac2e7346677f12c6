/** What reaches no app is answered once, in its turn, with a code; the connection ends. */
import { createServer, type RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { createConnections } from '../../src/app/connections.ts'
import { refuseUnparsed, sendRefusal } from '../../src/app/unparsed.ts'
import { adopt } from '../../src/observability/emitters.ts'
import { listen } from '../support/ports.ts'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'

const answerAtEnd: RequestListener = (incoming, response) =>
  incoming.resume().on('end', () => response.end('x'))

async function open(t: Test, answer = answerAtEnd) {
  const server = createServer({ maxHeaderSize: 2048 }, answer)
  createConnections({ max: 64, trustedProxies: [] }).add(server)
  refuseUnparsed(server, (socket, code) => sendRefusal(adopt(socket), code, { 'x-code': code }, {}))
  t.after(() => server.close())
  t.after(() => server.closeAllConnections())
  return { server, url: `http://127.0.0.1:${await listen(server)}` }
}

const untilClosed = { enough: () => false }

t.test('what the parser refuses has a code', async t => {
  const { url } = await open(t)
  const cases: ReadonlyArray<readonly [bytes: string, code: string]> = [
    ['nothing of HTTP\r\n\r\n', 'request.malformed'],
    [request('GET /', [`a: ${'b'.repeat(4096)}`]), 'request.headers'],
    [
      request('POST /', ['transfer-encoding: chunked'], `1;${'x'.repeat(20_000)}\r\na\r\n`),
      'request.too-large'
    ]
  ]
  for (const [bytes, code] of cases) {
    const { head, body, whole } = await raw(url, bytes, untilClosed)
    t.match(
      head,
      new RegExp(`x-code: ${code}\r\nconnection: close\r\ncontent-length: 2`, 'i'),
      code
    )
    t.equal(body, '{}')
    t.equal(whole.match(/HTTP\/1\.1/g)?.length, 1)
  }
})

t.test('a request whose headers do not come has timed out', async t => {
  const { server, url } = await open(t)
  // In place of Node's own timer, which checks twice a minute.
  server.once('connection', socket => {
    socket.once('data', () => {
      const error = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' })
      server.emit('clientError', error, socket)
    })
  })
  t.match(await raw(url, 'GET / HT'), { head: /x-code: request\.timeout/ })
})

t.test('what follows an answer that is not sent yet ends the connection after it', async t => {
  const { url } = await open(t, (_request, response) => response.end('x'))
  const { whole, closed } = await raw(
    url,
    `${request('GET /')}nothing of HTTP\r\n\r\n`,
    untilClosed
  )
  t.ok(closed)
  t.match(whole, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nx$/)
})

t.test('a client that keeps its side open is let go of', async t => {
  const { server, url } = await open(t)
  const port = Number(new URL(url).port)
  const closed = new Promise<void>(resolve => {
    server.once('connection', socket => socket.once('close', () => resolve()))
  })
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true }).on('error', () => {})
  t.after(() => socket.destroy())
  socket.resume().write('nothing of HTTP\r\n\r\n')
  await closed
  t.equal(socket.writable, true)
})

for (const second of [
  request('GET /', ['connection: upgrade', 'upgrade: websocket']),
  request('CONNECT example.com:443')
]) {
  const [method] = second.split(' ')
  t.test(`responses before ${method} to switch are closed with their connection`, async t => {
    const closed: string[] = []
    const { server, url } = await open(t, ({ url = '' }, response) => {
      response.on('close', () => closed.push(url))
    })
    server.on('upgrade', (_request, socket: Socket) => {
      sendRefusal(adopt(socket), 'request.malformed', {}, {})
    })
    const first = ['/1', '/2', '/3'].map(path => request(`GET ${path}`)).join('')
    const { whole } = await raw(url, first + second, untilClosed)
    t.equal(whole, '')
    await until('all are closed', () => closed.length === 3)
    t.same(closed.toSorted(), ['/1', '/2', '/3'])
  })
}

t.test(
  'so are those of a client that has left before it was accepted, and has no address',
  async t => {
    const closed: string[] = []
    const { server, url } = await open(t, ({ url = '' }, response) => {
      response.on('close', () => closed.push(url))
    })
    server.prependListener('connection', socket => {
      Object.defineProperty(socket, 'remoteAddress', { get: () => undefined })
    })
    const requests = request('GET /1') + request('GET /2') + request('CONNECT example.com:443')
    await raw(url, requests, untilClosed)
    await until('all are closed', () => closed.length === 2)
    t.same(closed.toSorted(), ['/1', '/2'])
  }
)

t.test('a failed handshake is told of and gets no bytes', async t => {
  const { server } = await open(t)
  const failures: unknown[] = []
  refuseUnparsed(
    server,
    () => t.fail('not refused'),
    (...failure) => failures.push(failure)
  )
  const socket = { remoteAddress: '192.0.2.1', destroy: () => failures.push('closed') }
  for (const code of ['ERR_SSL_WRONG_VERSION_NUMBER', 'EPROTO']) {
    server.listeners('clientError').at(-1)?.(Object.assign(new Error(), { code }), socket)
  }
  t.strictSame(failures, [
    ['ERR_SSL_WRONG_VERSION_NUMBER', '192.0.2.1'],
    'closed',
    ['EPROTO', '192.0.2.1'],
    'closed'
  ])
})

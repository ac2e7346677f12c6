/** Clients that read nothing of many short responses: they lose their connection, others do not. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t, { type Test } from 'tap'
import { endStalledConnections } from '../../src/app/connections.ts'
import { takeUpgrade } from '../../src/app/unparsed.ts'
import { testAuthority } from '../support/authority.ts'
import { testGateway } from '../support/gateway.ts'
import { listen } from '../support/ports.ts'
import { request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { wireRoutes } from '../support/wire.ts'

const stallMs = 400
const body = 'x'.repeat(12 * 1024)

/** Sends requests in whole bursts, and reads nothing, until the server takes no more of them. */
async function fill(t: Test, socket: Socket, path: string): Promise<void> {
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  socket.pause()
  const burst = request(`GET ${path}`).repeat(40)
  const timer = setInterval(() => socket.writableLength === 0 && socket.write(burst), 5)
  t.after(() => clearInterval(timer))
}

async function openServer(t: Test, server: Server) {
  t.after(() => server.close())
  t.after(() => server.closeAllConnections())
  server.requestTimeout = server.headersTimeout = 0
  endStalledConnections(server, stallMs)
  const closed = new Promise<void>(resolve => {
    const isTls = 'setSecureContext' in server
    server.once(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
      socket.once('close', () => resolve())
    })
  })
  return { port: await listen(server), closed }
}

const answer: RequestListener = (_request, response) => void response.end(body)

t.test('a client that reads none of many short responses is cut', async t => {
  const { port, closed } = await openServer(t, createServer(answer))
  await fill(t, connect(port, '127.0.0.1'), '/')
  await closed
})

t.test('also over TLS', async t => {
  const { certificate, key } = testAuthority(t.after)
  const pair = { cert: readFileSync(certificate), key: readFileSync(key) }
  const { port, closed } = await openServer(t, createTlsServer(pair, answer) as unknown as Server)
  const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  await fill(t, socket, '/')
  await closed
})

t.test('one that has read all may wait longer for its next response', async t => {
  const waiting: Array<() => void> = []
  const server = createServer((request, response) => {
    if (request.url === '/late') waiting.push(() => response.end('late'))
    else answer(request, response)
  })
  const { port } = await openServer(t, server)
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let text = ''
  const sockets = once(server, 'connection')
  socket.pause()
  socket.write(request('GET /').repeat(1000) + request('GET /late'))
  const [served] = (await sockets) as [Socket]
  await until('its time runs', () => served.timeout === stallMs / 10 + 0.5)
  socket.on('data', chunk => (text += chunk.toString('latin1'))).resume()
  await until('it waits', () => waiting.length > 0 && served.timeout === 0)
  const waitsSince = performance.now()
  await until('it has waited', () => performance.now() - waitsSince > 2 * stallMs)
  waiting[0]?.()
  await until('it is answered', () => text.endsWith('late'))
  t.notOk(served.destroyed)
})

t.test('the public listener does so after server.idleTimeout', async t => {
  const backend = await testUpstream(t.after, (_request, response) => void response.end(body))
  const { url, logged } = await testGateway(t.after, {
    gateway: { server: { idleTimeout: `${stallMs}ms` } },
    routes: wireRoutes(backend.url)
  })
  await fill(t, connect(Number(new URL(url).port), '127.0.0.1'), '/api/open/x')
  const cut = await logged(({ msg, status }) => msg === 'request' && status === 499)
  t.equal(cut['path'], '/api/open/x')
})

t.test('a client that reads nothing of a refusal loses its connection', async t => {
  const server = createServer()
  endStalledConnections(server, 200)
  t.after(() => server.close())
  const closed = new Promise<void>(resolve => {
    server.on('upgrade', (incoming, socket, early) => {
      socket.once('close', () => resolve())
      const isTaken = takeUpgrade(incoming, socket as never, early, (_request, response) => {
        response.end(Buffer.alloc(30_000_000))
      })
      t.ok(isTaken)
    })
  })
  const client = connect(await listen(server), '127.0.0.1').on('error', () => {})
  t.after(() => client.destroy())
  client.pause().write(request('GET /', ['Connection: Upgrade', 'Upgrade: websocket']))
  await closed
  t.equal(client.bytesRead, 0)
})

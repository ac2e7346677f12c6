import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import { type Files, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

/** One address gets a quarter. */
const server = { maxConnections: 256 }

/** Opens connections from an address, and tells of one whether it was answered or reset. */
async function opened(cleanUp: (undo: () => void) => void, files: Files) {
  const gateway = await testGateway(cleanUp, files)
  const { port, protocol } = new URL(gateway.url)
  const openPlain = (to = port, localAddress = '127.0.0.2'): Socket => {
    const socket = connect({ port: Number(to), host: '127.0.0.1', localAddress })
    cleanUp(() => socket.destroy())
    return socket
  }
  const open = (localAddress = '127.0.0.2'): Socket => {
    const socket = openPlain(port, localAddress)
    if (protocol === 'http:') return socket
    socket.on('error', () => {})
    return connectTls({ socket, rejectUnauthorized: false })
  }
  const isServed = (socket: Socket) =>
    new Promise<boolean>(resolve => {
      socket.on('error', () => resolve(false)).on('data', () => resolve(true))
      socket.write('GET /api/nothing HTTP/1.1\r\nHost: a\r\n\r\n')
    })
  return { gateway, open, openPlain, isServed }
}

function pemFiles(cleanUp: (undo: () => unknown) => void) {
  const { certificate, key } = testAuthority(cleanUp)
  return { certificate, key: `file:${key}` }
}

t.test('the 65th connection of an address is reset, until another one ends', async t => {
  const { gateway, open, isServed } = await opened(t.after, { gateway: { server } })
  const sockets = Array.from({ length: 64 }, () => open())
  for (const socket of sockets) t.ok(await isServed(socket))
  t.notOk(await isServed(open()))
  t.ok(await isServed(open('127.0.0.3')), 'another address')
  t.match(await gateway.logged(({ event }) => event === 'requests.shed'), {
    reason: 'connections',
    address: '127.0.0.2'
  })
  sockets[0]?.destroy()
  await until('there is room again', async () => await isServed(open()))
})

t.test('those of a trusted proxy are not counted', async t => {
  const { open, isServed } = await opened(t.after, {
    gateway: { server: { ...server, trustedProxies: ['127.0.0.2/32'] } }
  })
  const sockets = Array.from({ length: 80 }, () => open())
  for (const socket of sockets) t.ok(await isServed(socket))
})

t.test('when all are in use, the oldest one without a request gives way', async t => {
  for (const files of [
    {},
    { server: { tls: pemFiles(t.after) }, session: { cookie: { secure: true } } }
  ]) {
    const max = 16
    const held: Array<() => void> = []
    const backend = await testUpstream(t.after, (_request, response) => {
      held.push(() => response.end('{}'))
    })
    const { open, isServed } = await opened(t.after, {
      gateway: { ...files, server: { ...files.server, maxConnections: max } },
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: { slow: { path: '/api/slow', access: 'public', upstream: 'b' } }
      }
    })
    const addressOf = (n: number) => `127.0.0.${2 + (n % 4)}`
    const [first, ...others] = Array.from({ length: max }, (_, n) => open(addressOf(n)))
    const closed: Socket[] = []
    for (const socket of [first, ...others]) {
      if (socket === undefined) continue
      t.ok(await isServed(socket))
      socket.on('close', () => closed.push(socket))
    }
    first?.write('GET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n')
    await until('the first one has a request', () => held.length === 1)
    t.ok(await isServed(open('127.0.0.9')), 'the new one is served')
    await until('one gave way', () => closed.length > 0)
    t.same(closed, [others[0]], 'the oldest without a request')
    for (const socket of others) socket.write('GET /api/slow HTTP/1.1\r\nHost: a\r\n\r\n')
    await until('all others have a request', () => held.length === max - 1)
    t.ok(await isServed(open('127.0.0.10')), 'the one that was served gives way')
  }
})

t.test('connections by https are reset below the encryption', async t => {
  const { gateway, open, openPlain, isServed } = await opened(t.after, {
    gateway: {
      server: { ...server, tls: pemFiles(t.after) },
      session: { cookie: { secure: true } }
    }
  })
  const sockets = Array.from({ length: 63 }, () => open())
  for (const socket of sockets) t.ok(await isServed(socket))
  const silent = openPlain()
  await once(silent, 'connect')
  t.notOk(await isServed(open()), 'one that has not agreed on keys counts')
  t.ok(await isServed(open('127.0.0.3')), 'another address')
  t.match(await gateway.logged(({ event }) => event === 'requests.shed'), {
    reason: 'connections'
  })
  sockets[0]?.destroy()
  await until('there is room again', async () => await isServed(open()))
  silent.destroy()
  await until('there is room for another', async () => await isServed(open()))
})

t.test('connections to the redirect to https count too', async t => {
  const port = await freePort()
  const redirect = `127.0.0.1:${port}`
  const { open, openPlain, isServed } = await opened(t.after, {
    gateway: {
      server: { ...server, hosts: ['localhost'], tls: { ...pemFiles(t.after), redirect } },
      session: { cookie: { secure: true } }
    }
  })
  const silent = Array.from({ length: 64 }, () => openPlain(String(port)))
  await Promise.all(silent.map(async socket => await once(socket, 'connect')))
  t.notOk(await isServed(openPlain(String(port))), 'by http')
  t.notOk(await isServed(open()), 'by https')
  t.ok(await isServed(openPlain(String(port), '127.0.0.3')), 'another address')
  silent[0]?.destroy()
  await until('there is room again', async () => await isServed(openPlain(String(port))))
})

t.end()

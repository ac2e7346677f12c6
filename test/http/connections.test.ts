/** An address has a quarter of all connections, and who uses theirs longest without a request gives way. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const backend = await testUpstream(t.teardown, (_request, response) => {
  held.push(() => response.end('{}'))
})
const held: Array<() => void> = []
const { certificate, key } = testAuthority(t.teardown)
const tls = { certificate, key: `file:${key}` }
const https = { session: { cookie: { secure: true } }, server: { tls } }
const http = { session: {}, server: { trustedProxies: ['127.0.0.8/32'] } }

async function gatewayOf({ server, session }: { server: object; session: object }, max: number) {
  const gateway = await testGateway(t.after, {
    gateway: { session, server: { ...server, maxConnections: max } },
    backend: backend.url,
    routes: { routes: { slow: { access: 'public' } } }
  })
  const { port, protocol } = new URL(gateway.url)
  const openPlain = (localAddress: string, to = Number(port)) => {
    const socket = connect({ port: to, host: '127.0.0.1', localAddress }).on('error', () => {})
    t.after(() => socket.destroy())
    return socket
  }
  const open = (localAddress = '127.0.0.2') => {
    const socket = openPlain(localAddress)
    return protocol === 'http:' ? socket : connectTls({ socket, rejectUnauthorized: false })
  }
  return { gateway, open, openPlain }
}

/** Whether it is answered, or reset. */
const isServed = async (socket: Socket) =>
  await new Promise<boolean>(resolve => {
    socket.on('error', () => {}).on('close', () => resolve(false))
    socket.on('data', () => resolve(true))
    socket.write(request('GET /api/nothing'))
  })
const allServed = async (sockets: readonly Socket[]) =>
  (await Promise.all(sockets.map(isServed))).every(each => each)
const many = (count: number, open: (n: number) => Socket) =>
  Array.from({ length: count }, (_, n) => open(n))

t.test('the 65th connection of an address is reset, until another one ends', async t => {
  const { gateway, open } = await gatewayOf(http, 256)
  const sockets = many(64, () => open())
  t.ok(await allServed(sockets))
  t.notOk(await isServed(open()))
  t.ok(await isServed(open('127.0.0.3')), 'another address')
  t.ok(await allServed(many(80, () => open('127.0.0.8'))), 'a trusted proxy’s are not counted')
  t.match(await gateway.logged(({ reason }) => reason === 'connections'), {
    event: 'requests.shed',
    address: '127.0.0.2'
  })
  sockets[0]?.destroy()
  await until('there is room again', async () => await isServed(open()))
})

t.test('those by https, by the redirect to it, and without keys count together', async t => {
  const redirectPort = await freePort()
  const redirect = `127.0.0.1:${redirectPort}`
  const server = { hosts: ['gateway.test'], tls: { ...tls, redirect } }
  const { open, openPlain } = await gatewayOf({ ...https, server }, 256)
  const sockets = many(62, () => open())
  t.ok(await allServed(sockets))
  const silent = [openPlain('127.0.0.2'), openPlain('127.0.0.2', redirectPort)]
  await Promise.all(silent.map(async socket => await once(socket, 'connect')))
  t.notOk(await isServed(open()), 'by https')
  t.notOk(await isServed(openPlain('127.0.0.2', redirectPort)), 'by http')
  t.ok(await isServed(open('127.0.0.3')), 'another address')
  t.ok(await isServed(openPlain('127.0.0.3', redirectPort)), 'another address by http')
  for (const socket of [sockets[0], ...silent]) {
    socket?.destroy()
    await until('there is room for another', async () => await isServed(open()))
  }
})

for (const [name, config] of Object.entries({ http, https })) {
  t.test(`when all are in use by ${name}, the oldest one without a request gives way`, async t => {
    const max = 16
    held.length = 0
    const { open } = await gatewayOf(config, max)
    const sockets = many(max, n => open(`127.0.0.${2 + (n % 4)}`))
    const closed: Socket[] = []
    for (const socket of sockets) {
      t.ok(await isServed(socket))
      socket.on('close', () => closed.push(socket))
    }
    const [first, oldest, ...others] = sockets
    first?.write(request('GET /api/slow'))
    await until('the first one has a request', () => held.length === 1)
    t.ok(await isServed(open('127.0.0.9')), 'the new one is served')
    await until('one gave way', () => closed.length > 0)
    t.same(closed, [oldest])
    for (const socket of others) socket.write(request('GET /api/slow'))
    await until('all others have a request', () => held.length === max - 1)
    t.ok(await isServed(open('127.0.0.10')), 'the one that was served gives way')
  })
}

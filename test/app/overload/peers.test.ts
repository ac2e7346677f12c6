import { connect, type Socket } from 'node:net'
import t from 'tap'
import { type Files, testGateway } from '../../support/gateway.ts'
import { until } from '../../support/until.ts'

const server = { overload: { connectionsPerAddress: 64 } }

/** Opens connections from an address, and tells of one whether it was answered or reset. */
async function opened(cleanUp: (undo: () => void) => void, files: Files) {
  const gateway = await testGateway(cleanUp, files)
  const { port } = new URL(gateway.url)
  const open = (localAddress = '127.0.0.2'): Socket => {
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress })
    cleanUp(() => socket.destroy())
    return socket
  }
  const isServed = (socket: Socket) =>
    new Promise<boolean>(resolve => {
      socket.on('error', () => resolve(false)).on('data', () => resolve(true))
      socket.write('GET /api/nothing HTTP/1.1\r\nHost: a\r\n\r\n')
    })
  return { gateway, open, isServed }
}

t.test('the 65th connection of an address is reset, until another one ends', async t => {
  const { gateway, open, isServed } = await opened(t.after, { gateway: { server } })
  const sockets = Array.from({ length: 64 }, () => open())
  for (const socket of sockets) t.ok(await isServed(socket))
  t.notOk(await isServed(open()))
  t.ok(await isServed(open('127.0.0.3')), 'another address')
  t.match(await gateway.logged(({ event }) => event === 'requests.shed'), {
    shed: { connections: 1 },
    last: { address: '127.0.0.2' }
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

t.end()

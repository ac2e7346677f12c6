/** What becomes of the socket of an upgrade that is not agreed to. */
import { createServer } from 'node:http'
import { connect } from 'node:net'
import t from 'tap'
import { endStalledConnections } from '../../src/app/connections.ts'
import { takeUpgrade } from '../../src/app/unparsed.ts'
import { listen } from '../support/ports.ts'
import { request } from '../support/raw.ts'

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

/** Connections to back-ends across reloads. */
import { createServer } from 'node:http'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { testGateway } from '../../support/gateway.ts'
import { listen } from '../../support/ports.ts'

t.test('they are kept while their upstream stays as it is, and made anew with another', async t => {
  let connections = 0
  const server = createServer((_request, response) => response.end('{}'))
  server.keepAliveTimeout = 0
  server.on('connection', () => connections++)
  const url = `http://127.0.0.1:${await listen(server)}`
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const routes = (name: string, upstream: object, timeout = '10s') => ({
    upstreams: { [name]: upstream },
    routes: { a: { path: '/api/a', access: 'public', upstream: name, timeout } }
  })
  const gateway = await testGateway(t.after, { routes: routes('b', { url }) })
  const connectionsWith = async (changed: object) => {
    writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(changed))
    t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
    t.equal((await gateway.call('/api/a')).status, 200)
    return connections
  }
  t.equal((await gateway.call('/api/a')).status, 200)
  t.equal(connections, 1)
  t.equal(await connectionsWith(routes('b', { url }, '11s')), 1, 'another route')
  t.equal(await connectionsWith(routes('b', { url }, '12s')), 1, 'and after two reloads')
  t.equal(await connectionsWith(routes('b', { url, connections: 1 })), 2, 'another config')
  t.equal(await connectionsWith(routes('c', { url, connections: 1 })), 3, 'another name')
  t.equal(await connectionsWith(routes('b', { url, connections: 1 })), 4, 'it was closed')
})

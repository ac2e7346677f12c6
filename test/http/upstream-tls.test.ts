/** TLS to back-ends, by real certificates. */
import { copyFileSync, readFileSync } from 'node:fs'
import { createServer, type ServerOptions } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import t from 'tap'
import { WebSocketServer } from 'ws'
import { testAuthority } from '../support/authority.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { listen } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { dial, message, refusal } from '../support/websocket.ts'

const server = testAuthority(t.teardown)
const client = testAuthority(t.teardown, 'DNS:gateway.test')
const other = testAuthority(t.teardown, 'DNS:other.test')
const pem = (file: string) => readFileSync(file, 'utf8')

const clientOf = (socket: unknown) => (socket as TLSSocket).getPeerCertificate().subjectaltname

/** Answers whose certificate the gateway showed, and by which name it was called. */
async function backend(authority: typeof server, more: ServerOptions = {}): Promise<string> {
  const { key, certificate } = authority
  const https = createServer({ key: pem(key), cert: pem(certificate), ...more })
  https.on('request', ({ socket, headers: { host } }, response) => {
    const { servername } = socket as TLSSocket
    response.end(JSON.stringify({ client: clientOf(socket), name: servername, host }))
  })
  const webSockets = new WebSocketServer({ server: https })
  webSockets.on('connection', (socket, request) => {
    const answer = () => socket.send(String(clientOf(request.socket)))
    socket.on('error', () => {}).on('message', answer)
  })
  const port = await listen(https)
  t.after(() => {
    for (const socket of webSockets.clients) socket.terminate()
    https.closeAllConnections()
    https.close()
  })
  return `localhost:${port}`
}

const host = await backend(server, {
  requestCert: true,
  rejectUnauthorized: true,
  ca: [pem(client.certificate), pem(other.certificate)]
})
const otherHost = await backend(other)
const pair = { certificate: 'client.pem', key: 'file:client.key' }
const upstreams = {
  shown: { url: `https://${host}`, tls: { ca: 'ca.pem', ...pair } },
  bare: { url: `https://${host}`, tls: { ca: 'ca.pem' } },
  unknown: { url: `https://${otherHost}` },
  misnamed: { url: `https://${otherHost}`, tls: { ca: 'other.pem' } },
  named: { url: `https://${otherHost}`, tls: { ca: 'other.pem', serverName: 'other.test' } }
}
const names = Object.keys(upstreams)
const routes = names.map(name => {
  return [name, { path: `/api/${name}`, access: 'public', upstream: name, websocket: {} }]
})
const folder = await configFolder({
  gateway: { reload: { watch: true } },
  routes: { upstreams, routes: Object.fromEntries(routes) }
})
const copy = (file: string, name: string) => copyFileSync(file, join(folder, name))
copy(server.certificate, 'ca.pem')
copy(other.certificate, 'other.pem')
copy(client.certificate, 'client.pem')
copy(client.key, 'client.key')
const gateway = await testGateway(t.teardown, folder)

const refused = { status: 502, json: { errorCode: 'upstream.refused' } }
const shown = { client: 'DNS:gateway.test', name: 'localhost', host }
/** What comes of each upstream. */
const expected: Readonly<Record<keyof typeof upstreams, object>> = {
  shown: { status: 200, json: shown },
  // It wants a certificate.
  bare: { status: 502 },
  unknown: refused,
  misnamed: refused,
  named: { status: 200, json: { name: 'other.test', host: otherHost } }
}
t.test('a back-end is who it says, and the gateway shows who it is', async t => {
  for (const [name, answer] of Object.entries(expected)) {
    t.match(await gateway.call(`/api/${name}`), answer, name)
  }
})

t.test('a WebSocket’s upgrade is made by the same TLS', async t => {
  const socket = await dial(`${gateway.url}/api/shown`)
  socket.send('who is there?')
  t.equal(await message(socket), 'DNS:gateway.test')
  socket.terminate()
  t.match(await refusal(`${gateway.url}/api/unknown`), { status: 502, body: /upstream.refused/ })
})

t.test('a new certificate and its key are taken once both are there', async t => {
  copy(other.certificate, 'client.pem')
  await gateway.logged(({ event }) => event === 'config.refused')
  t.match(await gateway.reload('operator'), { outcome: 'refused' })
  t.match(await gateway.call('/api/shown'), { status: 200, json: shown }, 'the old pair')
  copy(other.key, 'client.key')
  await until('the new pair is shown, by new connections', async () => {
    const { status, json } = await gateway.call('/api/shown')
    return status === 200 && json.client === 'DNS:other.test'
  })
  t.notMatch(JSON.stringify(gateway.log), 'PRIVATE KEY')
})

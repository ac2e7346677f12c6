/** TLS to back-ends, by real certificates. */
import { copyFileSync, readFileSync } from 'node:fs'
import { createServer, type ServerOptions } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import t, { type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { stringify } from 'yaml'
import { testAuthority } from '../support/authority.ts'
import { faultsOf, textFolder } from '../support/config-files.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { listen } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { dial, message, refusal } from '../support/websocket.ts'

const server = testAuthority(t.after)
const client = testAuthority(t.after, 'DNS:gateway.test')
const other = testAuthority(t.after, 'DNS:other.test')
const pem = (file: string) => readFileSync(file, 'utf8')

/** Answers whose certificate the gateway showed, and by which name it was called. */
async function backend(t: Test, authority = server, more: ServerOptions = {}): Promise<number> {
  const { key, certificate } = authority
  const options = { key: pem(key), cert: pem(certificate), ...more }
  const https = createServer(options, (request, response) => {
    const socket = request.socket as TLSSocket
    const { subjectaltname } = socket.getPeerCertificate() as { subjectaltname?: string }
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({
        client: subjectaltname,
        name: socket.servername,
        host: request.headers.host
      })
    )
  })
  const port = await listen(https)
  t.after(() => {
    https.closeAllConnections()
    https.close()
  })
  return port
}

/** A gateway whose upstream is written so; `files` are copied into its folder. */
async function gatewayOf(
  t: Test,
  upstream: object,
  files: Record<string, string>,
  settings: Record<string, unknown> = {}
) {
  const folder = await configFolder({
    gateway: settings,
    routes: {
      upstreams: { b: upstream },
      routes: { r: { path: '/api/r', access: 'public', upstream: 'b', websocket: {} } }
    }
  })
  for (const [name, file] of Object.entries(files)) copyFileSync(file, join(folder, name))
  return await testGateway(t.after, folder)
}

const wantsClient = {
  requestCert: true,
  rejectUnauthorized: true,
  ca: pem(client.certificate)
}

t.test('the gateway shows its certificate, and verifies by the authority of its own', async t => {
  const port = await backend(t, server, wantsClient)
  const tls = { ca: 'ca.pem', certificate: 'client.pem', key: 'file:client.key' }
  const files = {
    'ca.pem': server.certificate,
    'client.pem': client.certificate,
    'client.key': client.key
  }
  const gateway = await gatewayOf(t, { url: `https://localhost:${port}`, tls }, files)
  t.match(await gateway.call('/api/r'), {
    status: 200,
    json: { client: 'DNS:gateway.test', name: 'localhost', host: `localhost:${port}` }
  })
  const bare = await gatewayOf(
    t,
    { url: `https://localhost:${port}`, tls: { ca: 'ca.pem' } },
    { 'ca.pem': server.certificate }
  )
  t.match(await bare.call('/api/r'), { status: 502 }, 'without a certificate of its own')
})

t.test('an unknown authority and another name are refused; serverName names it', async t => {
  const port = await backend(t, other)
  const url = `https://localhost:${port}`
  const files = { 'ca.pem': other.certificate }
  const unknown = await gatewayOf(t, { url }, {})
  t.match(await unknown.call('/api/r'), { status: 502, json: { errorCode: 'upstream.refused' } })
  const wrongName = await gatewayOf(t, { url, tls: { ca: 'ca.pem' } }, files)
  t.match(await wrongName.call('/api/r'), { status: 502, json: { errorCode: 'upstream.refused' } })
  const named = await gatewayOf(t, { url, tls: { ca: 'ca.pem', serverName: 'other.test' } }, files)
  t.match(await named.call('/api/r'), {
    status: 200,
    json: { name: 'other.test', host: `localhost:${port}` }
  })
})

t.test('files that change are taken by a reload, and connections are made anew', async t => {
  const port = await backend(t, server, {
    ...wantsClient,
    ca: [pem(client.certificate), pem(other.certificate)]
  })
  const tls = { ca: 'ca.pem', certificate: 'client.pem', key: 'file:client.key' }
  const gateway = await gatewayOf(
    t,
    { url: `https://localhost:${port}`, tls },
    { 'ca.pem': server.certificate, 'client.pem': client.certificate, 'client.key': client.key }
  )
  t.match(await gateway.call('/api/r'), { json: { client: 'DNS:gateway.test' } })
  copyFileSync(other.certificate, join(gateway.folder, 'client.pem'))
  const torn = await gateway.reload('operator')
  t.match(torn, { outcome: 'refused' }, 'a certificate without its key')
  t.match(await gateway.call('/api/r'), { json: { client: 'DNS:gateway.test' } })
  copyFileSync(other.key, join(gateway.folder, 'client.key'))
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  t.match(await gateway.call('/api/r'), { status: 200, json: { client: 'DNS:other.test' } })
  const log = JSON.stringify(gateway.log)
  t.notMatch(log, 'PRIVATE KEY')
})

t.test('the watcher takes a certificate and its key once both are there', async t => {
  const both = [pem(client.certificate), pem(other.certificate)]
  const port = await backend(t, server, { ...wantsClient, ca: both })
  const tls = { ca: 'ca.pem', certificate: 'client.pem', key: 'file:client.key' }
  const gateway = await gatewayOf(
    t,
    { url: `https://localhost:${port}`, tls },
    { 'ca.pem': server.certificate, 'client.pem': client.certificate, 'client.key': client.key },
    { reload: { watch: true } }
  )
  copyFileSync(other.certificate, join(gateway.folder, 'client.pem'))
  await gateway.logged(line => line['event'] === 'config.refused')
  t.match(await gateway.call('/api/r'), { json: { client: 'DNS:gateway.test' } }, 'the old pair')
  copyFileSync(other.key, join(gateway.folder, 'client.key'))
  await until('the new pair is shown', async () => {
    const { json } = await gateway.call('/api/r')
    return (json as { client?: string }).client === 'DNS:other.test'
  })
})

t.test('a WebSocket’s upgrade is made by the same TLS', async t => {
  const { key, certificate } = server
  const options = { ...wantsClient, key: pem(key), cert: pem(certificate) }
  const https = createServer(options)
  const webSockets = new WebSocketServer({ server: https })
  const shown: unknown[] = []
  webSockets.on('connection', (socket, request) => {
    shown.push((request.socket as TLSSocket).getPeerCertificate().subjectaltname)
    socket.on('error', () => {}).on('message', data => socket.send(data, { binary: false }))
  })
  const port = await listen(https)
  t.after(() => {
    for (const socket of webSockets.clients) socket.terminate()
    https.close()
  })
  const tls = { ca: 'ca.pem', certificate: 'client.pem', key: 'file:client.key' }
  const files = {
    'ca.pem': server.certificate,
    'client.pem': client.certificate,
    'client.key': client.key
  }
  const url = `https://localhost:${port}`
  const gateway = await gatewayOf(t, { url, tls }, files)
  const socket = await dial(`${gateway.url}/api/r`)
  socket.send('by TLS')
  t.equal(await message(socket), 'by TLS')
  t.same(shown, ['DNS:gateway.test'])
  socket.terminate()
  const unknown = await gatewayOf(t, { url }, {})
  t.match(await refusal(`${unknown.url}/api/r`), { status: 502, body: /upstream.refused/ })
})

t.test('faults of the files and their keys have a place', t => {
  const files = {
    'ca.pem': pem(server.certificate),
    'client.pem': pem(client.certificate),
    'client.key': pem(client.key),
    'other.key': pem(other.key)
  }
  const faults = (upstream: object) =>
    faultsOf(
      textFolder(t.after, {
        ...files,
        'routes.yaml': stringify({
          upstreams: { b: upstream },
          routes: { r: { path: '/api/r', upstream: 'b' } }
        })
      })
    ).filter(fault => !fault.includes('warning'))
  const url = 'https://b'
  const certificate = 'client.pem'
  t.same(faults({ url, tls: { ca: 'ca.pem', certificate, key: 'file:client.key' } }), [])
  t.match(faults({ url, tls: { certificate } }), [/b\.tls: .*"key" is missing/])
  t.match(faults({ url, tls: { key: 'file:client.key' } }), [/b\.tls: .*"certificate" is missing/])
  t.match(faults({ url, tls: { certificate, key: 'file:other.key' } }), [
    /tls\.key: does not fit the certificate/
  ])
  t.match(faults({ url, tls: { certificate: 'none.pem', key: 'file:client.key' } }), [
    /tls\.certificate: .*cannot be read \(ENOENT\)/
  ])
  t.match(faults({ url: 'http://b', tls: { ca: 'ca.pem' } }), [/b\.tls: .*no effect/])
  t.match(faults({ url, tls: { certificate, key: 'a key' } }), [
    /tls\.key: .*reference|never stands/
  ])
  t.end()
})

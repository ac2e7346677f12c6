/** https by the gateway itself: real certificates, real clients, and what is no TLS at all. */
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type ConnectionOptions, type PeerCertificate } from 'node:tls'
import { once } from 'node:events'
import t from 'tap'
import { WebSocket } from 'ws'
import { type Authority, testAuthority } from '../../support/authority.ts'
import { callOnce } from '../../support/call.ts'
import { run } from '../../support/command.ts'
import { noLockout, testGateway, writeConfig } from '../../support/gateway.ts'
import { freePort } from '../../support/ports.ts'
import { open, raw } from '../../support/raw.ts'
import { password } from '../../support/sign-in.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'
import { message, webSocketUpstream } from '../../support/websocket.ts'

const first = testAuthority(t.teardown)
const second = testAuthority(t.teardown)
const trusted = [first, second].map(({ certificate }) => readFileSync(certificate, 'utf8'))

/** What a TLS client agrees on with the gateway. @throws where they do not agree */
async function handshake(url: string, options: ConnectionOptions = {}) {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), ca: trusted, ...options })
  try {
    await once(socket, 'secureConnect')
    return {
      protocol: socket.getProtocol(),
      alpn: socket.alpnProtocol,
      fingerprint: (socket.getPeerCertificate() as PeerCertificate).fingerprint256
    }
  } finally {
    socket.destroy()
  }
}

const fingerprint = async (url: string) => (await handshake(url)).fingerprint

/** A folder of PEM files, and the config that names them. */
function pemFiles(folder: string) {
  const [certificate, key] = [join(folder, 'server.pem'), join(folder, 'server.key')]
  const use = (pair: Authority) => {
    copyFileSync(pair.key, key)
    copyFileSync(pair.certificate, certificate)
  }
  use(first)
  return { tls: { certificate, key: `file:${key}` }, certificate, use }
}

const renewed = ['server.tls.certificate changed', 'server.tls.key changed']
const secure = { session: { cookie: { secure: true } } }
const backend = await testUpstream(t.teardown)
const chat = await webSocketUpstream(t.teardown)
const { tls: ofFirst } = pemFiles(t.testdir({}))
const gateway = await testGateway(t.teardown, {
  gateway: { server: { tls: ofFirst }, ...secure },
  backend: backend.url,
  routes: {
    upstreams: { chat: { url: chat.url } },
    routes: {
      echo: { methods: ['GET', 'POST'] },
      chat: { upstream: 'chat', access: 'public', websocket: {} }
    }
  }
})
const { url, log } = gateway

t.test('a browser keeps its secure cookie without any proxy', async t => {
  t.match(url, /^https:/)
  const sameOrigin = { 'sec-fetch-site': 'same-origin' }
  const json = { username: 'alice', password }
  const path = '/api/auth/admin/login'
  const { headers } = await callOnce(url, { path, headers: sameOrigin, json })
  const cookies = headers['set-cookie'] ?? []
  const cookie = cookies.find(each => each.startsWith('__Host-console_sid=')) ?? ''
  t.match(cookie, /^__Host-console_sid=.*; Secure/)
  t.equal(headers['strict-transport-security'], 'max-age=31536000')
  const sent = { path: '/api/echo', headers: { ...sameOrigin, cookie: cookie.split(';')[0] } }
  t.equal((await callOnce(url, sent)).status, 200)
  t.equal((await callOnce(url, { ...sent, json: { a: 'x'.repeat(100_000) } })).status, 200)
  t.match(backend.seen[1]?.headers, { 'x-forwarded-proto': 'https' })
  t.equal(backend.seen[1]?.body.length, 100_008)
  const insecure = log.filter(line => line['event'] === 'login.insecure')
  t.same(insecure, [], 'no line warns of plain http')
})

t.test('TLS 1.2 and newer, and HTTP/1.1 alone', async t => {
  const newest = await handshake(url, { ALPNProtocols: ['h2', 'http/1.1'] })
  t.match(newest, { protocol: 'TLSv1.3', alpn: 'http/1.1' })
  t.match(await handshake(url, { maxVersion: 'TLSv1.2' }), { protocol: 'TLSv1.2' })
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' } as const
  await t.rejects(handshake(url, old), { code: /^ERR_SSL/ })
})

t.test('what is no TLS is closed without a word, and harms nobody', async t => {
  const plain = url.replace('https', 'http')
  const asHttp = await raw(plain, 'GET /api/session HTTP/1.1\r\nHost: x\r\n\r\n')
  t.match(asHttp, { status: 0, closed: true })
  t.match(await raw(plain, Buffer.from([22, 3, 1, 0, 5, 1, 0, 0, 1, 0])), { closed: true })
  t.match(await raw(plain, ''), { whole: '', closed: true }, 'a handshake has to come in time')
  for (let times = 0; times < 20; times++) {
    const { socket } = await open(t.after, url)
    // The start of a handshake, then a reset.
    socket.write(Buffer.from([22, 3, 1, 2, 0, 1, 0]), () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  await gateway.logged(line => line['event'] === 'connection.refused')
  t.equal((await callOnce(`${url}/api/session`)).status, 401, 'it still serves')
})

t.test('WebSockets pass over TLS', async t => {
  const client = new WebSocket(`${url.replace('https', 'wss')}/api/chat`, { ca: trusted })
  await once(client, 'open')
  client.send('hello')
  t.equal(await message(client), 'hello')
  client.close()
  await once(client, 'close')
})

t.test('a renewed certificate is taken over, a broken one is not', async t => {
  const folder = t.testdir({})
  const { tls, certificate, use } = pemFiles(folder)
  const gateway = await testGateway(t.after, {
    gateway: { server: { tls }, reload: { watch: true } },
    limits: { limits: { all: { by: 'address', max: 1000, window: '1m' } } }
  })
  const before = await fingerprint(gateway.url)
  const early = connect({ port: Number(new URL(gateway.url).port), ca: trusted })
  await once(early, 'secureConnect')

  let from = gateway.log.length
  use(second)
  const reloaded = await gateway.logged(line => line['event'] === 'config.reloaded', from)
  t.match(reloaded['changes'], renewed)
  const after = await fingerprint(gateway.url)
  t.not(after, before)
  early.write('GET /api/session HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [answer] = await once(early, 'data')
  t.match(String(answer), /^HTTP\/1\.1 401/, 'open connections go on')
  early.destroy()

  from = gateway.log.length
  writeFileSync(certificate, 'half a certificate')
  const refused = await gateway.logged(line => line['event'] === 'config.refused', from)
  t.match(refused['faults'], [/gateway\.yaml:\d+ server\.tls\.certificate: /])
  t.equal(await fingerprint(gateway.url), after, 'the former stays in force')

  from = gateway.log.length
  use(second)
  await until('the files hold the running config again', async () => {
    const outcome = await gateway.reload('operator')
    return outcome.outcome === 'unchanged'
  })
})

t.test('a plan says of a certificate what a reload does', async t => {
  const { tls, use } = pemFiles(t.testdir({}))
  // By its address: this process has several gateways, and one socket for commands.
  const listen = `127.0.0.1:${await freePort()}`
  const gateway = await testGateway(t.after, { gateway: { server: { tls }, ops: { listen } } })
  const plan = async () => (await run(['plan', '-c', gateway.folder])).out

  use(second)
  const lines = renewed.map(each => `  gateway.yaml ${each}\n`).join('')
  t.match(await plan(), `Live, at the next reload:\n${lines}\nNo risks`)
  const changes = renewed.map(text => ({ text, restart: false }))
  t.match(await gateway.opsJson('plan'), { changes })
  t.match(await gateway.reload('operator'), { changes: renewed, restartNeeded: [] })

  t.equal(await plan(), 'Nothing would change.\n')
  t.match(await gateway.opsJson('plan'), { changes: [] })
})

t.test('a certificate for a listener without TLS waits for the restart', async t => {
  const { tls, use } = pemFiles(t.testdir({}))
  const gateway = await testGateway(t.after)
  const restartNeeded = ['server.tls']
  const reload = async () => await gateway.reload('operator')
  const text = readFileSync(join(gateway.folder, 'gateway.yaml'), 'utf8')
  const withTls = `server:\n  tls: ${JSON.stringify(tls)}`
  writeConfig(gateway.folder, 'gateway.yaml', text.replace('server:', withTls))
  t.match(await reload(), { outcome: 'unchanged', restartNeeded })
  const limits = { 'signed-in': { by: 'user', max: 200_000, window: '1m' } }
  writeConfig(gateway.folder, 'limits.yaml', { lockout: noLockout, limits })
  t.match(await reload(), { changes: [/^limits\.signed-in\.max /], restartNeeded })
  use(second)
  t.match(await reload(), { outcome: 'unchanged', restartNeeded }, 'also when it is renewed')
  t.equal((await fetch(`${gateway.url}/api/session`)).status, 401, 'plain http goes on')
})

t.test('clients that never agree on keys do not hold a stop for longer than its grace', async t => {
  const { tls } = pemFiles(t.testdir({}))
  const gateway = await testGateway(t.after, {
    gateway: { server: { tls }, drain: { grace: '300ms' }, ...secure }
  })
  await open(t.after, gateway.url)
  // Connections are accepted in their order.
  await handshake(gateway.url)
  const startedAt = performance.now()
  await gateway.stop({ noticeMs: 0 })
  t.ok(performance.now() - startedAt < 8000, 'before the time of a handshake')
})

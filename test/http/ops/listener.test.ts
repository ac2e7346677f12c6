/** The operators' listener: TLS, and proxies in front of it. */
import { once } from 'node:events'
import { join } from 'node:path'
import { copyFileSync, writeFileSync } from 'node:fs'
import { connect, Server } from 'node:tls'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { testAuthority } from '../../support/authority.ts'
import { testGateway } from '../../support/gateway.ts'
import { callOps, signInToOps } from '../../support/operator.ts'

const me = '/ops/api/me'

/** A gateway with `ops.tls`, what renews its certificate, and the one that clients see. */
async function withOpsTls(t: Test) {
  const { certificate, key } = testAuthority(t.after)
  const renew = () => {
    const next = testAuthority(t.after)
    copyFileSync(next.key, key)
    copyFileSync(next.certificate, certificate)
  }
  const gateway = await testGateway(t.after, {
    gateway: { ops: { role: 'admin', tls: { certificate, key: `file:${key}` } } }
  })
  const { hostname: host, port } = new URL(gateway.opsUrl)
  const fingerprint = async () => {
    const socket = connect({ host, port: Number(port), rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  return { gateway, renew, fingerprint }
}

t.test('with ops.tls the cookie has the prefix, and a new certificate is taken', async t => {
  const { gateway, renew, fingerprint } = await withOpsTls(t)
  t.match(gateway.opsUrl, /^https:/)
  const { status, cookie, headers } = await signInToOps(gateway.opsUrl)
  t.equal(status, 303)
  t.match(headers['set-cookie']?.[0], /^__Host-console_ops=.*; Path=\/; HttpOnly; .*; Secure$/)
  t.equal((await callOps(gateway.opsUrl, me, { headers: { cookie } })).status, 200)
  const plain = cookie.replace('__Host-', '')
  t.equal((await callOps(gateway.opsUrl, me, { headers: { cookie: plain } })).status, 401)
  const before = await fingerprint()
  renew()
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  t.not(await fingerprint(), before)
})

t.test('a reload whose ops.tls cannot be taken changes nothing, and may be repeated', async t => {
  const { gateway, renew, fingerprint } = await withOpsTls(t)
  const before = await fingerprint()
  const status = async () => (await gateway.call('/api/new')).status
  t.equal(await status(), 404)
  renew()
  const routes = {
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { new: { path: '/api/new', access: 'public', upstream: 'b' } }
  }
  writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(routes))
  const value = () => {
    throw new Error('no such pair')
  }
  const intercepted = t.intercept(Server.prototype, 'setSecureContext', { value })
  const refused = await gateway.reload('operator')
  t.match(refused, { outcome: 'refused', faults: [/no such pair/] })
  t.equal(await status(), 404, 'requests see the config that is said to run')
  t.equal(await fingerprint(), before)
  intercepted.restore()
  t.match(await gateway.reload('operator'), { outcome: 'reloaded' })
  t.equal(await status(), 502)
  t.not(await fingerprint(), before)
})

t.test('the origin that a trusted proxy tells is believed from it alone', async t => {
  const files = (trustedProxies: readonly string[]) => ({
    gateway: { ops: { role: 'admin', hosts: ['ops.example.com'], trustedProxies } }
  })
  const headers = {
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'ops.example.com',
    'origin': 'https://ops.example.com'
  }
  const behind = await testGateway(t.after, files(['127.0.0.1']))
  const signedIn = await signInToOps(behind.opsUrl, 'alice', { headers })
  t.match(signedIn, { status: 303, headers: { 'set-cookie': [/^__Host-.*Secure$/] } })
  const evil = {
    ...headers,
    'x-forwarded-host': 'evil.example',
    'origin': 'https://evil.example'
  }
  t.equal((await signInToOps(behind.opsUrl, 'alice', { headers: evil })).status, 421)
  t.equal((await signInToOps(behind.opsUrl)).status, 403, 'past the proxy, in clear')
  const direct = await testGateway(t.after, files(['192.0.2.1']))
  t.equal((await signInToOps(direct.opsUrl, 'alice', { headers })).status, 403)
})

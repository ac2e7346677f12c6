/** The operators' listener: TLS, and proxies in front of it. */
import { once } from 'node:events'
import { join } from 'node:path'
import { copyFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:tls'
import t from 'tap'
import { stringify } from 'yaml'
import { testAuthority } from '../../support/authority.ts'
import { testGateway } from '../../support/gateway.ts'
import { callOps, signInToOps } from '../../support/operator.ts'

t.test('a renewed certificate is taken by a reload, and half of one changes nothing', async t => {
  const { certificate, key } = testAuthority(t.after)
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
  const status = async () => (await gateway.call('/api/new')).status
  const before = await fingerprint()
  const { status: signedIn, cookie, headers } = await signInToOps(gateway.opsUrl)
  t.equal(signedIn, 303)
  t.match(headers['set-cookie']?.[0], /^__Host-console_ops=.*; Path=\/; HttpOnly; .*; Secure$/)
  const plain = cookie.replace('__Host-', '')
  for (const [given, expected] of [
    [cookie, 200],
    [plain, 401]
  ] as const) {
    const answer = await callOps(gateway.opsUrl, '/ops/api/me', { headers: { cookie: given } })
    t.equal(answer.status, expected)
  }

  const next = testAuthority(t.after)
  copyFileSync(next.certificate, certificate)
  const routes = {
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    routes: { new: { path: '/api/new', access: 'public', upstream: 'b' } }
  }
  writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(routes))
  t.match(await gateway.reload('operator'), { outcome: 'refused' })
  t.same([await status(), await fingerprint()], [404, before])
  copyFileSync(next.key, key)
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
  const evil = { 'x-forwarded-host': 'evil.example', 'origin': 'https://evil.example' }
  t.equal(
    (await signInToOps(behind.opsUrl, 'alice', { headers: { ...headers, ...evil } })).status,
    421
  )
  t.equal((await signInToOps(behind.opsUrl)).status, 403, 'past the proxy, in clear')
  const direct = await testGateway(t.after, files(['192.0.2.1']))
  t.equal((await signInToOps(direct.opsUrl, 'alice', { headers })).status, 403)
})

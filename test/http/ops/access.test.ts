/** Who is answered by the operators' listener: by the secret, by the cookie, by which names, over TLS. */
import { once } from 'node:events'
import { copyFileSync } from 'node:fs'
import { connect } from 'node:tls'
import t from 'tap'
import { testAuthority } from '../../support/authority.ts'
import { testGateway } from '../../support/gateway.ts'
import { callOps, signInToOps } from '../../support/operator.ts'
import { testSecret } from '../../support/ops.ts'
import { answers, raw, request as rawRequest } from '../../support/raw.ts'

const me = '/ops/api/me'
const hosts = ['Ops.example.com']
const { opsUrl, url, log, signIn, call, ops } = await testGateway(undo => t.teardown(undo), {
  gateway: { ops: { role: 'admin', hosts } }
})
const { host: ownHost, port } = new URL(opsUrl)
const consoleCookie = await signIn('bob')
const { cookie } = await signInToOps(opsUrl)
const statusOf = async (path: string, headers: Record<string, string | undefined>) =>
  (await callOps(opsUrl, path, { headers })).status

const reads = [
  ...['/ops/api/status', '/ops/api/sessions?user=1', '/openapi.json', '/nowhere'],
  ...['/metrics', '/metrics/', '//metrics', '/ops/api/m%65']
]
const acts = 'sessions/close users/block reload link lockouts/lift limits/caller/reset'.split(' ')
const guarded = [
  ...reads.map(path => ['GET', path] as const),
  ...acts.map(act => ['POST', `/ops/api/${act}`] as const),
  ['HEAD', '/metrics'] as const
]

t.test('without the secret, or with a wrong one, only health and forms answer', async t => {
  const close = [`Bearer ${testSecret}x`, `Bearer ${testSecret.slice(1)}`, `Basic ${testSecret}`]
  const wrong = ['', 'Bearer ', ...close, `Bearer ${testSecret}, Bearer x`, testSecret]
  for (const authorization of [undefined, ...wrong]) {
    const headers = { authorization }
    for (const [method, path] of guarded) {
      const json = method === 'POST' && { json: { user: '1' } }
      const answer = await callOps(opsUrl, path, { method, headers, ...json })
      t.equal(answer.status, 401, `${method} ${path} with ${authorization}`)
      t.match(answer.headers['www-authenticate'], /^Bearer/)
      const requestId = answer.headers['x-request-id']
      if (method !== 'HEAD') t.match(answer.json, { code: 'ops.secret', requestId })
    }
    t.equal(await statusOf('/healthz', headers), 200)
    t.same((await callOps(opsUrl, '/readyz', { headers })).json, { status: 'ready' })
  }
  const told = log.filter(({ event }) => event === 'ops.refused')
  t.match(told, [{ level: 'warn', address: '127.0.0.1' }], 'one line a minute')
  t.equal((await call('/api/account/profile', { cookie: consoleCookie })).status, 200)
  const headers = { authorization: `bearer ${testSecret}` }
  t.match((await callOps(opsUrl, '/readyz', { headers })).json, { sessions: 'in this process' })
  t.same((await callOps(opsUrl, me, { headers })).json, { name: 'operator', via: 'secret' })
  for (const path of ['/ops/api/status', '/metrics', '/openapi.json']) {
    t.equal(await statusOf(path, headers), 200, path)
  }
  for (const mark of [{ origin: 'http://evil.example' }, { 'sec-fetch-site': 'cross-site' }]) {
    for (const [method, path] of guarded) {
      const answer = await callOps(opsUrl, path, { method, headers: { ...headers, ...mark } })
      t.equal(answer.status, 403, `${method} ${path} of a page in a browser`)
    }
  }
  t.notOk(JSON.stringify(log).includes(testSecret), 'no log line holds the secret')
})

t.test('with ops.openMetrics a scraper needs no secret, and no name of the gateway', async t => {
  const open = await testGateway(t.after, { gateway: { ops: { openMetrics: true } } })
  const headers = { host: 'evil.example' }
  t.equal((await callOps(open.opsUrl, '/metrics', { headers })).status, 200)
  const ofPage = { ...headers, origin: 'http://evil.example' }
  t.equal((await callOps(open.opsUrl, '/metrics', { headers: ofPage })).status, 421)
})

t.test('an act by the cookie needs the own origin exactly, and JSON', async t => {
  const act = async (headers: Record<string, string | undefined>, body?: string) =>
    await callOps(opsUrl, '/ops/api/sessions/close', {
      json: { user: 'nobody' },
      ...(body !== undefined && { body }),
      headers: { cookie, ...headers }
    })
  const foreign = [
    ['another site', 'https://evil.example'],
    ['the console on another port of this host', url],
    ['another name of this host', `http://localhost:${port}`],
    ['a frame without origin', 'null'],
    ['none', undefined]
  ] as const
  for (const [name, origin] of foreign) {
    t.match(await act({ origin }), { status: 403, json: { code: 'ops.origin' } }, name)
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  t.equal((await act(form, 'everyone=true')).status, 415, 'a form')
  t.equal((await act({ 'content-type': 'text/plain' })).status, 415, 'fetch with no-cors')
  t.equal((await act({ 'content-type': undefined })).status, 415)
  for (const site of ['same-site', 'cross-site']) {
    t.equal(await statusOf(me, { cookie, 'sec-fetch-site': site }), 403, `a ${site} page reads`)
  }
  t.equal(await statusOf(me, { cookie, origin: url }), 403)
  t.equal(await statusOf(me, { cookie, 'sec-fetch-site': 'same-origin', 'origin': opsUrl }), 200)
  t.equal((await act({})).status, 200)
})

t.test('nobody is signed in by a page of another site', async t => {
  for (const origin of ['https://evil.example', undefined]) {
    const answer = await signInToOps(opsUrl, 'alice', { headers: { origin } })
    t.match(answer, { status: 403, cookie: '', json: { code: 'ops.origin' } })
  }
})

t.test('a page that gave its own name this address reads nothing, does nothing: 421', async t => {
  const authorization = `Bearer ${testSecret}`
  const marks = [
    { origin: 'http://evil.example' },
    { referer: 'http://evil.example/' },
    { 'sec-fetch-site': 'same-origin' }
  ]
  const own = ['127.0.0.1:9090', '[::1]:9090', '[::1]', 'localhost', 'ops.EXAMPLE.com']
  const other = ['evil.example:9090', 'gateway:9090', 'localhost.', '127.0.0.1.evil']
  for (const path of ['/readyz', '/ops/', '/ops/page.css']) {
    for (const mark of marks) {
      for (const host of other) t.equal(await statusOf(path, { host, ...mark }), 421, host)
      for (const host of own) t.equal(await statusOf(path, { host, ...mark }), 200, host)
    }
  }
  for (const name of [...other, 'ops.example.com.evil.example']) {
    const host = `${name.split(':', 1)[0]}:${port}`
    const headers = { host, cookie, origin: `http://${host}` }
    t.equal(await statusOf(me, headers), 421, name)
    const act = { json: { user: 'nobody' }, headers }
    t.equal((await callOps(opsUrl, '/ops/api/sessions/close', act)).status, 421)
    t.equal((await signInToOps(opsUrl, 'alice', { headers })).status, 421)
    t.equal(await statusOf('/ops/api/status', { host, authorization }), 421)
  }
  const scraper = { host: 'evil.example', authorization }
  for (const path of ['/metrics', '/openapi.json']) t.equal(await statusOf(path, scraper), 200)
  t.equal(await statusOf('/healthz', { host: 'evil.example', ...marks[0] }), 200, 'it says nothing')
})

t.test('a cookie of one listener opens nothing at the other', async t => {
  const value = (text: string) => text.slice(text.indexOf('=') + 1)
  const planted = `console_ops=${'a'.repeat(48)}`
  for (const each of [consoleCookie, `console_ops=${value(consoleCookie)}`, planted]) {
    t.equal(await statusOf(me, { cookie: each }), 401, each)
  }
  for (const each of [cookie, `console_sid=${value(cookie)}`]) {
    t.equal((await call('/api/account/profile', { cookie: each })).status, 401, each)
  }
  const both = `${consoleCookie}; ${cookie}`
  t.equal((await call('/api/account/profile', { cookie: both })).status, 200)
  t.equal(await statusOf(me, { cookie: both }), 200)
  for (const two of [`${cookie}; ${planted}`, `${planted}; ${cookie}`, `${cookie}; ${cookie}`]) {
    t.equal(await statusOf(me, { cookie: two }), 400, 'of two none is believed')
  }
})

t.test('each answer has its id, and may not be framed, stored or read by another site', async t => {
  const fences = {
    'content-security-policy':
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
      "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    'x-request-id': /^[\da-f-]{36}$/,
    'x-frame-options': 'DENY',
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    'cross-origin-opener-policy': 'same-origin',
    'cross-origin-resource-policy': 'same-origin',
    'referrer-policy': /^(?:no-referrer|same-origin)$/
  }
  for (const path of ['/healthz', '/readyz', me, '/nowhere', '/metrics', '/ops/', '/ops/users']) {
    const { headers } = await callOps(opsUrl, path, { headers: { cookie } })
    t.match(headers, fences, path)
    t.equal(headers['access-control-allow-origin'], undefined)
  }
  const page = await callOps(opsUrl, '/ops/', { headers: { 'sec-fetch-site': 'cross-site' } })
  t.match(page, { status: 200, headers: { 'content-type': /html/, 'x-frame-options': 'DENY' } })
  t.match(page.text, /<title>Sign in/, 'a link from anywhere leads to the form')
})

t.test('what is no sound request is refused, with a code and an id, and not framed', async t => {
  const own = `host: ${ownHost}`
  const get = `GET ${me} HTTP/1.1`
  const chunked = 'transfer-encoding: chunked'
  const many = Array.from({ length: 2100 }, () => 'x:')
  const rows: ReadonlyArray<readonly [status: number, code: string, ...requests: string[][]]> = [
    // What two programs could read in two ways.
    [400, 'request.malformed', [get, own, 'host: evil.example'], [get, own, own]],
    [400, 'request.malformed', [get, own, ...many, 'host: evil.example']],
    [400, 'request.malformed', [`GET ${me} HTTP/2.0`, own], ['nothing of HTTP']],
    [400, 'request.malformed', [`GET http://${ownHost}${me} HTTP/1.1`, own]],
    [400, 'request.malformed', [`GET http://evil.example${me} HTTP/1.1`, own]],
    [400, 'request.malformed', ['POST /ops/api/reload HTTP/1.0', own, chunked]],
    [400, 'request.malformed', ['GET /%ff HTTP/1.1', own], ['GET /ops/assets/%zz/x HTTP/1.1', own]],
    [414, 'request.uri-too-long', [`GET /ops/requests/${'a'.repeat(200)} HTTP/1.1`, own]],
    [431, 'request.headers', ['GET / HTTP/1.1', own, `x: ${'y'.repeat(20_000)}`]],
    [405, 'route.method', ['CONNECT a:1 HTTP/1.1', 'host: a:1']],
    [417, 'request.expectation', [get, own, 'expect: 200-ok']],
    [417, 'request.expectation', [get, own, 'expect: 100-continue, x']]
  ]
  for (const [status, code, ...requests] of rows) {
    for (const lines of requests) {
      const title = lines.slice(0, 3).join(' ').slice(0, 80)
      const bytes = `${[...lines, `cookie: ${cookie}`, 'connection: close'].join('\r\n')}\r\n\r\n`
      const { head, body, ...answer } = await raw(opsUrl, bytes, { enough: () => false })
      t.match(answer, { status, closed: true }, title)
      const told = JSON.parse(body) as Record<string, string>
      t.match(told, { code, error: /^[A-Z]/ }, title)
      for (const field of [
        `x-request-id: ${told['requestId']}`,
        'cache-control: no-store',
        /frame-ancestors 'none'/,
        /nosniff/,
        /x-frame-options: DENY/
      ]) {
        t.match(head, field, title)
      }
      t.notMatch(body, /%|a{20}|assets/, 'the path does not come back')
    }
  }
  const plain = await raw(opsUrl, 'GET /healthz HTTP/1.0\r\n\r\n')
  t.equal(plain.status, 200, 'a plain probe')
  const continued = await raw(opsUrl, rawRequest('GET /healthz', ['expect: 100-Continue']), {
    enough: received => answers(received) >= 2
  })
  t.match(continued.whole, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  const body = { json: { user: 'a'.repeat(70_000) } }
  t.equal((await ops('/ops/api/sessions/close', body)).status, 413)
})

t.test('a renewed certificate is taken by a reload, and half of one changes nothing', async t => {
  const { certificate, key } = testAuthority(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { ops: { role: 'admin', tls: { certificate, key: `file:${key}` } } }
  })
  const { hostname, port } = new URL(gateway.opsUrl)
  const fingerprint = async () => {
    const socket = connect({ host: hostname, port: Number(port), rejectUnauthorized: false })
    await once(socket, 'secureConnect')
    const { fingerprint256 } = socket.getPeerCertificate()
    socket.destroy()
    return fingerprint256
  }
  const before = await fingerprint()
  const signedIn = await signInToOps(gateway.opsUrl)
  const written = /^__Host-console_ops=.*; Path=\/; HttpOnly; .*; Secure$/
  t.match(signedIn, { status: 303, headers: { 'set-cookie': [written] } })
  const next = testAuthority(t.after)
  for (const [renewed, file, outcome] of [
    [next.certificate, certificate, 'refused'],
    [next.key, key, 'reloaded']
  ] as const) {
    copyFileSync(renewed, file)
    t.match(await gateway.reload('operator'), { outcome })
    t.equal((await fingerprint()) === before, outcome === 'refused', outcome)
  }
})

t.test('the origin that a trusted proxy tells is believed from it alone', async t => {
  const headers = {
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'ops.example.com',
    'origin': 'https://ops.example.com'
  }
  const trusting = { role: 'admin', hosts, trustedProxies: ['127.0.0.1'] }
  const behind = await testGateway(t.after, { gateway: { ops: trusting } })
  const signedIn = await signInToOps(behind.opsUrl, 'alice', { headers })
  t.match(signedIn, { status: 303, headers: { 'set-cookie': [/^__Host-.*Secure$/] } })
  const written = { ...headers, 'x-forwarded-host': 'ops.example.com:443' }
  t.equal((await signInToOps(behind.opsUrl, 'alice', { headers: written })).status, 303)
  t.equal((await signInToOps(behind.opsUrl)).status, 403, 'past the proxy, in clear')
  const foreign = { 'x-forwarded-host': 'evil.example', 'origin': 'https://evil.example' }
  const evil = { headers: { ...headers, ...foreign } }
  t.equal((await signInToOps(behind.opsUrl, 'alice', evil)).status, 421)
  t.equal((await signInToOps(opsUrl, 'alice', { headers })).status, 403, 'where none is trusted')
})

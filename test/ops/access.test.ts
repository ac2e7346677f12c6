import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { watchArgon2 } from '../support/argon2.ts'
import { hashOf } from '../support/users.ts'
import { configFolder, noLockout, testGateway } from '../support/gateway.ts'
import { callOps, postForm, signInToOps } from '../support/operator.ts'
import { raw } from '../support/raw.ts'
import { testRedis } from '../support/redis.ts'
import { password } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const withRole = { gateway: { ops: { role: 'admin' } } }
const me = '/ops/api/me'

t.test('a user of a users file with ops.role signs in, sees, acts and signs out', async t => {
  const { opsUrl, log, signIn } = await testGateway(t.after, withRole)
  await signIn('bob')
  const { status, json, cookie, headers } = await signInToOps(opsUrl)
  t.equal(status, 303)
  t.match(json, { name: 'alice', via: 'session', source: 'users-file' })
  t.ok(json.until > Date.now() + 3_500_000 && json.until <= Date.now() + 3_600_000)
  t.match(headers['set-cookie']?.[0], /^console_ops=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/)
  t.match((await callOps(opsUrl, me, { headers: { cookie } })).json, { name: 'alice' })
  t.match((await callOps(opsUrl, '/readyz', { headers: { cookie } })).json, {
    sessions: 'in this process'
  })
  const act = { json: { user: 'bob' }, headers: { cookie } }
  t.match((await callOps(opsUrl, '/ops/api/sessions/close', act)).json, { closed: 1 })
  const out = await postForm(opsUrl, { act: 'sign-out' }, { cookie })
  t.match(out, { status: 303, headers: { 'set-cookie': [/^console_ops=;.*Max-Age=0$/] } })
  t.match(await callOps(opsUrl, me, { headers: { cookie } }), {
    status: 401,
    json: { code: 'ops.session' }
  })
  const secrets = [password, cookie.split('=')[1] ?? '']
  for (const secret of secrets) t.notOk(JSON.stringify(log).includes(secret))
})

t.test('nobody signs in by name without ops.role, and the answer says so', async t => {
  const { opsUrl } = await testGateway(t.after)
  t.match(await signInToOps(opsUrl), {
    status: 403,
    cookie: '',
    json: { error: /ops\.role is not set/ }
  })
})

t.test('a user without the role, or of another source, is no operator', async t => {
  const { opsUrl, folder } = await testGateway(t.after, {
    gateway: {
      ops: { role: 'admin', sources: ['staff'] },
      login: {
        sources: {
          'users-file': { kind: 'users-file', file: 'users.yaml' },
          'staff': { kind: 'users-file', file: 'staff.yaml' }
        }
      }
    },
    users: { users: {} }
  }).catch(() => ({ opsUrl: '', folder: '' }))
  t.same({ opsUrl, folder }, { opsUrl: '', folder: '' }, 'staff.yaml does not exist')
  const staff = await configFolder({
    gateway: {
      ops: { role: 'admin', sources: ['staff'] },
      login: {
        sources: {
          'users-file': { kind: 'users-file', file: 'users.yaml' },
          'staff': { kind: 'users-file', file: 'staff.yaml' }
        }
      }
    }
  })
  const hash = hashOf(password)
  const users = {
    sven: { password: hash, roles: ['admin'] },
    tim: { password: hash, roles: ['user'] }
  }
  writeFileSync(join(staff, 'staff.yaml'), stringify({ users }))
  const gateway = await testGateway(t.after, staff)
  t.match(await signInToOps(gateway.opsUrl, 'sven'), { status: 303, json: { source: 'staff' } })
  t.match(await signInToOps(gateway.opsUrl, 'tim'), { status: 403, json: { code: 'ops.role' } })
  t.match(
    await signInToOps(gateway.opsUrl, 'alice'),
    { status: 401, json: { code: 'login.refused' } },
    'an admin of another source is as unknown here as anybody'
  )
})

t.test('operators of a back-end come from a source that ops.sources names only', async t => {
  const backend = await testUpstream(t.after, (_request, response, { body }) => {
    const { username, password: given } = JSON.parse(body.toString()) as Record<string, string>
    const isRight = given === password && username !== undefined
    response.statusCode = isRight ? 200 : 401
    response.setHeader('content-type', 'application/json')
    response.end(
      JSON.stringify({ id: `${username}-id`, roles: [username === 'olga' ? 'admin' : 'user'] })
    )
  })
  const backendSource = {
    kind: 'upstream-login',
    upstream: 'b',
    path: '/login',
    body: { username: '{username}', password: '{password}' },
    user: { id: 'id', roles: 'roles' }
  }
  const files = (sources: readonly string[]) => ({
    gateway: { ops: { role: 'admin', sources }, login: { sources: { staff: backendSource } } },
    routes: { upstreams: { b: { url: backend.url } } }
  })
  const { opsUrl, log } = await testGateway(t.after, files(['staff']))
  const { status, json, cookie } = await signInToOps(opsUrl, 'olga')
  t.match({ status, json }, { status: 303, json: { name: 'olga', source: 'staff' } })
  t.equal((await callOps(opsUrl, me, { headers: { cookie } })).status, 200)
  t.match(await signInToOps(opsUrl, 'tim'), { status: 403, json: { code: 'ops.role' } })
  t.match(await signInToOps(opsUrl, 'olga', { password: 'wrong' }), {
    status: 401,
    json: { code: 'login.refused' }
  })
  t.notOk(JSON.stringify(log).includes(password))
  const asked = backend.seen.length
  const without = await testGateway(t.after, files([]))
  t.notOk((await signInToOps(without.opsUrl, 'olga')).status === 303, 'no source is named')
  t.equal(backend.seen.length, asked, 'and the back-end hears of no guess')
})

t.test('an act by the cookie needs the own origin exactly, and JSON', async t => {
  const { opsUrl, url, signIn, call } = await testGateway(t.after, withRole)
  const consoleCookie = await signIn('bob')
  const { cookie } = await signInToOps(opsUrl)
  const { port } = new URL(opsUrl)
  const act = async (headers: Record<string, string | undefined>, body?: string) =>
    await callOps(opsUrl, '/ops/api/sessions/close', {
      json: { everyone: true },
      ...(body !== undefined && { body }),
      headers: { cookie, ...headers }
    })
  const foreign = [
    ['another site', 'https://evil.example'],
    ['the console on another port of this host', url],
    ['another name of this host', `http://localhost:${port}`],
    ['no port', 'http://127.0.0.1'],
    ['a frame without origin', 'null'],
    ['two origins', `${opsUrl}, https://evil.example`],
    ['none', undefined]
  ] as const
  for (const [name, origin] of foreign) {
    t.match(await act({ origin }), { status: 403, json: { code: 'ops.origin' } }, name)
  }
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  t.equal((await act(form, 'everyone=true')).status, 415, 'a form')
  t.equal((await act({ 'content-type': 'text/plain' })).status, 415, 'fetch with no-cors')
  t.equal((await act({ 'content-type': undefined })).status, 415)
  t.equal((await call('/api/account/profile', { cookie: consoleCookie })).status, 200)
  const read = async (headers: Record<string, string>) =>
    (await callOps(opsUrl, me, { headers: { cookie, ...headers } })).status
  t.equal(await read({ 'sec-fetch-site': 'same-site' }), 403, 'a page on another port reads')
  t.equal(await read({ 'sec-fetch-site': 'cross-site' }), 403)
  t.equal(await read({ origin: url }), 403)
  t.equal(await read({ 'sec-fetch-site': 'same-origin', 'origin': opsUrl }), 200)
  t.equal((await act({})).status, 200)
})

t.test('nobody is signed in by a page of another site', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  for (const origin of ['https://evil.example', undefined]) {
    const answer = await signInToOps(opsUrl, 'alice', { headers: { origin } })
    t.match(answer, { status: 403, cookie: '', json: { code: 'ops.origin' } })
  }
})

t.test('a name that ops.hosts does not list opens nothing by the cookie', async t => {
  const { opsUrl } = await testGateway(t.after, {
    gateway: { ops: { role: 'admin', hosts: ['ops.example.com'] } }
  })
  const { port } = new URL(opsUrl)
  const { cookie } = await signInToOps(opsUrl)
  const by = async (name: string) => {
    const host = `${name}:${port}`
    const headers = { host, cookie, origin: `http://${host}` }
    const read = await callOps(opsUrl, me, { headers })
    const act = await callOps(opsUrl, '/ops/api/sessions/close', {
      json: { user: 'nobody' },
      headers
    })
    const opening = await signInToOps(opsUrl, 'alice', {
      headers: { ...headers, cookie: undefined }
    })
    return [read.status, act.status, opening.status]
  }
  for (const name of [
    'evil.example',
    'gateway',
    'ops.example.com.evil.example',
    '127.0.0.1.evil'
  ]) {
    t.same(await by(name), [421, 421, 421], name)
  }
  for (const name of ['ops.example.com', 'OPS.EXAMPLE.COM', 'localhost', '127.0.0.1']) {
    t.same(await by(name), [200, 200, 303], name)
  }
})

t.test('a cookie of one listener opens nothing at the other', async t => {
  const { opsUrl, signIn, call } = await testGateway(t.after, withRole)
  const consoleCookie = await signIn()
  const { cookie } = await signInToOps(opsUrl)
  const value = (text: string) => text.slice(text.indexOf('=') + 1)
  const opsCookies = [consoleCookie, `console_ops=${value(consoleCookie)}`]
  for (const each of opsCookies) {
    t.equal((await callOps(opsUrl, me, { headers: { cookie: each } })).status, 401, each)
  }
  for (const each of [cookie, `console_sid=${value(cookie)}`]) {
    t.equal((await call('/api/account/profile', { cookie: each })).status, 401, each)
  }
  const both = `${consoleCookie}; ${cookie}`
  t.equal((await call('/api/account/profile', { cookie: both })).status, 200)
  t.equal((await callOps(opsUrl, me, { headers: { cookie: both } })).status, 200)
})

t.test('a cookie that was planted in the browser is never taken over', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  const planted = `console_ops=${'a'.repeat(48)}`
  const first = await signInToOps(opsUrl, 'alice', { headers: { cookie: planted } })
  t.not(first.cookie, planted)
  t.equal((await callOps(opsUrl, me, { headers: { cookie: planted } })).status, 401)
})

t.test('of two cookies of the name none is believed', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  const { cookie } = await signInToOps(opsUrl)
  const other = `console_ops=${'b'.repeat(48)}`
  for (const cookies of [`${cookie}; ${other}`, `${other}; ${cookie}`, `${cookie}; ${cookie}`]) {
    t.equal((await callOps(opsUrl, me, { headers: { cookie: cookies } })).status, 400)
  }
})

t.test('guesses are counted apart from the console’s', async t => {
  const account = { failures: 3, every: '1m' }
  const { opsUrl, call, signIn, ops } = await testGateway(t.after, {
    ...withRole,
    limits: { lockout: { ...noLockout, account } }
  })
  const wrong = { username: 'alice', password: 'wrong' }
  for (let attempt = 0; attempt < 5; attempt++) await call('/api/auth/admin/login', { json: wrong })
  const locked = await call('/api/auth/admin/login', { json: { ...wrong, password } })
  t.equal(locked.status, 429, 'the console')
  t.equal((await signInToOps(opsUrl)).status, 303, 'the page')
  for (let attempt = 0; attempt < 5; attempt++) {
    await signInToOps(opsUrl, 'bob', { password: 'wrong' })
  }
  t.match(await signInToOps(opsUrl, 'bob'), {
    status: 429,
    json: { code: 'login.locked' },
    headers: { 'retry-after': /^\d+$/ }
  })
  t.ok(await signIn('bob'))
  t.match(await (await ops('/ops/api/lockouts')).json(), {
    lockouts: [{ account: 'alice' }, { kind: 'account at the operators’ page', account: 'bob' }]
  })
  await ops('/ops/api/lockouts/lift', { json: { account: 'bob' } })
  t.match(await signInToOps(opsUrl, 'bob'), { status: 403, json: { code: 'ops.role' } })
})

t.test('a guess that one source refused counts while another one fails', async t => {
  const backends = {
    a: await testUpstream(t.after, (_request, response) => response.writeHead(401).end()),
    b: await testUpstream(t.after, (_request, response) => response.writeHead(500).end())
  }
  const sourceAt = (upstream: string) => ({
    kind: 'upstream-login',
    upstream,
    path: '/login',
    user: { id: 'id' }
  })
  const { opsUrl } = await testGateway(t.after, {
    gateway: {
      ops: { role: 'admin', sources: ['a', 'b'] },
      identity: { prefix: true },
      login: { sources: { a: sourceAt('a'), b: sourceAt('b') } }
    },
    routes: { upstreams: { a: { url: backends.a.url }, b: { url: backends.b.url } } },
    limits: { lockout: { ...noLockout, address: { failures: 2 } }, limits: {} }
  })
  const guess = async () => (await signInToOps(opsUrl, 'alice', { password: 'wrong' })).status
  t.same([await guess(), await guess(), await guess()], [502, 502, 429])
})

t.test('an unknown user costs what a wrong password costs', async t => {
  const { costs } = watchArgon2(t.after)
  const { opsUrl } = await testGateway(t.after, withRole)
  const costOf = async (name: string) => {
    const { status, json } = await signInToOps(opsUrl, name, { password: 'wrong' })
    t.same([status, json.code], [401, 'login.refused'])
    return costs()
  }
  const known = await costOf('alice')
  t.equal(known.length, 1)
  for (const name of ['nobody', 'Alice', '__proto__']) t.same(await costOf(name), known, name)
})

t.test('the session ends with a changed password, a lost role, or the user', async t => {
  const changes = [
    ['another password', { password: 'other', roles: ['admin'] }],
    ['without the role', { password, roles: ['user'] }],
    ['disabled', { password, roles: ['admin'], disabled: true }]
  ] as const
  const hash = hashOf(password)
  const other = hashOf('other')
  const hashed = (text: string) => (text === password ? hash : other)
  for (const [name, change] of changes) {
    const user = { password: hash, roles: ['admin'] }
    const gateway = await testGateway(t.after, { ...withRole, users: { users: { alice: user } } })
    const { cookie } = await signInToOps(gateway.opsUrl)
    t.equal((await callOps(gateway.opsUrl, me, { headers: { cookie } })).status, 200)
    const changed = { ...change, password: hashed(change.password) }
    const users = { alice: changed }
    writeFileSync(join(gateway.folder, 'users.yaml'), stringify({ users }))
    await gateway.ops('/ops/api/reload', { json: { yes: true } })
    const { status } = await callOps(gateway.opsUrl, me, { headers: { cookie } })
    t.equal(status, 401, name)
  }
})

t.test('no answer may be framed, sniffed, stored or read by another site', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  for (const path of ['/healthz', '/readyz', me, '/nowhere', '/metrics']) {
    const { headers } = await callOps(opsUrl, path, {})
    t.match(headers, {
      'content-security-policy': /default-src 'none'.*script-src 'self';.*frame-ancestors 'none'/,
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'referrer-policy': 'no-referrer'
    })
    t.notMatch(headers['content-security-policy'], /unsafe/)
    t.equal(headers['access-control-allow-origin'], undefined)
  }
})

t.test('the form of the sign-in needs no account', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  const page = await callOps(opsUrl, '/ops/', { headers: { 'sec-fetch-site': 'cross-site' } })
  t.match(page, { status: 200, headers: { 'content-type': /html/, 'x-frame-options': 'DENY' } })
  t.match(page.text, /<title>Sign in/)
})

t.test('CONNECT, long headers and long bodies are refused', async t => {
  const { opsUrl, ops } = await testGateway(t.after, withRole)
  const host = 'host: 127.0.0.1'
  t.match(await raw(opsUrl, `CONNECT a:1 HTTP/1.1\r\n${host}\r\n\r\n`), {
    status: 405
  })
  const long = `GET /healthz HTTP/1.1\r\n${host}\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`
  t.match(await raw(opsUrl, long), { status: 431 })
  const body = { json: { user: 'a'.repeat(70_000) } }
  t.equal((await ops('/ops/api/sessions/close', body)).status, 413)
})

t.test('what two programs could read in two ways is refused, whoever sends it', async t => {
  const { opsUrl } = await testGateway(t.after, withRole)
  const { cookie } = await signInToOps(opsUrl)
  const { host } = new URL(opsUrl)
  const own = `host: ${host}`
  const ask = async (lines: readonly string[]) =>
    await raw(opsUrl, `${[...lines, `cookie: ${cookie}`].join('\r\n')}\r\n\r\n`)
  const many = Array.from({ length: 2100 }, () => 'x:')
  for (const request of [
    [`GET ${me} HTTP/1.1`, own, 'host: evil.example'],
    [`GET ${me} HTTP/1.1`, own, own],
    [`GET ${me} HTTP/1.1`, own, ...many, 'host: evil.example'],
    [`GET ${me} HTTP/2.0`, own],
    [`GET http://${host}${me} HTTP/1.1`, own],
    [`GET http://evil.example${me} HTTP/1.1`, own],
    ['POST /ops/api/reload HTTP/1.0', own, 'transfer-encoding: chunked']
  ]) {
    const answer = await ask(request)
    t.equal(answer.status, 400, request.slice(0, 3).join(' '))
    t.match(answer.body, /"code":"request.malformed"/)
  }
  t.equal((await ask([`GET ${me} HTTP/1.1`, own])).status, 200)
  t.equal((await raw(opsUrl, 'GET /healthz HTTP/1.0\r\n\r\n')).status, 200, 'a plain probe')
})

t.test('a replica with an older users file refuses an operator, and ends no session', async t => {
  const { url } = await testRedis(t.after)
  const hash = hashOf(password)
  const replica = async (roles: readonly string[]) => {
    const gateway = await testGateway(
      t.after,
      {
        gateway: {
          ops: { role: 'admin' },
          redis: { url, commandTimeout: '20s' },
          session: { secrets: ['${SESSION_SECRET}'] }
        },
        users: { users: { bob: { password: hash, roles } } }
      },
      { SESSION_SECRET: 'a secret of at least thirty-two characters' }
    )
    await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
    return gateway
  }
  const old = await replica(['user'])
  const current = await replica(['user', 'admin'])
  const { cookie } = await signInToOps(current.opsUrl, 'bob')
  const statusAt = async ({ opsUrl }: typeof old) =>
    (await callOps(opsUrl, me, { headers: { cookie } })).status
  t.equal(await statusAt(current), 200)
  t.equal(await statusAt(old), 401)
  t.equal(await statusAt(current), 200, 'it lives')
})

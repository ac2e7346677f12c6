/** The operators' pages of a real gateway, as a browser without scripts sees them. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { configFolder, noLockout, testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { callOps } from '../support/operator.ts'
import { operatorAt, textOf } from '../support/ops-pages.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { password } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { hashOf, testUsers } from '../support/users.ts'
import { json, testUpstream } from '../support/upstream.ts'

const ops = { role: 'admin' }
const paths = ['', 'requests', 'users', 'limits', 'config', 'maintenance'].map(
  path => `/ops/${path}`
)
const secrets = { SECRET: 'a session secret of at least thirty-two' }

async function start(t: Test, { gateway = {}, ...files }: Parameters<typeof configFolder>[0] = {}) {
  const upstream = await testUpstream(t.after, json(200, { ok: 1 }))
  const routes = {
    upstreams: { backend: { url: upstream.url } },
    routes: {
      orders: { path: '/api/orders', upstream: 'backend', methods: ['GET', 'POST'] },
      admins: { path: '/api/admins', upstream: 'backend', access: { roles: ['admin'] } }
    }
  }
  const all = { gateway: { ops, ...gateway }, routes, ...files }
  return { upstream, gateway: await testGateway(t.after, all, secrets) }
}

t.test('each page is HTML that runs nothing but its own, and has a link to each other', async t => {
  const { gateway } = await start(t)
  const { call } = await operatorAt(gateway.opsUrl)
  for (const path of [...paths, '/ops/requests/none', '/ops/users?user=2&source=users-file']) {
    const { status, headers, text } = await call(path)
    t.equal(status, 200, path)
    t.match(headers, {
      'content-type': /html/,
      'cache-control': 'no-store',
      'x-frame-options': 'DENY',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    })
    for (const other of paths) t.ok(text.includes(`href="${other}"`), `${path} → ${other}`)
    t.notMatch(text, /<script(?! type="module" src="\/ops\/live\.js")/, path)
    t.notMatch(text, /\sstyle=|\son[a-z]+=/, path)
  }
  t.match((await call('/ops/nothing')).status, 404)
})

t.test(
  'the files of the pages need no account, and other addresses lead to the first page',
  async t => {
    const { gateway } = await start(t)
    for (const [file, type] of [
      ['page.css', /css/],
      ['live.js', /javascript/],
      ['icon.svg', /svg/]
    ] as const) {
      const { status, headers } = await callOps(gateway.opsUrl, `/ops/${file}`, {})
      t.match([status, headers['content-type']], [200, type])
    }
    for (const path of ['/', '/ops']) {
      t.match(await callOps(gateway.opsUrl, path, {}), {
        status: 302,
        headers: { location: '/ops/' }
      })
    }
  }
)

t.test('an operator signs in by a form at the address that was asked for, and out', async t => {
  const { gateway } = await start(t)
  const { opsUrl } = gateway
  const address = '/ops/requests?status=5xx'
  t.match(textOf((await callOps(opsUrl, address, {})).text), /User name.*Password/)
  const { post, call } = await operatorAt(opsUrl)
  const form = (secret: string, username = 'alice') =>
    new URLSearchParams({ act: 'sign-in', username, password: secret })
  const wrong = await post(address, form('wrong'))
  t.match([wrong.status, textOf(wrong.text)], [401, /password is wrong/])
  t.match((await post(address, form(password, 'bob'))).status, 403, 'bob is no operator')
  t.match((await post(address, form(''))).status, 400)
  const right = await post(address, form(password))
  t.match(right, { status: 303, headers: { 'location': address, 'set-cookie': [/^console_ops=/] } })
  const cookie = right.headers['set-cookie']?.[0]?.split(';', 1)[0]
  t.match((await call(address, { headers: { cookie } })).text, /<h1>Requests/)
  const out = await callOps(opsUrl, '/ops/', {
    body: 'act=sign-out',
    headers: { cookie, 'origin': opsUrl, 'content-type': 'application/x-www-form-urlencoded' }
  })
  t.match(out, { status: 303, headers: { 'set-cookie': [/Max-Age=0/] } })
  t.match((await call('/ops/', { headers: { cookie } })).text, /<title>Sign in/)
})

t.test('forms of other origins, other types and of nobody do nothing', async t => {
  const { gateway } = await start(t)
  const { opsUrl } = gateway
  const cookie = await gateway.signIn('bob')
  const operator = await operatorAt(opsUrl)
  const act = { act: '/sessions/close', body: '{"everyone":true}' }
  const body = new URLSearchParams(act).toString()
  const form = 'application/x-www-form-urlencoded'
  const { port } = new URL(opsUrl)
  const cases = [
    ['another site', { 'origin': 'https://evil.example', 'content-type': form }, 403],
    ['another port', { 'origin': gateway.url, 'content-type': form }, 403],
    ['no origin', { 'content-type': form }, 403],
    ['a sandboxed frame', { 'origin': 'null', 'content-type': form }, 403],
    ['JSON', { 'origin': opsUrl, 'content-type': 'application/json' }, 415],
    [
      'a rebound name',
      {
        'origin': `http://evil.example:${port}`,
        'host': `evil.example:${port}`,
        'content-type': form
      },
      421
    ],
    ['nobody', { 'origin': opsUrl, 'content-type': form, 'cookie': undefined }, 401]
  ] as const
  for (const [name, headers, expected] of cases) {
    t.equal((await operator.call('/ops/users', { body, headers })).status, expected, name)
  }
  const unknown = await operator.post('/ops/users', new URLSearchParams({ act: '/nothing' }))
  t.equal(unknown.status, 400)
  const misfit = await operator.post('/ops/users', new URLSearchParams({ ...act, body: '{}' }))
  t.match([misfit.status, textOf(misfit.text)], [400, /Name the sessions/])
  t.equal((await gateway.call('/api/orders', { cookie })).status, 200, 'nobody was signed out')
})

t.test('hostile names, paths, agents and messages come out as text', async t => {
  const { gateway } = await start(t, {
    users: {
      users: { ...testUsers, '"><script>alert(1)</script>': { password: hashOf(password) } }
    },
    limits: {
      lockout: { ...noLockout, account: { failures: 1, every: '1h' } },
      limits: { 'signed-in': { by: 'user', max: 1, window: '1h' } }
    }
  })
  const hostile = '"><script>alert(1)</script>'
  const cookie = await gateway.signIn(hostile)
  for (const path of ['/api/orders', '/api/orders', `/api/${encodeURIComponent(hostile)}`]) {
    await gateway.call(path, {
      cookie,
      headers: { 'user-agent': hostile, 'x-forwarded-for': hostile }
    })
  }
  const locked = { username: `x${hostile}`, password: 'wrong' }
  await gateway.call('/api/auth/admin/login', { json: locked, headers: { 'user-agent': hostile } })
  const operator = await operatorAt(gateway.opsUrl)
  await operator.press('/ops/maintenance', 'Begin maintenance', { minutes: '5', message: hostile })
  const search = new URLSearchParams({ search: hostile, route: hostile, user: hostile })
  const seen = [
    ...paths,
    `/ops/users?${search.toString()}`,
    `/ops/requests?${search.toString()}`,
    `/ops/users?user=${encodeURIComponent(hostile)}&source=users-file`,
    `/ops/?done=${encodeURIComponent(hostile)}`
  ]
  for (const path of seen) {
    const { status, text } = await operator.call(path)
    t.equal(status, 200, path)
    t.notOk(text.includes('<script>'), path)
  }
  t.match(await operator.read('/ops/users'), hostile, 'as text it is there')
  t.match(await operator.read('/ops/maintenance'), hostile)
})

t.test('Overview: failed, refused, p99 of five minutes, routes and upstreams', async t => {
  const bad = await testUpstream(t.after, json(500, {}))
  const { gateway } = await start(t, {
    routes: {
      upstreams: { bad: { url: bad.url } },
      routes: { broken: { path: '/api/broken', upstream: 'bad', access: 'public' } }
    }
  })
  for (let count = 0; count < 10; count++) await gateway.call('/api/broken')
  for (let count = 0; count < 10; count++) await gateway.call('/api/nothing')
  const { read, call } = await operatorAt(gateway.opsUrl)
  await until('the second has been sampled', async () =>
    /Failed \(5xx\) up to [1-9]/.test(await read('/ops/'))
  )
  const text = await read('/ops/')
  t.match(text, /Refused \(4xx\) up to [1-9]/)
  t.match(text, /broken [\d.]+ 100\s%/)
  t.match(text, /bad http:\/\/127\.0\.0\.1:\d+/)
  t.match(text, /no Redis: one process/)
  t.match((await call('/ops/')).text, /<polyline\s+points="\d/)
})

t.test('Requests: those that failed or were refused, why, and the story of each', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  const { headers } = await gateway.call('/api/admins', { cookie })
  await gateway.call('/api/orders', { cookie, json: { a: 1 } })
  const id = headers.get('x-request-id') ?? ''
  const { read, call } = await operatorAt(gateway.opsUrl)
  const first = await call('/ops/requests')
  t.match(textOf(first.text), /403 GET \/api\/admins needs the role admin bob/)
  t.notMatch(first.text, /POST/, 'what went well')
  t.match(first.text, `href="/ops/requests/${id}"`)
  t.match(await read('/ops/requests?status='), /200 POST \/api\/orders/)
  t.match(await read('/ops/requests?status=5xx&route=&user='), /No request fits/)
  const story = await read(`/ops/requests/${id}`)
  t.match(story, /user has none of the roles that the route needs: admin/)
  t.match(story, /error route\.forbidden: .* to do /)
  t.match(story, /session [0-9a-f]{12}, .*old/)
  t.match(await read('/ops/requests/none'), /No request of this id is kept/)
})

t.test('Users: one found by a part of the name, their page, and the end of sessions', async t => {
  const { gateway } = await start(t, { gateway: { audit: { key: '${SECRET}' } } })
  const cookie = await gateway.signIn('bob')
  const other = await gateway.signIn('bob')
  const operator = await operatorAt(gateway.opsUrl)
  const statusOf = async (of: string) => (await gateway.call('/api/orders', { cookie: of })).status
  t.match(await operator.read('/ops/users?search=BO'), /bob users-file/)
  t.match(await operator.read('/ops/users?search=nobody'), /Nobody who is signed in fits/)
  const list = (await operator.call('/ops/users')).text
  const page = (/href="(\/ops\/users\?user=[^"]*)"/.exec(list)?.[1] ?? '').replace('&#38;', '&')
  t.match(await operator.read(page), /bob Sessions 2/)
  t.match(await operator.press(page, 'End session'), /The sessions have ended.*Sessions 1/)
  t.same([await statusOf(cookie), await statusOf(other)].toSorted(), [200, 401])
  t.match(await operator.press(page, 'End all sessions'), /Not signed in/)
  t.same([await statusOf(cookie), await statusOf(other)], [401, 401])
  const again = await gateway.signIn('bob')
  t.match(await operator.press('/ops/users', 'Sign everybody out'), /Nobody who is signed in fits/)
  t.equal(await statusOf(again), 401)
  t.match(await operator.read('/ops/'), /Overview/, 'the operator stays signed in')
  const line = linesIn(gateway.folder).findLast(({ act }) => act === 'sessions.close')
  t.match(line, { kind: 'act', operator: 'alice', via: 'session', outcome: 'done' })
})

t.test('Users: counts of limits are reset, a lockout is lifted', async t => {
  const { gateway } = await start(t, {
    limits: {
      lockout: { ...noLockout, account: { failures: 2, every: '1h' } },
      limits: { few: { by: 'user', max: 2, window: '1h' } }
    }
  })
  const cookie = await gateway.signIn('bob')
  const call = async () => (await gateway.call('/api/orders', { cookie })).status
  t.same([await call(), await call(), await call()], [200, 200, 429])
  const wrong = { json: { username: 'bob', password: 'wrong' } }
  for (let count = 0; count < 3; count++) await gateway.call('/api/auth/admin/login', wrong)
  const operator = await operatorAt(gateway.opsUrl)
  const page = '/ops/users?user=2&source=users-file'
  t.match(await operator.read(page), /few .*2 of 2.*Locked out of signing in 1.* bob .*429/)
  t.match(await operator.read('/ops/limits'), /few by user.*2 in 1.h.*bob.*over/)
  t.match(await operator.press(page, 'Count anew'), /The limits count anew.*Nothing is counted/)
  t.equal(await call(), 200)
  t.match(await operator.press(page, 'Lift'), /The lockout is lifted.*No lockout/)
  t.ok(await gateway.signIn('bob'))
})

t.test('Users: one is blocked and unblocked', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  const operator = await operatorAt(gateway.opsUrl)
  const page = '/ops/users?user=2&source=users-file'
  t.match(await operator.press(page, 'Block'), /The user is blocked.*Blocked by operators 1 /)
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 401)
  await t.rejects(gateway.signIn('bob'), /403/)
  t.match(await operator.press('/ops/users', 'Unblock'), /may sign in again.*No block/)
  t.ok(await gateway.signIn('bob'))
})

t.test('Users: a key for scripts is listed, and revoked', async t => {
  const { gateway } = await start(t)
  await gateway.ops('/ops/api/keys/create', { json: { name: 'nightly', roles: ['user'] } })
  const operator = await operatorAt(gateway.opsUrl)
  t.match(await operator.read('/ops/users'), /Keys for scripts 1 .*nightly user never.* operator/)
  t.match(await operator.press('/ops/users', 'Revoke'), /The key is revoked.*No key/)
})

t.test('Config: faults with file and line, the diff, and a reload', async t => {
  const { gateway } = await start(t)
  const operator = await operatorAt(gateway.opsUrl)
  t.match(await operator.read('/ops/config'), /Generation 1 .*The files hold what runs/)
  t.match(await operator.press('/ops/config', 'Reload'), /nothing to reload/)
  const limits = join(gateway.folder, 'limits.yaml')
  writeFileSync(limits, 'limits: { anew: { by: user, max: 7, window: 1m } }\n')
  t.match(await operator.press('/ops/config', 'Reload'), /The config of the files runs/)
  t.match(await operator.read('/ops/config'), /Generation 2.*Changes of the last reload.*anew/)
  appendFileSync(limits, 'unknown: {}\n')
  t.match(
    await operator.press('/ops/config', 'Reload'),
    /files were refused.*will not start again.*limits\.yaml:2/
  )
  t.match(await operator.read('/ops/limits'), /files are refused.*limits\.yaml:2/, 'on each page')
})

t.test('Config: a reload of most users needs its yes', async t => {
  const users = Object.fromEntries(
    Array.from({ length: 8 }, (_, index) => [`user${index}`, { password: hashOf(password) }])
  )
  const { gateway } = await start(t, { users: { users: { ...testUsers, ...users } } })
  const operator = await operatorAt(gateway.opsUrl)
  writeFileSync(
    join(gateway.folder, 'users.yaml'),
    JSON.stringify({ users: { alice: testUsers.alice } })
  )
  t.match(await operator.press('/ops/config', 'Reload'), /files were refused.*vanish/)
  t.match(await operator.press('/ops/config', 'Reload', { yes: 'on' }), /config of the files runs/)
})

t.test('Maintenance: all, or a route, begun and ended here', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  const status = async () => (await gateway.call('/api/orders', { cookie })).status
  const operator = await operatorAt(gateway.opsUrl)
  const page = '/ops/maintenance'
  const begin = async (extra: Record<string, string>) =>
    await operator.press(page, 'Begin maintenance', { minutes: '30', message: '', ...extra })
  t.match(await begin({ message: 'Back at noon.' }), /is begun.*alice.*every route.*Back at noon\./)
  t.match(await operator.read('/ops/'), /Maintenance by alice: closes every route until 20/)
  t.equal(await status(), 503)
  t.match(await operator.press(page, 'End all'), /open again.*Nothing is closed/)
  t.equal(await status(), 200)
  await begin({ routes: 'orders', writing: 'on' })
  t.equal(await status(), 200, 'only what changes data')
  t.match(await operator.read(page), /closes orders \(POST, PUT, PATCH, DELETE\)/)
  await operator.press(page, 'Open orders')
  t.match(await operator.read(page), /Nothing is closed/)
  t.match(await begin({ minutes: '999999' }), /at most 7 days ahead/)
})

t.test('what needs attention stands on each page: limits, lockouts, a restart', async t => {
  const { gateway } = await start(t, {
    limits: {
      lockout: { ...noLockout, account: { failures: 1, every: '1h' } },
      limits: { few: { by: 'user', max: 1, window: '1h' } }
    }
  })
  const { read } = await operatorAt(gateway.opsUrl)
  t.notMatch(await read('/ops/'), /Limits refuse|Locked out of|Wait for a restart/)
  const cookie = await gateway.signIn('bob')
  for (const expected of [200, 429]) {
    t.equal((await gateway.call('/api/orders', { cookie })).status, expected)
  }
  const wrong = { json: { username: 'carol', password: 'wrong' } }
  await gateway.call('/api/auth/admin/login', wrong)
  appendFileSync(join(gateway.folder, 'gateway.yaml'), '\nlog: { level: debug }\n')
  await gateway.reload('operator')
  const text = await read('/ops/config')
  t.match(text, /Limits refuse requests: few \(bob\)/)
  t.match(text, /Locked out of signing in: 1/)
  t.match(text, /Wait for a restart: log\.level/)
})

t.test('what needs attention stands on each page: upstream, sign-in, replicas, Redis', async t => {
  const redis = await testRedis(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const directory = {
    kind: 'ldap',
    urls: [`ldap://127.0.0.1:${await freePort()}`],
    base: 'dc=example',
    bind: { dn: 'cn=gateway', password: '${SECRET}' },
    user: { username: 'uid', id: 'entryUUID', name: 'cn' }
  }
  const files = (extra: object) => ({
    gateway: {
      redis: { url: redis.url },
      session: { secrets: ['${SECRET}'] },
      identity: { source: 'x-user-source' },
      login: { sources: { people: { kind: 'users-file', file: 'users.yaml' }, corp: directory } }
    },
    routes: {
      upstreams: { gone: { url: dead } },
      routes: { gone: { path: '/api/gone', upstream: 'gone', access: 'public' }, ...extra }
    }
  })
  const { gateway } = await start(t, files({}))
  await start(t, files({ more: { path: '/api/more', upstream: 'gone' } }))
  for (let count = 0; count < 10; count++) await gateway.call('/api/gone')
  const nobody = { json: { username: 'nobody', password: 'wrong' } }
  t.equal((await gateway.call('/api/auth/admin/login', nobody)).status, 503)
  const text = async () => textOf(await (await gateway.ops('/ops/limits')).text())
  await until('both replicas are known', async () => /different configs/.test(await text()))
  t.match(await text(), `Upstreams are down: gone (${dead})`)
  t.match(await text(), /Sign-in corp does not answer: ldap:\S+ connect ECONNREFUSED/)
  const { call } = await operatorAt(gateway.opsUrl)
  await redis.kill()
  await until('it is noticed', async () => /Redis does not answer/.test(await text()))
  t.match(await call('/ops/'), { status: 200, text: /Redis does not answer/ })
})

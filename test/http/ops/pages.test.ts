/** The operators' pages of a real gateway, as a browser without scripts sees them. */
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { audit, noLockout, password, testGateway } from '../../support/gateway.ts'
import { linesIn } from '../../support/ledger.ts'
import { callOps, operatorAt, textOf } from '../../support/operator.ts'
import { freePort } from '../../support/ports.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { hashOf, testUsers } from '../../support/users.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const ops = { role: 'admin' }
const paths = ['', 'requests', 'users', 'limits', 'config', 'maintenance'].map(
  path => `/ops/${path}`
)
const pageOfBob = '/ops/users?user=2&source=users-file'
const hostile = '"><script>alert(1)</script>'
const good = await testUpstream(t.teardown, json(200, { ok: 1 }))
const bad = await testUpstream(t.teardown, json(500, {}))
const gateway = await testGateway(t.teardown, {
  gateway: { ops, audit },
  routes: {
    upstreams: { good: { url: good.url }, bad: { url: bad.url } },
    routes: {
      orders: { path: '/api/orders', upstream: 'good', methods: ['GET', 'POST'] },
      admins: { path: '/api/admins', upstream: 'good', access: { roles: ['admin'] } },
      scarce: { path: '/api/scarce', upstream: 'good' },
      broken: { path: '/api/broken', upstream: 'bad', access: 'public' }
    }
  },
  limits: {
    lockout: { ...noLockout, account: { failures: 2, every: '1h' } },
    limits: { few: { by: 'user', max: 2, window: '1h', routes: ['scarce'] } }
  },
  users: { users: { ...testUsers, [hostile]: { password: hashOf(password) } } }
})
const { opsUrl, signIn } = gateway
const operator = await operatorAt(opsUrl)
const { call, post, read, press } = operator
const statusOf = async (path: string, cookie: string) =>
  (await gateway.call(`/api/${path}`, { cookie })).status
/** As somebody whose browser lacks the cookie. */
const asNobody = async (path: string) => await callOps(opsUrl, path, {})
const wrongFor = async (username: string, times: number, headers = {}) => {
  const options = { json: { username, password: 'wrong' }, headers }
  for (let n = 0; n < times; n++) await gateway.call('/api/auth/admin/login', options)
}

t.test('what needs attention stands on each page: limits, lockouts, a restart', async t => {
  t.notMatch(await read('/ops/'), /Limits refuse|Locked out of|Wait for a restart/)
  const cookie = await signIn('bob')
  for (const expected of [200, 200, 429]) t.equal(await statusOf('scarce', cookie), expected)
  await wrongFor('bob', 3)
  const text = await read('/ops/config')
  t.match(text, /Limits refuse requests: few \(bob\)/)
  t.match(text, /Locked out of signing in: 1/)

  t.match(await read(pageOfBob), /few .*2 \/ 2.*Locked out of signing in 1.* bob .*429/)
  t.match(await read('/ops/limits'), /few by user.*2 \/ 1.h.*bob.*over/)
  t.match(await press(pageOfBob, 'Count anew'), /Done: Counts a caller anew.*Nothing is counted/)
  t.equal(await statusOf('scarce', cookie), 200, 'counts of limits are reset')
  t.match(await press(pageOfBob, 'Lift'), /Done: Lifts the lockouts.*No lockout/)
  t.ok(await signIn('bob'), 'a lockout is lifted')
})

t.test('each page is HTML that runs nothing but its own, and has a link to each other', async t => {
  for (const path of [...paths, '/ops/requests/none', pageOfBob]) {
    const { status, headers, text } = await call(path)
    t.equal(status, 200, path)
    t.match(headers['content-type'], /html/)
    for (const other of paths) t.ok(text.includes(`href="${other}"`), `${path} → ${other}`)
    t.notMatch(text, /<script(?! type="module" src="\/ops\/live\.js")/, path)
    t.notMatch(text, /\sstyle=|\son[a-z]+=|\{\w+\}/, path)
  }
  t.match((await call('/ops/nothing')).status, 404)
})

t.test('an operator signs in by a form at the address that was asked for', async t => {
  const address = '/ops/requests?status=5xx'
  t.match(textOf((await asNobody(address)).text), /User name.*Password/)
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
})

t.test('forms of other origins, other types and of nobody do nothing', async t => {
  const cookie = await signIn('bob')
  const act = { act: '/sessions/close', body: '{"everyone":true}' }
  const body = new URLSearchParams(act).toString()
  const form = { 'content-type': 'application/x-www-form-urlencoded' }
  const evil = `evil.example:${new URL(opsUrl).port}`
  const cases = [
    ['another site', { ...form, origin: 'https://evil.example' }, 403],
    ['no origin', form, 403],
    ['JSON', { 'origin': opsUrl, 'content-type': 'application/json' }, 415],
    ['a rebound name', { ...form, origin: `http://${evil}`, host: evil }, 421],
    ['nobody', { ...form, origin: opsUrl, cookie: undefined }, 401]
  ] as const
  for (const [name, headers, expected] of cases) {
    t.equal((await call('/ops/users', { body, headers })).status, expected, name)
  }
  const unknown = await post('/ops/users', new URLSearchParams({ act: '/nothing' }))
  t.equal(unknown.status, 400)
  const misfit = await post('/ops/users', new URLSearchParams({ ...act, body: '{}' }))
  t.match([misfit.status, textOf(misfit.text)], [400, /Name a user/])
  t.equal(await statusOf('orders', cookie), 200, 'nobody was signed out')
})

t.test('hostile names, paths, agents and messages come out as text', async t => {
  const cookie = await signIn(hostile)
  const headers = { 'user-agent': hostile, 'x-forwarded-for': hostile }
  for (const path of ['scarce', 'scarce', 'scarce', encodeURIComponent(hostile)]) {
    await gateway.call(`/api/${path}`, { cookie, headers })
  }
  await wrongFor(`x${hostile}`, 3, headers)
  const message = { minutes: '5', message: hostile, routes: 'admins' }
  await press('/ops/maintenance', 'Begin maintenance', message)
  const search = new URLSearchParams({ search: hostile, route: hostile, user: hostile })
  const seen = [
    ...paths,
    `/ops/users?${search.toString()}`,
    `/ops/requests?${search.toString()}`,
    `/ops/users?user=${encodeURIComponent(hostile)}&source=users-file`,
    `/ops/?done=${encodeURIComponent(hostile)}`
  ]
  for (const path of seen) {
    const { status, text } = await call(path)
    t.equal(status, 200, path)
    t.notOk(text.includes('<script>'), path)
  }
  t.match(await read('/ops/users'), hostile, 'as text it is there')
  t.match(await read('/ops/maintenance'), hostile)
  await press('/ops/maintenance', 'End all')
})

t.test('Overview: failed, refused, p99 of five minutes, routes and upstreams', async t => {
  for (let count = 0; count < 10; count++) await gateway.call('/api/broken')
  for (let count = 0; count < 10; count++) await gateway.call('/api/nothing')
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
  const cookie = await signIn('bob')
  const { headers } = await gateway.call('/api/admins', { cookie })
  await gateway.call('/api/orders', { cookie, json: { a: 1 } })
  const id = headers.get('x-request-id') ?? ''
  const first = await call('/ops/requests?route=admins')
  t.match(textOf(first.text), /403 GET \/api\/admins needs the role admin bob/)
  t.match(first.text, `href="/ops/requests/${id}"`)
  t.notMatch(await read('/ops/requests?route=orders'), /POST/, 'what went well')
  t.match(await read('/ops/requests?status=&route=orders'), /200 POST \/api\/orders/)
  t.match(await read('/ops/requests?status=5xx&route=orders&user='), /No request fits/)
  const story = await read(`/ops/requests/${id}`)
  t.match(story, /user has none of the roles that the route needs: admin/)
  t.match(story, /error route\.forbidden: .* to do /)
  t.match(story, /session [0-9a-f]{12}, .*old/)
  t.match(await read('/ops/requests/none'), /No request of this id is kept/)
})

t.test('Users: one found by a part of the name, their page, and the end of sessions', async t => {
  await press('/ops/users', 'Sign everybody out')
  const cookies = [await signIn('bob'), await signIn('bob')]
  const statuses = async () => await Promise.all(cookies.map(each => statusOf('orders', each)))
  t.match(await read('/ops/users?search=BO'), /bob users-file/)
  t.match(await read('/ops/users?search=nobody'), /Nobody who is signed in fits/)
  const list = (await call('/ops/users')).text
  const page = (/href="(\/ops\/users\?user=[^"]*)"/.exec(list)?.[1] ?? '').replace('&#38;', '&')
  t.match(await read(page), /bob Sessions 2/)
  t.match(await press(page, 'End session'), /Done: Closes one session.*Sessions 1/)
  t.same((await statuses()).toSorted(), [200, 401])
  t.match(await press(page, 'End all sessions'), /Not signed in/)
  t.same(await statuses(), [401, 401])
  const again = await signIn('bob')
  t.match(await press('/ops/users', 'Sign everybody out'), /Nobody who is signed in fits/)
  t.equal(await statusOf('orders', again), 401)
  t.match(await read('/ops/'), /Overview/, 'the operator stays signed in')
  const line = linesIn(gateway.folder).findLast(({ act }) => act === 'sessions.close')
  t.match(line, { kind: 'act', operator: 'alice', via: 'session', outcome: 'done' })
})

t.test('Users: one is blocked and unblocked, a key for scripts is listed and revoked', async t => {
  const cookie = await signIn('bob')
  t.match(await press(pageOfBob, 'Block'), /Done: Ends the sessions.*Blocked by operators 1 /)
  t.equal(await statusOf('orders', cookie), 401)
  await t.rejects(signIn('bob'), /403/)
  t.match(await press('/ops/users', 'Unblock'), /Done: Lets a user sign in.*No block/)
  t.ok(await signIn('bob'))

  await gateway.ops('/ops/api/keys/create', { json: { name: 'nightly', roles: ['user'] } })
  t.match(await read('/ops/users'), /Keys for scripts 1 .*nightly user never.* operator/)
  t.match(await press('/ops/users', 'Revoke'), /Done: Ends a key.*No key/)
})

t.test('Maintenance: all, or a route, begun and ended here', async t => {
  const cookie = await signIn('bob')
  const page = '/ops/maintenance'
  const begin = async (extra: Record<string, string>) =>
    await press(page, 'Begin maintenance', { minutes: '30', message: '', ...extra })
  const begun = await begin({ message: 'Back at noon.' })
  t.match(begun, /Done: Closes routes.*alice.*every route.*Back at noon\./)
  t.match(await read('/ops/'), /maintenance: alice closes every route until 20/)
  t.equal(await statusOf('orders', cookie), 503)
  t.match(await press(page, 'End all'), /Done: Opens what.*Nothing is closed/)
  t.equal(await statusOf('orders', cookie), 200)
  await begin({ routes: 'orders', writing: 'on' })
  t.equal(await statusOf('orders', cookie), 200, 'only what changes data')
  t.match(await read(page), /closes orders \(POST, PUT, PATCH, DELETE\)/)
  await press(page, 'Open orders')
  t.match(await read(page), /Nothing is closed/)
  t.match(await begin({ minutes: '999999' }), /at most 7 days ahead/)
  const acts = linesIn(gateway.folder).filter(({ act }) => String(act).startsWith('maintenance.'))
  t.match(acts.slice(-3), [
    { act: 'maintenance.begin', outcome: 'done', operator: 'alice', detail: { until: /^20/ } },
    { act: 'maintenance.end', outcome: 'done' },
    { act: 'maintenance.begin', outcome: 'failed', code: 'request.malformed' }
  ])
})

t.test('Config: faults with file and line, the diff, and a reload', async t => {
  const reload = async (extra?: Record<string, string>) =>
    await press('/ops/config', 'Reload', extra)
  const put = (file: string, text: string) => writeFileSync(join(gateway.folder, file), text)
  t.match(await read('/ops/config'), /Generation 1,.*The files hold what runs/)
  t.match(await reload(), /Generation 1,.*The files hold what runs/)
  put('limits.yaml', 'limits: { anew: { by: user, max: 7, window: 1m } }\n')
  t.match(await reload(), /Done: Reads the config files and runs their config/)
  t.match(await read('/ops/config'), /Generation 2.*Changes of the last reload.*anew/)
  appendFileSync(join(gateway.folder, 'limits.yaml'), 'unknown: {}\n')
  t.match(await reload(), /the files were refused.*will not start again.*limits\.yaml:2/)
  t.match(await read('/ops/limits'), /config: .*refused.*limits\.yaml:2/, 'on each page')
  put('limits.yaml', 'limits: { anew: { by: user, max: 7, window: 1m } }\n')
  appendFileSync(join(gateway.folder, 'gateway.yaml'), '\nlog: { level: debug }\n')
  await reload()
  t.match(await read('/ops/limits'), /Wait for a restart: log\.level/)

  const users = Object.fromEntries(
    Array.from({ length: 8 }, (_, index) => [`user${index}`, { password: testUsers.bob.password }])
  )
  put('users.yaml', JSON.stringify({ users: { ...testUsers, ...users } }))
  await reload()
  put('users.yaml', JSON.stringify({ users: { alice: testUsers.alice } }))
  t.match(await reload(), /the files were refused.*vanish/, 'most users need a yes')
  t.match(await reload({ yes: 'on' }), /Done: Reads the config files/)
})

t.test('what needs attention stands on each page: upstream, sign-in, replicas, Redis', async t => {
  const redis = await testRedis(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const directory = {
    ...{ kind: 'ldap', urls: [`ldap://127.0.0.1:${await freePort()}`], base: 'dc=example' },
    bind: { dn: 'cn=gateway', password: 'file:session-secret' },
    user: { username: 'uid', id: 'entryUUID', name: 'cn' }
  }
  const start = async (more: object) => {
    const people = { kind: 'users-file', file: 'users.yaml' }
    return await testGateway(t.after, {
      gateway: {
        ops: { ...ops, sources: ['people'] },
        identity: { source: 'x-user-source' },
        login: { sources: { people, corp: directory } }
      },
      redis: redis.url,
      backend: dead,
      routes: { routes: { gone: { access: 'public' }, ...more } }
    })
  }
  const one = await start({})
  await start({ more: {} })
  for (let count = 0; count < 10; count++) await one.call('/api/gone')
  t.equal((await one.attempt('nobody')).status, 503)
  const text = async () => textOf(await (await one.ops('/ops/limits')).text())
  await until('both replicas are known', async () => /different configs/.test(await text()))
  t.match(await text(), `upstream b: degraded, 1 of 1 addresses: ${dead} does not work`)
  t.match(await text(), /sign-in corp: does not answer since 20\S+: ldap:\S+ connect ECONNREFUSED/)
  const signedIn = await operatorAt(one.opsUrl)
  const latency = /^console_gateway_redis_latency_seconds 0\.\d/m
  await until('Redis was checked', async () => latency.test(await one.metrics()))
  t.notMatch(await text(), /redis:/, 'what works needs no attention')
  await redis.kill()
  await until('it is noticed', async () => /redis: away/.test(await text()))
  t.match(await signedIn.call('/ops/'), { status: 200, text: /redis: away/ })
  const metrics = await one.metrics()
  t.notMatch(metrics, /^console_gateway_users_signed_in /m, 'no number where nobody can count')
  t.notMatch(metrics, latency, 'no time where nobody answers')
  const { status } = await signedIn.post('/ops/', new URLSearchParams({ act: 'sign-out' }))
  t.equal(status, 503, 'a sign-out that other replicas cannot know')
  t.equal((await signedIn.call('/ops/api/me')).status, 401, 'it holds here')
})

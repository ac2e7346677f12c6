/** How long a session lives, what makes it live longer, and who is told, proxies too. */
import t from 'tap'
import { stopClock } from '../support/clock.ts'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const minute = 60_000
const hour = 60 * minute
const refreshPath = '/auth/refresh'
const post = { method: 'POST' }
const pass = stopClock(t.teardown)
const backend = await testUpstream(t.teardown, json(200, {}))
const files = (gateway: object = {}) => ({
  gateway: {
    server: { origins: ['https://console.example.com'] },
    session: { idle: '30m', absolute: '1h', remembered: { idle: '1d', absolute: '2d' } },
    ...gateway
  },
  backend: backend.url,
  routes: {
    endpoints: { refresh: { path: refreshPath }, check: {} },
    routes: { notices: {}, orders: {}, open: { access: 'public' } }
  }
})
const gateway = await testGateway(t.teardown, files())
const session = async (cookie: string) => await gateway.call('/api/session', { cookie })
const refresh = async (cookie: string) => await gateway.call(refreshPath, { ...post, cookie })
const check = async (cookie: string, query = '', headers = {}) =>
  await gateway.call(`/api/auth/check${query}`, { cookie, headers })
const status = async (path: string, cookie: string) => (await gateway.call(path, { cookie })).status

t.test('GET /api/session says who, and how long is left; it does not extend', async t => {
  const cookie = await gateway.signIn()
  t.match((await session(cookie)).json, {
    success: true,
    data: {
      id: /^[\w-]{12}$/,
      user: { id: '1', username: 'alice' },
      roles: ['admin', 'user'],
      idleIn: 1800,
      absoluteIn: 3600
    }
  })
  for (let minutes = 29; minutes > 0; minutes--) {
    pass(minute)
    const left = { idleIn: 60 * minutes, absoluteIn: 60 * (30 + minutes) }
    t.match((await session(cookie)).json.data, left)
  }
  pass(minute)
  t.match(await session(cookie), { status: 401, json: { errorCode: 'session.idle' } })
  t.equal((await gateway.call('/api/session')).status, 401)
})

t.test('each signed-in answer tells the seconds left', async t => {
  const cookie = await gateway.signIn()
  const left = async (path: string) => {
    const { headers } = await gateway.call(path, { cookie })
    return [headers.get('x-session-idle-in'), headers.get('x-session-absolute-in')]
  }
  pass(minute)
  t.same(await left('/api/notices'), ['1740', '3540'])
  for (const path of ['/api/account/profile', '/api/orders']) {
    t.same(await left(path), ['1800', '3540'], path)
  }
  t.same(await left('/api/open'), [null, null])
})

t.test('POST /api/session/extend sets the idle clock anew', async t => {
  const cookie = await gateway.signIn()
  pass(29 * minute)
  t.equal((await session(cookie)).json.data.idleIn, 60)
  const extend = (more: object = {}) =>
    gateway.call('/api/session/extend', { ...post, cookie, ...more })
  t.equal((await extend({ headers: { origin: 'https://evil.example' } })).status, 403)
  t.equal((await extend({ method: 'GET' })).status, 405)
  t.equal((await session(cookie)).json.data.idleIn, 60)
  const extended = await extend()
  t.match(extended, { status: 200, json: { data: { idleIn: 1800 } } })
  t.equal(extended.headers.get('x-session-idle-in'), '1800')
})

t.test('polling notices keeps nobody signed in; other calls do', async t => {
  const [poller, worker] = [await gateway.signIn(), await gateway.signIn('bob')]
  for (let minutes = 1; minutes <= 40; minutes++) {
    pass(minute)
    const expected = minutes < 30 ? 200 : 401
    t.equal(await status('/api/notices', poller), expected, `polling, minute ${minutes}`)
    t.equal(await status('/api/orders', worker), 200, `working, minute ${minutes}`)
  }
})

t.test('a refresh tells the time left, and keeps no forgotten tab signed in', async t => {
  const cookie = await gateway.signIn()
  for (const [idleIn, absoluteIn] of [
    [1260, 3060],
    [720, 2520],
    [180, 1980]
  ] as const) {
    pass(9 * minute)
    const { json: body, headers } = await refresh(cookie)
    t.match(body.data, { user: { username: 'alice' }, idleIn, absoluteIn })
    const told = ['x-session-idle-in', 'x-session-absolute-in'].map(name => headers.get(name))
    t.same(told, [String(idleIn), String(absoluteIn)])
  }
  pass(9 * minute)
  t.match(await refresh(cookie), { status: 401, json: { errorCode: 'session.idle' } })
  t.equal(await status('/api/orders', cookie), 401)
})

t.test('use between refreshes keeps a session alive until its absolute end', async t => {
  const cookie = await gateway.signIn()
  for (let times = 1; times <= 2; times++) {
    pass(20 * minute)
    t.equal(await status('/api/orders', cookie), 200)
    const { data } = (await refresh(cookie)).json
    t.equal(data.absoluteIn, 3600 - 1200 * times)
    t.ok(data.idleIn > 20 * 60 - 60 && data.idleIn <= data.absoluteIn, 'extended')
    t.equal((await session(cookie)).json.data.idleIn, data.idleIn)
  }
  pass(20 * minute)
  t.match(await refresh(cookie), { status: 401, json: { errorCode: 'session.absolute' } })
})

t.test('a remembered session has its own idle and absolute ends', async t => {
  const cookie = await gateway.signIn('alice', { autoLogin: true })
  for (let times = 0; times < 2; times++) {
    pass(23 * hour)
    t.equal(await status('/api/orders', cookie), 200)
  }
  pass(2 * hour + minute)
  t.match(await session(cookie), { json: { errorCode: 'session.absolute' } })
})

t.test('only the session’s cookie refreshes; without config nothing does', async t => {
  const [, value = ''] = (await gateway.signIn()).split('=')
  const fields: ReadonlyArray<Record<string, string>> = [
    { authorization: `Bearer ${value}` },
    { 'x-access-token': value },
    { cookie: 'console_sid=forged.forged' }
  ]
  for (const headers of fields) {
    const refreshToken = { refreshToken: value }
    const path = `${refreshPath}?token=${value}`
    const refused = await gateway.call(path, { ...post, headers, json: refreshToken })
    t.match(refused, { status: 401, json: { errorCode: 'session.none' } })
  }
  const without = await testGateway(t.after)
  t.equal((await without.call(refreshPath, post)).status, 404)
  t.equal((await without.call('/api/auth/check')).status, 404, 'nor does it answer proxies')
})

t.test('after the end a console that repeats and refreshes hears the sign-out code', async t => {
  const errors = { 'session.*': { code: '8888', status: 200 } }
  const custom = { refreshCodes: ['9999'], errors }
  const envelope = { dialect: 'custom', successCode: '0000', custom }
  const { call, signIn } = await testGateway(t.after, files({ envelope }))
  const cookie = await signIn()
  pass(9 * 60 * minute)
  for (const path of ['/api/orders', refreshPath, '/api/orders', refreshPath]) {
    const method = path === refreshPath ? 'POST' : 'GET'
    t.match(await call(path, { method, cookie }), { status: 200, json: { code: '8888' } })
  }
})

t.test(
  'a proxy’s check: 204 with the identity, 401 without a session, 403 without any of the roles',
  async t => {
    const [admin, user] = [await gateway.signIn(), await gateway.signIn('bob')]
    const answer = await check(admin)
    t.equal(answer.status, 204)
    t.equal(answer.headers.get('x-user-name'), 'alice')
    t.match(answer.headers.get('x-user-roles'), 'admin')
    t.equal((await check(user)).headers.get('x-user-name'), 'bob')
    const none = await check('')
    t.match(none, { status: 401, json: { errorCode: 'session.none' } })
    t.equal(none.headers.get('x-user-name'), null)
    t.equal((await check(admin, '?role=admin')).status, 204)
    t.equal((await check(admin, '?role=nobody&role=admin')).status, 204)
    t.match(await check(user, '?role=admin'), {
      status: 403,
      json: { errorCode: 'route.forbidden' }
    })
    t.equal((await check(user, '?role=admin')).headers.get('x-user-name'), null)
    t.equal(await gateway.status('/api/auth/check', { method: 'HEAD', cookie: admin }), 204)
    t.equal(await gateway.status('/api/auth/check', { method: 'POST', cookie: admin }), 405)
    await gateway.call('/api/account/logout', { method: 'POST', cookie: admin })
    t.equal((await check(admin)).status, 401)
  }
)

t.test('a proxy’s check refuses a change that another page asks for', async t => {
  const cookie = await gateway.signIn()
  const evil = { origin: 'https://evil.example' }
  const own = { origin: 'https://console.example.com' }
  for (const name of ['x-forwarded-method', 'x-original-method']) {
    t.equal((await check(cookie, '', { ...evil, [name]: 'POST' })).status, 403)
    t.equal((await check(cookie, '', { ...own, [name]: 'POST' })).status, 204)
    t.equal((await check(cookie, '', { ...evil, [name]: 'GET' })).status, 204)
  }
})

import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { stopClock } from '../../support/clock.ts'
import { cookieOf, password, testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const profile = '/api/account/profile'
const minute = 60_000

t.test('GET /api/session says who, and how long is left; it does not extend', async t => {
  const pass = stopClock(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { session: { idle: '30m', absolute: '1h' } }
  })
  const cookie = await gateway.signIn()
  const first = await gateway.call('/api/session', { cookie })
  t.match(first.json, {
    success: true,
    data: { id: /^[\w-]{12}$/, user: { id: '1', username: 'alice' }, roles: ['admin', 'user'] }
  })
  t.match(first.json.data, { idleIn: 1800, absoluteIn: 3600 })
  for (let minutes = 29; minutes > 0; minutes--) {
    pass(minute)
    t.match((await gateway.call('/api/session', { cookie })).json.data, {
      idleIn: 60 * minutes,
      absoluteIn: 60 * (30 + minutes)
    })
  }
  pass(minute)
  t.match(
    await gateway.call('/api/session', { cookie }),
    { status: 401, json: { errorCode: 'session.idle' } },
    'asking for it all the time did not keep it alive'
  )
  t.equal((await gateway.call('/api/session')).status, 401)
})

t.test('POST /api/session/extend sets the idle clock anew', async t => {
  const pass = stopClock(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { session: { idle: '10m', absolute: '1h' } }
  })
  const cookie = await gateway.signIn()
  pass(9 * minute)
  t.equal((await gateway.call('/api/session', { cookie })).json.data.idleIn, 60)
  const extended = await gateway.call('/api/session/extend', { method: 'POST', cookie })
  t.equal(extended.status, 200)
  t.equal(extended.json.data.idleIn, 600)
  t.equal(extended.headers.get('x-session-idle-in'), '600')
  t.equal(
    (
      await gateway.call('/api/session/extend', {
        method: 'POST',
        cookie,
        headers: { origin: 'https://evil.example' }
      })
    ).status,
    403
  )
  t.equal((await gateway.call('/api/session/extend', { cookie })).status, 405)
})

t.test('an extension of a session that is closed on the way is 401', async t => {
  const gateway = await testGateway(t.after)
  const cookie = await gateway.signIn()
  const body = '{}'
  const extension = request(`${gateway.url}/api/session/extend`, {
    method: 'POST',
    headers: {
      cookie,
      'content-type': 'application/json',
      'content-length': body.length,
      'expect': '100-continue'
    }
  })
  const answered = once(extension, 'response') as Promise<[IncomingMessage]>
  // The session is looked up before the body is read.
  await once(extension, 'continue')
  t.equal((await gateway.call('/api/account/logout', { method: 'POST', cookie })).status, 200)
  extension.end(body)
  const [response] = await answered
  t.equal(response.statusCode, 401)
  t.match(await text(response), '"errorCode":"session.revoked"')
})

t.test(
  'two users of two sources with one id are two: lists, closes, limits and requests in flight',
  async t => {
    const upstream = await testUpstream(t.after, json(200, { user: { id: '1' } }))
    const login = {
      kind: 'upstream-login',
      upstream: 'backend',
      path: '/login',
      user: { id: 'user.id' }
    }
    const gateway = await testGateway(t.after, {
      gateway: {
        login: { sources: { staff: { kind: 'users-file', file: 'users.yaml' }, backend: login } },
        identity: { source: 'x-user-source' }
      },
      routes: {
        upstreams: { backend: { url: upstream.url } },
        routes: { echo: { path: '/api/echo', upstream: 'backend' } }
      },
      limits: { limits: { user: { by: 'user', max: 2, window: '1m', routes: ['echo'] } } }
    })
    const [alice, carol] = [await gateway.signIn('alice'), await gateway.signIn('carol')]
    const echo = async (cookie: string) => (await gateway.call('/api/echo', { cookie })).status
    t.same([await echo(alice), await echo(alice), await echo(alice)], [200, 200, 429])
    t.equal(await echo(carol), 200, 'the limit counts each of them')
    t.match(upstream.seen.at(-1)?.headers, {
      'x-user-id': '1',
      'x-user-source': 'backend'
    })
    t.match((await gateway.call('/api/session/list', { cookie: alice })).json, {
      total: 1,
      data: [{ source: 'staff' }]
    })
    t.match(
      (await gateway.call('/api/session/close', { cookie: alice, json: { all: true } })).json,
      { data: { closed: 1 } }
    )
    t.equal((await gateway.call('/api/session', { cookie: carol })).status, 200)
  }
)

t.test('each signed-in answer tells the seconds left, unless config says no', async t => {
  stopClock(t.after)
  const backend = await testUpstream(t.after, json(200, {}))
  const routes = {
    upstreams: { b: { url: backend.url } },
    routes: {
      orders: { path: '/api/orders', upstream: 'b' },
      open: { path: '/api/open', access: 'public', upstream: 'b' }
    }
  }
  const gateway = await testGateway(t.after, { routes })
  const cookie = await gateway.signIn()
  for (const path of [profile, '/api/orders']) {
    const { headers } = await gateway.call(path, { cookie })
    t.same(
      [headers.get('x-session-idle-in'), headers.get('x-session-absolute-in')],
      ['1800', '28800'],
      path
    )
  }
  t.equal((await gateway.call('/api/open', { cookie })).headers.get('x-session-idle-in'), null)
})

t.test('polling notices keeps nobody signed in; other calls do', async t => {
  const pass = stopClock(t.after)
  const backend = await testUpstream(t.after, json(200, []))
  const gateway = await testGateway(t.after, {
    gateway: { session: { idle: '30m' } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        notices: { path: '/api/notices', upstream: 'b' },
        orders: { path: '/api/orders', upstream: 'b' }
      }
    }
  })
  const [poller, worker] = [await gateway.signIn(), await gateway.signIn('bob')]
  for (let minutes = 1; minutes <= 40; minutes++) {
    pass(minute)
    t.equal(
      (await gateway.call('/api/notices', { cookie: poller })).status,
      minutes < 30 ? 200 : 401,
      `polling, minute ${minutes}`
    )
    t.equal(
      (await gateway.call('/api/orders', { cookie: worker })).status,
      200,
      `working, minute ${minutes}`
    )
  }
})

t.test('users see their own sessions, and close one, the others, or all', async t => {
  const gateway = await testGateway(t.after)
  const sign = async (agent: string) =>
    cookieOf(
      await gateway.call('/api/auth/admin/login', {
        json: { username: 'alice', password },
        headers: { 'user-agent': agent }
      })
    )
  const [laptop, phone, tablet] = [await sign('Laptop'), await sign('Phone'), await sign('Tablet')]
  const bob = await gateway.signIn('bob')
  const status = async (cookie: string) => (await gateway.call(profile, { cookie })).status
  const { json: listed } = await gateway.call('/api/session/list', { cookie: laptop })
  t.match(listed, {
    total: 3,
    data: [
      { agent: 'Laptop', current: true, address: '127.0.0.1', startedAt: /Z$/, lastUsedAt: /Z$/ },
      { agent: 'Phone', current: false },
      { agent: 'Tablet', current: false }
    ]
  })
  t.notMatch(JSON.stringify(listed), (laptop.split('=')[1] ?? '').slice(0, 20))
  const close = (body: unknown, cookie = laptop) =>
    gateway.call('/api/session/close', { method: 'POST', cookie, json: body })
  t.match(
    await close({ id: listed.data[1].id }, bob),
    { status: 200, json: { data: { closed: 0 } } },
    'nobody closes another’s'
  )
  t.equal(await status(phone), 200)
  t.match(await close({ id: listed.data[1].id }), { status: 200, json: { data: { closed: 1 } } })
  t.match(await gateway.call(profile, { cookie: phone }), {
    status: 401,
    json: { errorCode: 'session.revoked' }
  })
  t.match((await close({ others: true })).json, { data: { closed: 1 } })
  t.same([await status(laptop), await status(tablet), await status(bob)], [200, 401, 200])
  for (const nonsense of [{}, { id: 7 }, { others: 'yes' }, [], null]) {
    t.equal((await close(nonsense)).status, 400)
  }
  const last = await close({ all: true })
  t.match(last.json, { data: { closed: 1 } })
  t.match(last.headers.getSetCookie()[0], /^console_sid=; Max-Age=0/)
  t.equal(await status(laptop), 401)
})

t.test(
  'a request to close sessions is small, and the log never holds what it gives as an id',
  async t => {
    const gateway = await testGateway(t.after)
    const cookie = await gateway.signIn()
    const close = (body: string) =>
      gateway.call('/api/session/close', {
        method: 'POST',
        cookie,
        headers: { 'content-type': 'application/json' },
        body
      })
    t.equal((await close(`{"id":"x","more":${'['.repeat(100_000)}`)).status, 413)
    t.equal((await close(`{"id":"${'x'.repeat(65)}"}`)).status, 400)
    const secret = 'a-whole-secret-that-was-pasted-here'
    t.match((await close(`{"id":"${secret}"}`)).json, { data: { closed: 0 } })
    const line = await gateway.logged(({ event }) => event === 'sessions.closed')
    t.match(line, { only: 'a-whole-…', closed: 0 })
    t.notMatch(JSON.stringify(gateway.log), secret)
    t.match(
      (await close('{"id":null,"others":true,"all":"no"}')).json,
      { data: { closed: 0 } },
      'nulls beside it are as if absent'
    )
  }
)

t.test('one sign-in too many ends the oldest session, which is told so; or is refused', async t => {
  const evicting = await testGateway(t.after, { gateway: { session: { perUser: { max: 2 } } } })
  const cookies = [await evicting.signIn(), await evicting.signIn(), await evicting.signIn()]
  t.same(
    await Promise.all(
      cookies.map(async cookie => (await evicting.call(profile, { cookie })).json.errorCode)
    ),
    ['session.replaced', undefined, undefined]
  )
  const refusing = await testGateway(t.after, {
    gateway: { session: { perUser: { max: 1, over: 'refuse' } } }
  })
  const first = await refusing.signIn()
  const second = await refusing.call('/api/auth/admin/login', {
    json: { username: 'alice', password }
  })
  t.match(second, { status: 409, json: { errorCode: 'login.too-many' } })
  t.same(
    second.headers.getSetCookie().filter(cookie => cookie.startsWith('console_sid=')),
    []
  )
  t.equal((await refusing.call(profile, { cookie: first })).status, 200)
})

t.test(
  'operators list and close sessions of anyone, or of everyone; a browser page cannot',
  async t => {
    const gateway = await testGateway(t.after)
    const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
    const status = async (cookie: string) => (await gateway.call(profile, { cookie })).status
    const post = async (body: unknown, headers: Record<string, string> = {}) =>
      await gateway.ops('/ops/api/sessions/close', { headers, json: body })
    t.match(await (await gateway.ops('/ops/api/sessions?user=1')).json(), {
      user: '1',
      sessions: [{ address: '127.0.0.1', source: 'users-file' }]
    })
    const everyones = (await (await gateway.ops('/ops/api/sessions')).json()) as {
      sessions: unknown[]
    }
    t.equal(everyones.sessions.length, 2, 'without a user: of everyone')
    for (const headers of [
      { origin: 'http://127.0.0.1:1' },
      { 'sec-fetch-site': 'cross-site' },
      { 'content-type': 'text/plain' }
    ]) {
      t.ok((await post({ user: '1' }, headers)).status >= 400, JSON.stringify(headers))
    }
    t.equal(await status(alice), 200)
    t.match(await (await post({ user: '1' })).json(), { closed: 1 })
    t.same([await status(alice), await status(bob)], [401, 200])
    t.match(await (await post({ everyone: true })).json(), { closed: 'everyone' })
    t.match(await gateway.call(profile, { cookie: bob }), {
      status: 401,
      json: { errorCode: 'session.revoked' }
    })
    t.equal(await status(await gateway.signIn('bob')), 200, 'later sessions are not affected')
    t.equal((await gateway.call('/sessions?user=1')).status, 404, 'not on the public listener')
  }
)

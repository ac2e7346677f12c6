/** The sessions of users: their own to see and close, so many at a time, each end in the ledger. */
import t, { type Test } from 'tap'
import { audit, cookieOf, type Files, password, testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const login = '/api/auth/admin/login'
const profile = '/api/account/profile'
const gateway = await testGateway(t.after)
const statuses = async (cookies: readonly string[]) =>
  await Promise.all(cookies.map(async cookie => await gateway.status(profile, { cookie })))
const close = async (cookie: string, body: unknown) =>
  await gateway.call('/api/session/close', { method: 'POST', cookie, json: body })
const revoked = { status: 401, json: { errorCode: 'session.revoked' } }

t.test('users see their own sessions, and close one, the others, or all', async t => {
  const sign = async (agent: string) => {
    const headers = { 'user-agent': agent }
    return cookieOf(await gateway.call(login, { json: { username: 'alice', password }, headers }))
  }
  const [laptop, phone, tablet] = [await sign('Laptop'), await sign('Phone'), await sign('Tablet')]
  const bob = await gateway.signIn('bob')
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
  const { id } = listed.data[1]
  const others = await close(bob, { id })
  t.match(others, { status: 200, json: { data: { closed: 0 } } }, 'nobody closes another’s')
  t.same(await statuses([phone]), [200])
  t.match(await close(laptop, { id }), { status: 200, json: { data: { closed: 1 } } })
  t.match(await gateway.call(profile, { cookie: phone }), revoked)
  t.match((await close(laptop, { others: true })).json, { data: { closed: 1 } })
  t.same(await statuses([laptop, tablet, bob]), [200, 401, 200])
  for (const nonsense of [{}, { id: 7 }, { others: 'yes' }, [], null]) {
    t.equal((await close(laptop, nonsense)).status, 400)
  }
  const last = await close(laptop, { all: true })
  t.match(last.json, { data: { closed: 1 } })
  t.match(last.headers.getSetCookie()[0], /^console_sid=; Max-Age=0/)
  t.same(await statuses([laptop, bob]), [401, 200])
})

t.test('a request to close is small, and the log never holds what it gives as an id', async t => {
  const cookie = await gateway.signIn()
  const send = async (body: string) => {
    const headers = { 'content-type': 'application/json' }
    return await gateway.call('/api/session/close', { method: 'POST', cookie, headers, body })
  }
  t.equal((await send(`{"id":"x","more":${'['.repeat(100_000)}`)).status, 413)
  t.equal((await send(`{"id":"${'x'.repeat(65)}"}`)).status, 400)
  const secret = 'a-whole-secret-that-was-pasted-here'
  t.match((await send(`{"id":"${secret}"}`)).json, { data: { closed: 0 } })
  await gateway.logged(({ event, only, closed }) => {
    return event === 'sessions.closed' && only === 'a-whole-…' && closed === 0
  })
  t.notMatch(JSON.stringify(gateway.log), secret)
  const nulls = await send('{"id":null,"others":true,"all":"no"}')
  t.match(nulls.json, { data: { closed: 0 } }, 'nulls beside it are as if absent')
})

const upstream = await testUpstream(t.after, (...exchange) => {
  const { username } = JSON.parse(String(exchange[2].body) || '{}') as { username?: string }
  const tenant = { ben: 'a b', bea: 'a b', carl: 'c' }[username ?? '']
  json(200, { id: tenant ? username : '1', profile: tenant && { tenant } })(...exchange)
})
const budget = { max: 2, window: '1h' }
const twoSources = await testGateway(t.after, {
  gateway: {
    login: { sources: { staff: { kind: 'users-file' } } },
    identity: { source: 'x-user-source' }
  },
  backend: upstream.url,
  source: { user: { id: 'id', profile: 'profile' } },
  routes: { routes: { echo: {}, shared: {} } },
  limits: {
    limits: {
      user: { ...budget, by: 'user', routes: ['echo'] },
      tenant: { ...budget, by: 'profile.tenant', routes: ['shared'] }
    }
  }
})

t.test('two users of two sources with one id are two', async t => {
  const { call, status, signIn } = twoSources
  const [alice, dora] = [await signIn('alice'), await signIn('dora')]
  const counted = await Array.fromAsync([alice, alice, alice, dora], async cookie => {
    return await status('/api/echo', { cookie })
  })
  t.same(counted, [200, 200, 429, 200], 'a limit counts each of them')
  t.match(upstream.seen.at(-1)?.headers, { 'x-user-id': '1', 'x-user-source': 'b' })
  const { json: listed } = await call('/api/session/list', { cookie: alice })
  t.match(listed, { total: 1, data: [{ source: 'staff' }] })
  const closed = await call('/api/session/close', { cookie: alice, json: { all: true } })
  t.match(closed.json, { data: { closed: 1 } })
  t.equal((await call('/api/session', { cookie: dora })).status, 200)
})

t.test('a limit may count all users of a tenant together', async t => {
  const { status, signIn } = twoSources
  const names = ['ben', 'bea', 'ben', 'bea', 'carl', 'alice']
  const counted = await Array.fromAsync(names, async name => {
    return await status('/api/shared', { cookie: await signIn(name) })
  })
  t.same(counted, [200, 200, 429, 429, 200, 200], 'who has none has a budget alone')
})

/** With a ledger: sessions that end without a sign-out or an operator have lines. */
const start = async (t: Test, files: Files = {}) =>
  await testGateway(t.after, { ...files, gateway: { audit, ...files.gateway } })

/** Waits for so many lines of ended sessions, which are all. */
async function revokedIn(folder: string, count: number) {
  const lines = () => linesIn(folder).filter(({ kind }) => kind === 'sessions.revoked')
  await until('its line is written', () => lines().length >= count)
  return lines()
}

t.test('sessions that a user closes, and those that a sign-in replaces, have a line', async t => {
  const { folder, call, signIn, ops } = await start(t, {
    gateway: { session: { perUser: { max: 2 } } }
  })
  const idOf = async (cookie: string): Promise<string> =>
    (await call('/api/session', { cookie })).json.data.id
  const oldest = await signIn()
  const first = await idOf(oldest)
  const second = await idOf(await signIn())
  const cookie = await signIn()
  const ended = { status: 401, json: { errorCode: 'session.replaced' } }
  t.match(await call(profile, { cookie: oldest }), ended)
  const third = await idOf(cookie)
  for (let times = 0; times < 2; times++) {
    await call('/api/session/close', { cookie, json: { others: true } })
  }
  const again = await call(login, { cookie, json: { username: 'alice', password } })
  await call('/api/account/logout', { method: 'POST', cookie: cookieOf(again) })
  await signIn('bob')
  await ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  await until('the act has its line', () =>
    linesIn(folder).some(({ outcome }) => outcome === 'done')
  )
  const alice = { user: 'alice', userId: '1', source: 'users-file', address: '127.0.0.1' }
  const replaced = { by: 'sign-in', reason: 'replaced' }
  const lines = await revokedIn(folder, 3)
  t.match(lines, [
    { ...alice, session: first, detail: replaced },
    { ...alice, session: second, requestId: /./, detail: { by: 'user', reason: 'revoked' } },
    { ...alice, session: third, requestId: /./, detail: replaced }
  ])
  t.equal(lines.length, 3, 'sign-outs and acts of operators have lines of their own')
})

t.test('a session whose back-end refuses to renew its token has a line', async t => {
  const backend = await testUpstream(t.after, (...exchange) => {
    const signedIn = { id: '7', token: 'T', refresh: 'R', expiresIn: 1 }
    const answer = exchange[2].url === '/login' ? json(200, signedIn) : json(401, {})
    answer(...exchange)
  })
  const { folder, call, signIn } = await start(t, {
    backend: { url: backend.url, credential: 'bearer' },
    source: {
      token: 'token',
      refreshToken: 'refresh',
      expires: { path: 'expiresIn' },
      refresh: { path: '/renew', body: { refresh: '{refreshToken}' }, token: 'token' }
    },
    routes: { routes: { orders: {} } }
  })
  const cookie = await signIn('carol')
  await until('the session has ended', async () => {
    await call('/api/orders', { cookie })
    return (await call('/api/session', { cookie })).status === 401
  })
  const carol = { user: 'carol', userId: '7', source: 'b', session: /^[\w-]{12}$/ }
  const detail = { by: 'upstream', reason: 'upstream' }
  t.match(await revokedIn(folder, 1), [{ ...carol, detail }])
})

t.end()

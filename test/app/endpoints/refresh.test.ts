import t, { type Test } from 'tap'
import { stopClock } from '../../support/clock.ts'
import { testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const minute = 60_000
const path = '/auth/refresh'
const post = { method: 'POST' }

interface Over {
  readonly refresh?: object
  readonly envelope?: object
  readonly session?: object
  readonly routes?: object
}

async function setUp(t: Test, { refresh = {}, envelope = {}, session = {}, routes = {} }: Over) {
  const backend = await testUpstream(t.after, json(200, {}))
  const gateway = await testGateway(t.after, {
    gateway: { envelope, session: { idle: '30m', absolute: '1h', ...session } },
    routes: {
      endpoints: { refresh: { path, ...refresh } },
      upstreams: { b: { url: backend.url } },
      routes: { list: { path: '/api/list', upstream: 'b' } },
      ...routes
    }
  })
  const cookie = await gateway.signIn()
  return {
    gateway,
    cookie,
    backend,
    refresh: async () => await gateway.call(path, { ...post, cookie }),
    use: async () => (await gateway.call('/api/list', { cookie })).status,
    idleIn: async () => (await gateway.call('/api/session', { cookie })).json.data?.idleIn
  }
}

t.test('without config there is no refresh endpoint', async t => {
  const gateway = await testGateway(t.after)
  t.equal((await gateway.call(path, post)).status, 404)
})

t.test('a refresh answers as config says, whatever body comes along', async t => {
  const answer = { json: { accessToken: '{token}', user: '{username}', expires: '{idleEndsAt}' } }
  const routes = { aliases: { '/auth/renew': path } }
  const envelope = { inertToken: 'inert' }
  const { gateway, cookie } = await setUp(t, { refresh: { answer }, envelope, routes })
  const bodies = [
    {},
    { json: { refreshToken: 'inert' } },
    { body: '{', headers: { 'content-type': 'application/json' } },
    { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    { body: 'inert', headers: { 'content-type': 'text/plain' } }
  ]
  for (const body of bodies) {
    const refreshed = await gateway.call(path, { ...post, cookie, ...body })
    t.equal(refreshed.status, 200)
    t.match(refreshed.json.data, { accessToken: 'inert', user: 'alice', expires: Number })
    t.ok(refreshed.json.data.expires > Date.now())
    t.same(refreshed.headers.getSetCookie(), [], 'the cookie stays')
  }
  t.equal((await gateway.call('/auth/renew', { ...post, cookie })).status, 200, 'an alias')
  t.equal((await gateway.call(path, { cookie })).status, 405)
})

t.test('without an answer in config it tells the time left', async t => {
  stopClock(t.after)
  const { refresh } = await setUp(t, {})
  const refreshed = await refresh()
  t.match(refreshed.json.data, { user: { username: 'alice' }, absoluteIn: 3600 })
  t.equal(refreshed.headers.get('x-session-absolute-in'), '3600')
  t.equal(refreshed.headers.get('x-session-idle-in'), String(refreshed.json.data.idleIn))
})

t.test('only the session’s cookie refreshes, and only from the same origin', async t => {
  const { gateway, cookie } = await setUp(t, {})
  const [, value = ''] = cookie.split('=')
  for (const headers of [
    { authorization: `Bearer ${value}` },
    { 'x-access-token': value },
    { cookie: 'console_sid=forged.forged' }
  ]) {
    const refused = await gateway.call(`${path}?token=${value}`, {
      ...post,
      headers: headers as Record<string, string>,
      json: { refreshToken: value }
    })
    t.match(refused, { status: 401, json: { errorCode: 'session.none' } })
  }
  const headers = { origin: 'https://evil.example' }
  t.match(await gateway.call(path, { ...post, cookie, headers }), {
    status: 403,
    json: { errorCode: 'origin.refused' }
  })
})

t.test('a refresh keeps no forgotten tab signed in', async t => {
  const pass = stopClock(t.after)
  const { refresh, use } = await setUp(t, {})
  const codes: unknown[] = []
  for (let times = 0; times < 4; times++) {
    pass(9 * minute)
    codes.push((await refresh()).json.errorCode)
  }
  t.same(codes, [undefined, undefined, undefined, 'session.idle'])
  t.equal(await use(), 401)
})

t.test('use between refreshes keeps a session alive until its absolute end', async t => {
  const pass = stopClock(t.after)
  const { refresh, use, idleIn } = await setUp(t, {})
  for (let times = 1; times <= 2; times++) {
    pass(20 * minute)
    t.equal(await use(), 200)
    const { data } = (await refresh()).json
    t.equal(data.absoluteIn, 3600 - 1200 * times)
    t.ok(data.idleIn > 20 * 60 - 60 && data.idleIn <= data.absoluteIn, 'extended')
    t.equal(await idleIn(), data.idleIn)
  }
  pass(20 * minute)
  t.match(await refresh(), { status: 401, json: { errorCode: 'session.absolute' } })
})

t.test('an answer that holds the back-end’s token is not sent', async t => {
  const user = { id: '7', secret: 'real-token' }
  const backend = await testUpstream(t.after, json(200, { ...user, token: 'real-token', user }))
  const source = { token: 'token', user: { id: 'id', profile: 'user' } }
  const { gateway: files, routes } = signInAt(backend.url, source)
  const gateway = await testGateway(t.after, {
    gateway: files,
    routes: { ...routes, endpoints: { refresh: { path, answer: { json: '{profile}' } } } }
  })
  const cookie = await gateway.signIn()
  const refused = await gateway.call(path, { ...post, cookie })
  t.match(refused, { status: 502, json: { errorCode: 'upstream.invalid' } })
  t.notMatch(refused.text, 'real-token')
})

/**
 * A console that refreshes on a code and repeats the request, without any bound of its own, until a
 * sign-out code or a success comes.
 */
function loopingConsole(send: (path: string, options?: object) => Promise<{ json: any }>) {
  let requests = 0
  const ask = async (target: string, options?: object) => {
    if (++requests > 50) throw new Error('it loops')
    return (await send(target, options)).json
  }
  const load = async (): Promise<string> => {
    for (;;) {
      const { code } = await ask('/api/list')
      if (code !== '9999') return code
      const refreshed = await ask(path, post)
      if (refreshed.code !== '0000') return refreshed.code
    }
  }
  return { load, requests: () => requests }
}

t.test('after the end a console that would loop makes three requests at most', async t => {
  const pass = stopClock(t.after)
  const custom = {
    refreshCodes: ['9999'],
    errors: { 'session.*': { code: '8888', status: 200 } }
  }
  const { gateway, cookie } = await setUp(t, {
    envelope: { dialect: 'custom', successCode: '0000', custom }
  })
  const send = async (target: string, options: object = {}) =>
    await gateway.call(target, { cookie, ...options })
  pass(40 * minute)
  for (const start of ['a request', 'a refresh']) {
    const console = loopingConsole(send)
    if (start === 'a refresh') {
      t.match(await send(path, post), { status: 200, json: { code: '8888' } })
    }
    t.equal(await console.load(), '8888', start)
    t.ok(console.requests() <= 3, `${console.requests()} requests`)
  }
})

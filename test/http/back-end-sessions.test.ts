/** Sessions at back-ends: which of them a sign-in or a sign-out ends there, and by which token. */
import t, { type Test } from 'tap'
import { cookieOf, type Files, type TestGateway, testGateway } from '../support/gateway.ts'
import { signInToOps } from '../support/operator.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { loginPath as path } from '../support/wire.ts'

const refusing = { session: { perUser: { max: 1, over: 'refuse' } } }

const filesOf = (
  url: string,
  gateway: Files['gateway'] = {},
  user: object = { id: 'id' }
): Files => ({
  gateway,
  backend: { url, credential: 'bearer' },
  source: { user, token: 'token', logout: { path: '/bye' } },
  routes: { routes: { data: {} } }
})

/** A gateway before a back-end that gives the account one token, until a sign-out ends it. */
async function sharing(t: Test, more: Files['gateway']) {
  let [token, count] = ['', 0]
  const backend = await testUpstream(t.after, (incoming, response, seen) => {
    const answer = (status: number, value: object) => json(status, value)(incoming, response, seen)
    if (seen.url === '/login') {
      token ||= `shared-${++count}`
      return answer(200, { id: '7', token, roles: ['admin'] })
    }
    const isValid = seen.headers.authorization === `Bearer ${token}`
    if (seen.url === '/bye') token = ''
    answer(isValid ? 200 : 401, {})
  })
  const user = { id: 'id', roles: 'roles' }
  const gateway = await testGateway(t.after, filesOf(backend.url, more, user))
  return { gateway, calls: () => backend.seen.map(({ url }) => url) }
}

/** What happens after the first sign-in; resolves with the cookie that goes on. */
type Act = (t: Test, gateway: TestGateway, first: string) => Promise<string>
const signOut = async ({ call }: TestGateway, cookie: string) =>
  await call('/api/account/logout', { cookie })

const acts: Readonly<Record<string, readonly [config: Files['gateway'], act: Act]>> = {
  'a sign-in that gets the token of the session before it does not end it': [
    {},
    async (t, { call }, first) => {
      const json = { username: 'carol', password: 'pw' }
      const second = cookieOf(await call(path, { json, cookie: first }))
      t.equal((await call('/api/session', { cookie: first })).status, 401)
      return second
    }
  ],
  'a sign-in that is refused for a live session leaves that its token': [
    refusing,
    async (t, { attempt }, first) => {
      t.equal((await attempt('carol')).status, 409)
      return first
    }
  ],
  'of the sessions with one token, the end of the last signs out': [
    {},
    async (_t, gateway, first) => {
      const second = await gateway.signIn('carol')
      await signOut(gateway, first)
      return second
    }
  ],
  'a sign-in to the operators’ page leaves the console its token': [
    { ops: { role: 'admin', sources: ['b'] } },
    async (t, { opsUrl }, first) => {
      t.equal((await signInToOps(opsUrl, 'carol')).status, 303)
      return first
    }
  ]
}
for (const [title, [config, act]] of Object.entries(acts)) {
  t.test(title, async t => {
    const { gateway, calls } = await sharing(t, config)
    const first = await gateway.signIn('carol')
    const cookie = await act(t, gateway, first)
    t.equal(await gateway.status('/api/data', { cookie }), 200)
    await signOut(gateway, cookie)
    await until('the sign-out', () => calls().includes('/bye'))
    t.same(calls(), ['/login', '/login', '/api/data', '/bye'])
  })
}

/** A back-end that gives each sign-in a token of its own, and holds it up as told. */
async function slow(t: Test, more?: Files['gateway']) {
  const held: Array<() => void> = []
  const state = { isHeld: false, count: 0 }
  const backend = await testUpstream(t.after, (incoming, response, seen) => {
    if (seen.url !== '/login') return json(500, {})(incoming, response, seen)
    const { username: id } = JSON.parse(String(seen.body)) as { username: string }
    const signIn = () => json(200, { id, token: `t${++state.count}` })(incoming, response, seen)
    if (state.isHeld) held.push(signIn)
    else signIn()
  })
  const gateway = await testGateway(t.after, filesOf(backend.url, more))
  /** That one session was ended there, by this token. */
  const ended = async (token: string) => {
    const ends = () => backend.seen.filter(({ url }) => url === '/bye')
    await until('the sign-out', () => ends().length > 0)
    const told = ends().map(({ method, headers }) => `${method} ${headers.authorization}`)
    t.same(told, [`POST Bearer ${token}`])
  }
  return { gateway, backend, held, state, ended }
}

t.test('the end of the last session is told by its token; ours holds without', async t => {
  const { gateway, backend, ended } = await slow(t)
  const cookie = await gateway.signIn('carol')
  t.equal((await signOut(gateway, cookie)).status, 200)
  await ended('t1')
  t.equal(await gateway.status('/api/session', { cookie }), 401)
  await backend.close()
  t.equal((await signOut(gateway, cookie)).status, 200)
})

t.test('a sign-in whose client leaves during the password opens no session', async t => {
  const { gateway, held, state, ended } = await slow(t, refusing)
  state.isHeld = true
  const client = new AbortController()
  const leaving = fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'carol', password: 'pw' }),
    signal: client.signal
  })
  await until('the back-end has the password', () => held.length > 0)
  client.abort()
  await t.rejects(leaving)
  await gateway.logged(({ status }) => status === 499)
  state.isHeld = false
  held[0]?.()
  await ended('t1')
  t.notOk(gateway.log.some(({ event }) => event === 'login'))
  t.equal((await gateway.attempt('carol')).status, 200, 'no session takes a place')
})

t.test('case R8: a session that may not be opened ends at its back-end, alone', async t => {
  const { gateway, ended } = await slow(t, refusing)
  await gateway.signIn('dave')
  const cookie = await gateway.signIn('carol')
  const dave = { username: 'dave', password: 'pw' }
  const refused = await gateway.call(path, { json: dave, cookie })
  t.match(refused, { status: 409, json: { errorCode: 'login.too-many' } })
  t.same(refused.headers.getSetCookie(), [])
  t.equal(await gateway.status('/api/session', { cookie }), 200)
  await ended('t3')
})

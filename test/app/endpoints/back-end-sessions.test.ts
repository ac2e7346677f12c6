/** Sessions at back-ends: which of them a sign-in or a sign-out ends there, and by which token. */
import t, { type Test } from 'tap'
import { cookieOf, testGateway } from '../../support/gateway.ts'
import { signInToOps } from '../../support/operator.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const path = '/api/auth/admin/login'
const carol = { username: 'carol', password: 'pw' }

/** A back-end that gives the account one token, until a sign-out ends it. */
async function sharingBackend(t: Test) {
  let [token, count] = ['', 0]
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const answer = (status: number, value: object) => json(status, value)(request, response, seen)
    if (seen.url === '/login') {
      token ||= `shared-${++count}`
      return answer(200, { id: '7', token, roles: ['admin'] })
    }
    const isValid = seen.headers.authorization === `Bearer ${token}`
    if (seen.url === '/bye') token = ''
    answer(isValid ? 200 : 401, {})
  })
  const { gateway } = signInAt(backend.url, {
    token: 'token',
    user: { id: 'id', roles: 'roles' },
    logout: { path: '/bye' }
  })
  const files = (more: object = {}) => ({
    gateway: { ...gateway, ...more },
    routes: {
      upstreams: { b: { url: backend.url, credential: 'bearer' } },
      routes: { data: { path: '/api/data', upstream: 'b' } }
    }
  })
  const calls = () => backend.seen.map(({ url }) => url)
  return { files, calls }
}

t.test('a sign-in that gets the token of the session before it does not end it', async t => {
  const { files, calls } = await sharingBackend(t)
  const gateway = await testGateway(t.after, files())
  const first = cookieOf(await gateway.call(path, { json: carol }))
  const second = cookieOf(await gateway.call(path, { json: carol, cookie: first }))
  t.equal((await gateway.call('/api/data', { cookie: first })).status, 401)
  t.equal((await gateway.call('/api/data', { cookie: second })).status, 200)
  await gateway.call('/api/account/logout', { cookie: second })
  await until('the sign-out', () => calls().includes('/bye'))
  t.same(calls(), ['/login', '/login', '/api/data', '/bye'])
})

t.test('a sign-in that is refused for a live session leaves that its token', async t => {
  const { files, calls } = await sharingBackend(t)
  const session = { perUser: { max: 1, over: 'refuse' } }
  const gateway = await testGateway(t.after, files({ session }))
  const cookie = cookieOf(await gateway.call(path, { json: carol }))
  t.equal((await gateway.call(path, { json: carol })).status, 409)
  t.equal((await gateway.call('/api/data', { cookie })).status, 200)
  await gateway.call('/api/account/logout', { cookie })
  await until('the sign-out', () => calls().includes('/bye'))
  t.same(calls(), ['/login', '/login', '/api/data', '/bye'])
})

t.test('of the sessions with one token, the end of the last signs out', async t => {
  const { files, calls } = await sharingBackend(t)
  const gateway = await testGateway(t.after, files())
  const first = cookieOf(await gateway.call(path, { json: carol }))
  const second = cookieOf(await gateway.call(path, { json: carol }))
  await gateway.call('/api/account/logout', { cookie: first })
  t.equal((await gateway.call('/api/data', { cookie: second })).status, 200)
  await gateway.call('/api/account/logout', { cookie: second })
  await until('the sign-out', () => calls().includes('/bye'))
  t.same(calls(), ['/login', '/login', '/api/data', '/bye'])
})

t.test('a sign-in to the operators’ page leaves the console its token', async t => {
  const { files, calls } = await sharingBackend(t)
  const ops = { role: 'admin', sources: ['b'] }
  const gateway = await testGateway(t.after, files({ ops }))
  const cookie = cookieOf(await gateway.call(path, { json: carol }))
  const operator = await signInToOps(gateway.opsUrl, 'carol')
  t.equal(operator.status, 303)
  t.equal((await gateway.call('/api/data', { cookie })).status, 200)
  await gateway.call('/api/account/logout', { cookie })
  await until('the sign-out', () => calls().includes('/bye'))
  t.same(calls(), ['/login', '/login', '/api/data', '/bye'])
})

/** A back-end that holds up sign-ins as told, and gives each a token that is due for renewal. */
async function slowBackend(t: Test) {
  let [isHeld, count] = [false, 0]
  const held: Array<() => void> = []
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const answer = (value: object) => json(200, value)(request, response, seen)
    if (seen.url === '/renew') return answer({ token: `t${++count}`, expires: 3600 })
    if (seen.url !== '/login') return answer({})
    const signIn = () => answer({ id: '7', token: `t${++count}`, expires: 30 })
    if (isHeld) held.push(signIn)
    else signIn()
  })
  const source = {
    token: 'token',
    expires: { path: 'expires' },
    refresh: { path: '/renew', token: 'token' },
    logout: { path: '/bye' }
  }
  const files = (more: object = {}) => ({
    gateway: { ...signInAt(backend.url, source).gateway, ...more },
    routes: {
      upstreams: { b: { url: backend.url, credential: 'bearer' } },
      routes: { data: { path: '/api/data', upstream: 'b' } }
    }
  })
  const tokensAt = (path: string) =>
    backend.seen.filter(({ url }) => url === path).map(({ headers }) => headers.authorization)
  return {
    files,
    tokensAt,
    hold: () => (isHeld = true),
    isHolding: () => held.length > 0,
    goOn: () => {
      isHeld = false
      for (const signIn of held.splice(0)) signIn()
    }
  }
}

t.test(
  'a session that was renewed while its successor waited is ended by its new token',
  async t => {
    const { files, tokensAt, hold, isHolding, goOn } = await slowBackend(t)
    const gateway = await testGateway(t.after, files())
    const cookie = cookieOf(await gateway.call(path, { json: carol }))
    hold()
    const second = gateway.call(path, { json: carol, cookie })
    await until('the back-end has the second password', isHolding)
    await until('the token of the first was renewed', async () => {
      await gateway.call('/api/data', { cookie })
      return tokensAt('/api/data').includes('Bearer t2')
    })
    goOn()
    t.equal((await second).status, 200)
    await until('the sign-out', () => tokensAt('/bye').length > 0)
    t.same(tokensAt('/bye'), ['Bearer t2'])
  }
)

t.test('a sign-in whose client leaves during the password opens no session', async t => {
  const { files, tokensAt, hold, isHolding, goOn } = await slowBackend(t)
  const session = { perUser: { max: 1, over: 'refuse' } }
  const gateway = await testGateway(t.after, files({ session }))
  hold()
  const client = new AbortController()
  const leaving = fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(carol),
    signal: client.signal
  })
  await until('the back-end has the password', isHolding)
  client.abort()
  await t.rejects(leaving)
  await gateway.logged(({ status }) => status === 499)
  goOn()
  await until('the sign-out', () => tokensAt('/bye').length > 0)
  t.same(tokensAt('/bye'), ['Bearer t1'])
  t.notOk(gateway.log.some(({ event }) => event === 'login'))
  t.equal((await gateway.call(path, { json: carol })).status, 200, 'no session takes a place')
})

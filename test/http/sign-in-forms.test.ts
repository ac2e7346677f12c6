/** Sign-ins that are not JSON in and JSON out. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { cookieIn, signInAt } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'

const login = '/api/auth/admin/login'
const form = 'application/x-www-form-urlencoded'

t.test('case 17: a console may post its sign-in as a form', async t => {
  const gateway = await testGateway(t.after, {})
  const send = async (body: string, more: Record<string, string> = {}) =>
    await gateway.call(login, { method: 'POST', body, headers: { 'content-type': form, ...more } })
  const right = new URLSearchParams({ username: 'alice', password }).toString()
  const answer = await send(right)
  t.match(answer, { status: 200, json: { success: true } })
  const cookie = cookieIn(answer.headers.getSetCookie())
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
  const remembered = await send(`${right}&remember=on`)
  t.equal(remembered.status, 200)
  t.equal((await send(`username=alice&password=wrong`)).status, 401)
  t.equal((await send('username=alice')).status, 400)
  t.equal((await send(`${right}&__proto__=x&constructor=y`)).status, 200)
  t.equal((await send(right, { origin: 'https://evil.example' })).status, 403, 'not of any page')
  t.equal((await send(right, { 'content-type': `${form}; charset=UTF-8` })).status, 200)
})

t.test('case 17: the token may come in a header of the back-end’s sign-in', async t => {
  let header = 'Bearer abc.def'
  const backend = await testUpstream(t.after, ({ url }, response) => {
    if (url === '/login') response.setHeader('authorization', header)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"id":"1"}')
  })
  const gateway = await testGateway(t.after, {
    gateway: signInAt(backend.url, { token: { header: 'authorization' } }).gateway,
    routes: {
      upstreams: { b: { url: backend.url, credential: 'bearer' } },
      routes: { any: { path: '/any', upstream: 'b' } }
    },
    limits: {}
  })
  const signIn = async () =>
    await gateway.call(login, { method: 'POST', json: { username: 'anna', password: 'x' } })
  for (header of ['Bearer abc.def', 'abc.def', 'Token  abc.def']) {
    const answer = await signIn()
    t.equal(answer.status, 200)
    t.equal(answer.headers.get('authorization'), null)
    t.notMatch(answer.text, 'abc.def')
    await gateway.call('/any', { cookie: cookieIn(answer.headers.getSetCookie()) })
    t.equal(backend.seen.at(-1)?.headers.authorization, 'Bearer abc.def', header)
  }
  header = ''
  t.match(await signIn(), { status: 502, json: { errorCode: 'upstream.invalid' } })
})

t.end()

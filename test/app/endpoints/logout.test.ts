import t from 'tap'
import { cookieOf, testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const path = '/api/account/logout'
const profile = '/api/account/profile'

t.test('GET and POST sign out: the session is over and the cookie cleared', async t => {
  const gateway = await testGateway(t.after)
  for (const method of ['GET', 'POST']) {
    const cookie = await gateway.signIn()
    const answer = await gateway.call(path, { method, cookie })
    t.equal(answer.status, 200, method)
    t.match(answer.json, { ok: true, success: true, data: {} })
    t.match(answer.headers.getSetCookie(), [
      /^console_sid=; Max-Age=0; Path=\/.*HttpOnly; SameSite=Strict$/,
      /^TOKEN__=; Max-Age=0/
    ])
    t.match(await gateway.call(profile, { cookie }), {
      status: 401,
      json: { errorCode: 'session.revoked' }
    })
  }
  t.equal(gateway.log.filter(({ event, user }) => event === 'logout' && user === 'alice').length, 2)
})

t.test('over https the __Host- cookie is cleared as browsers demand: Secure, Path=/', async t => {
  const gateway = await testGateway(t.after, { gateway: { session: { cookie: { secure: true } } } })
  const cookie = await gateway.signIn()
  const cleared = (await gateway.call(path, { cookie })).headers
    .getSetCookie()
    .find(each => each.startsWith('__Host-'))
  t.match(cleared, /^__Host-console_sid=; Max-Age=0; Path=\/;.* HttpOnly; Secure; SameSite=Strict$/)
})

t.test('whatever body a console sends with it is not read', async t => {
  const gateway = await testGateway(t.after)
  for (const [body, type] of [
    ['', 'application/json'],
    ['{}', 'application/json'],
    ['not json', 'application/json'],
    ['a=1', 'application/x-www-form-urlencoded'],
    ['x', 'text/plain']
  ] as const) {
    t.equal(
      (await gateway.call(path, { method: 'POST', body, headers: { 'content-type': type } }))
        .status,
      200,
      type
    )
  }
})

t.test(
  'the back-end’s own sign-out is called with its token; when it fails, ours holds all the same',
  async t => {
    const backend = await testUpstream(t.after, (_request, response, { url }) =>
      json(url === '/login' ? 200 : 500, { id: '7', token: 'T' })(_request, response, {} as never)
    )
    const gateway = await testGateway(
      t.after,
      signInAt(backend.url, { token: 'token', logout: { path: '/bye' } })
    )
    const cookie = cookieOf(
      await gateway.call('/api/auth/admin/login', { json: { username: 'carol', password: 'pw' } })
    )
    t.equal((await gateway.call(path, { cookie })).status, 200)
    await until('the back-end was told twice', () => backend.seen.length >= 2)
    t.match(backend.seen[1], {
      method: 'POST',
      url: '/bye',
      headers: { authorization: 'Bearer T' }
    })
    t.equal((await gateway.call(profile, { cookie })).status, 401)
    await backend.close()
    const again = await gateway.call(path, { cookie })
    t.equal(again.status, 200)
  }
)

t.test('methods and answer by config; the same with and without a session', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      endpoints: {
        logout: {
          path: '/logout',
          methods: ['POST'],
          answer: { json: { msg: 'bye', code: 'mine' }, inEnvelope: 'flat' }
        }
      }
    }
  })
  const cookie = await gateway.signIn()
  const refused = await gateway.call('/logout', { cookie })
  t.match(refused, { status: 405, json: { errorCode: 'route.method' } })
  t.equal((await gateway.call('/api/session', { cookie })).status, 200)
  for (const more of [{ cookie }, {}]) {
    t.equal(
      (await gateway.call('/logout', { method: 'POST', ...more })).text,
      '{"ok":true,"code":0,"message":"OK","success":true,"msg":"bye"}'
    )
  }
  t.equal((await gateway.call('/api/session', { cookie })).status, 401)
})

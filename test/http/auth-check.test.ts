/** The check that proxies ask before they pass a request on. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'

const gateway = await testGateway(t.teardown, {
  gateway: { server: { origins: ['https://console.example.com'] } },
  routes: { endpoints: { check: {} } }
})
const check = async (cookie: string, query = '', headers = {}) =>
  await gateway.call(`/api/auth/check${query}`, { cookie, headers })

t.test('204 with the identity, 401 without a session, 403 without any of the roles', async t => {
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
  t.match(await check(user, '?role=admin'), { status: 403, json: { errorCode: 'route.forbidden' } })
  t.equal((await check(user, '?role=admin')).headers.get('x-user-name'), null)
  t.equal(await gateway.status('/api/auth/check', { method: 'HEAD', cookie: admin }), 204)
  t.equal(await gateway.status('/api/auth/check', { method: 'POST', cookie: admin }), 405)
  await gateway.call('/api/account/logout', { method: 'POST', cookie: admin })
  t.equal((await check(admin)).status, 401)
})

t.test('a change that another page asks for is refused, as the proxy tells it', async t => {
  const cookie = await gateway.signIn()
  const evil = { origin: 'https://evil.example' }
  const own = { origin: 'https://console.example.com' }
  for (const name of ['x-forwarded-method', 'x-original-method']) {
    t.equal((await check(cookie, '', { ...evil, [name]: 'POST' })).status, 403)
    t.equal((await check(cookie, '', { ...own, [name]: 'POST' })).status, 204)
    t.equal((await check(cookie, '', { ...evil, [name]: 'GET' })).status, 204)
  }
})

t.test('there is none by default', async t => {
  const { status } = await testGateway(t.after)
  t.equal(await status('/api/auth/check'), 404)
})

/** Values of the session in the headers of upstreams. */
import t from 'tap'
import { configFolder, testGateway } from '../support/gateway.ts'
import { cookieIn, signInAt } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'

const files = (url: string, headers: Record<string, string>) => ({
  gateway: signInAt(url, { user: { id: 'id', profile: 'user' } }).gateway,
  routes: {
    upstreams: { b: { url, headers } },
    routes: {
      mine: { path: '/mine', upstream: 'b' },
      open: { path: '/open', access: 'public', upstream: 'b' },
      both: {
        path: '/both',
        parts: { one: { upstream: 'b', rewrite: '/one', into: 'one' } }
      }
    }
  },
  limits: {}
})

t.test(
  'a member of the profile reaches the upstream, and a client cannot name another',
  async t => {
    const backend = await testUpstream(t.after, (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end('{"id":"1","user":{"tenantId":12345678901234567890,"dept":{"name":"财务"}}}')
    })
    const headers = {
      'x-tenant-id': '{profile.tenantId}',
      'x-dept': '{profile.dept.name}',
      'x-fixed': 'yes'
    }
    const gateway = await testGateway(t.after, files(backend.url, headers))
    const login = await gateway.call('/api/auth/admin/login', {
      method: 'POST',
      json: { username: 'anna', password: 'x' }
    })
    t.equal(backend.seen[0]?.headers['x-tenant-id'], undefined, 'not before anyone is signed in')
    t.equal(backend.seen[0]?.headers['x-fixed'], 'yes')
    const cookie = cookieIn(login.headers.getSetCookie())
    const forged = { 'x-tenant-id': '1', 'x-dept': 'all', 'X-Tenant_Id': '1' }
    for (const path of ['/mine', '/both']) {
      t.equal((await gateway.call(path, { cookie, headers: forged })).status, 200)
      const seen = backend.seen.at(-1)?.headers
      t.match(seen, {
        'x-tenant-id': '12345678901234567890',
        'x-dept': '%E8%B4%A2%E5%8A%A1',
        'x-fixed': 'yes'
      })
    }
    await gateway.call('/open', { headers: forged })
    t.equal(backend.seen.at(-1)?.headers['x-tenant-id'], undefined, 'on a public route nobody’s')
  }
)

t.test('a limit may count all users of a tenant together', async t => {
  const tenants: Readonly<Record<string, string>> = { anna: 'a b', ben: 'a b', carl: 'c', dora: '' }
  let user = ''
  const backend = await testUpstream(t.after, (_request, response) => {
    const tenant = tenants[user]
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ id: user, user: tenant === '' ? {} : { tenant } }))
  })
  const limits = { limits: { tenant: { by: 'profile.tenant', max: 3, window: '1h' } } }
  const gateway = await testGateway(t.after, { ...files(backend.url, {}), limits })
  const cookies: Record<string, string> = {}
  for (user of Object.keys(tenants)) {
    const json = { username: user, password: 'x' }
    const login = await gateway.call('/api/auth/admin/login', { method: 'POST', json })
    cookies[user] = cookieIn(login.headers.getSetCookie())
  }
  const status = async (who: string) =>
    (await gateway.call('/mine', { cookie: cookies[who] ?? '' })).status
  t.same([await status('anna'), await status('ben'), await status('anna')], [200, 200, 200])
  t.same([await status('anna'), await status('ben')], [429, 429], 'they share one budget')
  t.equal(await status('carl'), 200, 'another tenant has its own')
  t.equal(await status('dora'), 200, 'so has a user without one')
  const folder = await configFolder({
    ...files(backend.url, {}),
    limits: { limits: { x: { by: ['profile.tenant', 'user'], max: 3, window: '1h' } } }
  })
  await t.rejects(testGateway(t.after, folder), { message: /x.by: a member of the profile stands/ })
})

t.test('a placeholder that is none is a fault', async t => {
  for (const value of ['{tenantId}', 'a{profile.x}', '{profile.}', '{profile.a b}']) {
    const folder = await configFolder(files('http://127.0.0.1:9', { 'x-tenant-id': value }))
    await t.rejects(testGateway(t.after, folder), { message: /x-tenant-id: expected \{profile/ })
  }
})

t.end()

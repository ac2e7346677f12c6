import t from 'tap'
import { createClosings } from '../../../src/app/hooks/maintenance.ts'
import type { Config } from '../../../src/config/schema/config.ts'
import { stopClock } from '../../support/clock.ts'
import { testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

const routes = (url: string, maintenance: object) => ({
  routes: {
    upstreams: { b: { url } },
    routes: {
      orders: { path: '/api/orders', methods: ['GET', 'POST', 'DELETE'], upstream: 'b' },
      news: { path: '/api/news', methods: ['GET', 'POST'], access: 'public', upstream: 'b' }
    },
    maintenance
  }
})

t.test(
  'one line makes everything read-only: changes are 503 in the envelope, reading and signing in and out go on',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(
      t.after,
      routes(backend.url, { methods: ['POST', 'PUT', 'PATCH', 'DELETE'] })
    )
    const cookie = await gateway.signIn()
    for (const method of ['POST', 'DELETE']) {
      const refused = await gateway.call('/api/orders', { method, cookie })
      t.match(
        refused,
        {
          status: 503,
          json: {
            success: false,
            ok: false,
            errorCode: 'maintenance',
            message: /closed for maintenance/
          }
        },
        method
      )
      t.equal(refused.headers.get('retry-after'), '60')
    }
    t.equal((await gateway.call('/api/news', { method: 'POST' })).status, 503)
    t.equal(backend.seen.length, 0)
    t.equal((await gateway.call('/api/orders', { cookie })).status, 200)
    t.equal((await gateway.call('/api/news')).status, 200)
    t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
    t.equal((await gateway.call('/api/session/extend', { method: 'POST', cookie })).status, 200)
    t.equal((await gateway.call('/api/account/logout', { method: 'POST', cookie })).status, 200)
  }
)

t.test('by route, with roles that go on, an end and a message', async t => {
  const backend = await testUpstream(t.after)
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const gateway = await testGateway(
    t.after,
    routes(backend.url, {
      routes: ['orders'],
      allowRoles: ['admin'],
      until,
      message: 'Stock-taking.'
    })
  )
  const refused = await gateway.call('/api/orders', { cookie: await gateway.signIn('bob') })
  t.match(refused, {
    status: 503,
    json: { errorCode: 'maintenance', message: 'Stock-taking.', until }
  })
  const seconds = Number(refused.headers.get('retry-after'))
  t.ok(seconds > 3000 && seconds <= 3600, 'until then')
  t.equal(
    (await gateway.call('/api/orders', { cookie: await gateway.signIn('alice') })).status,
    200
  )
  t.equal((await gateway.call('/api/news')).status, 200)
})

t.test('who may not pass anyway is told that; sign-in is closed by its name alone', async t => {
  const { call } = await testGateway(t.after, routes('http://127.0.0.1:9', {}))
  t.match((await call('/api/orders')).json, { errorCode: 'session.none' })
  t.equal((await call('/api/nothing')).status, 404)
  t.equal((await call('/api/orders', { method: 'PUT' })).status, 405)
  const byName = await testGateway(t.after, routes('http://127.0.0.1:9', { routes: ['login'] }))
  const json = { username: 'alice', password: 'x' }
  t.equal((await call('/api/auth/admin/login', { json })).status, 401)
  t.match(await byName.call('/api/auth/admin/login', { json }), {
    status: 503,
    json: { errorCode: 'maintenance' }
  })
})

t.test('it ends by itself', async t => {
  const pass = stopClock(t.after)
  pass(Date.parse('2026-12-01T05:59:59Z') - Date.now())
  const maintenance = {
    routes: [],
    methods: ['GET'],
    allowRoles: [],
    until: '2026-12-01T14:00+08:00'
  }
  const config = { routes: { a: {} }, maintenance } as unknown as Config['routes']
  const closingOf = createClosings(config)
  const said = (method = 'GET', route = 'a') => closingOf(route, method, undefined)?.msLeft
  t.equal(said(), 1000)
  t.equal(said('HEAD'), 1000, 'HEAD is GET')
  t.equal(said('POST'), undefined)
  t.equal(said('GET', 'b'), undefined)
  pass(1000)
  t.equal(said(), undefined)
})

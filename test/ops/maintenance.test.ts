/** Maintenance that operators begin: what it closes, and at all replicas. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { wallClock } from '../support/clock.ts'
import { start } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { askOps, beginMaintenance } from '../support/ops.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const path = '/ops/api/maintenance'

const aliases = { '/api/newest': '/api/news' }

const routes = (url: string) => ({
  upstreams: { b: { url } },
  routes: {
    orders: { path: '/api/orders', upstream: 'b', access: 'public', methods: ['GET', 'POST'] },
    news: { path: '/api/news', upstream: 'b', access: 'public' },
    stock: { path: '/api/stock', upstream: 'b' }
  }
})

const shared = (url: string) => ({
  redis: { url, commandTimeout: '5s' },
  session: { secrets: ['${SESSION_SECRET}'] }
})

for (const hours of [-8, 8]) {
  t.test(`without Redis its end follows a clock that is set ${hours} hours`, async t => {
    const { url } = await testUpstream(t.after)
    const setClock = wallClock(t.after)
    const gateway = await testGateway(t.after, { routes: routes(url) })
    setClock(hours * 3_600_000)
    await gateway.ops(path, { json: { until: inMs(7_200_000) } })
    const refused = await gateway.call('/api/news')
    t.equal(refused.status, 503)
    const retryAfter = Number(refused.headers.get('retry-after'))
    t.ok(retryAfter > 7100 && retryAfter <= 7200, `${retryAfter} s`)
  })
}

t.test('without Redis it closes the routes of this process, and says so', async t => {
  const { url } = await testUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(url) })
  t.same(await (await gateway.ops(path)).json(), {
    shared: false,
    info:
      'No Redis is configured: this maintenance is in force in this process alone, and ends ' +
      'with it.',
    operators: []
  })
  const body = { until: inMs(60_000), routes: ['orders'], methods: ['POST'], message: 'Wait.' }
  const begun = await gateway.ops(path, { json: body })
  t.match(await begun.json(), { operators: [{ author: 'operator', message: 'Wait.' }] })
  const refused = await gateway.call('/api/orders', { json: {} })
  t.match(refused, { status: 503, json: { errorCode: 'maintenance', message: 'Wait.' } })
  t.ok(Number(refused.headers.get('retry-after')) > 50)
  t.equal((await gateway.call('/api/orders')).status, 200, 'another method')
  t.equal((await gateway.call('/api/news')).status, 200, 'another route')

  await gateway.ops(`${path}/end`, { json: {} })
  t.equal((await gateway.call('/api/orders', { json: {} })).status, 200)
  t.match(
    gateway.log.filter(({ event }) => String(event).startsWith('maintenance.')),
    [{ event: 'maintenance.begun', by: 'operator' }, { event: 'maintenance.ended' }]
  )
})

t.test('a body that does not fit changes nothing', async t => {
  const { url } = await testUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(url) })
  for (const json of [
    {},
    { until: 'tomorrow' },
    { until: inMs(-1000) },
    { until: inMs(8 * 86_400_000) },
    { until: inMs(60_000), routes: ['nowhere'] },
    { until: inMs(60_000), route: ['orders'] },
    { until: inMs(60_000), methods: ['GRAB'] },
    { until: inMs(60_000), message: 'x'.repeat(501) }
  ]) {
    t.equal((await gateway.ops(path, { json })).status, 400, JSON.stringify(json).slice(0, 60))
  }
  t.equal((await gateway.call('/api/news')).status, 200)
})

t.test('roles go on, the latest end counts, and a reload opens nothing', async t => {
  const { url } = await testUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(url) })
  await gateway.ops(path, {
    json: { routes: ['news'], until: inMs(3_600_000), message: 'Stock-taking.' }
  })
  await gateway.ops(path, { json: { until: inMs(60_000), allowRoles: ['admin'] } })
  const admin = await gateway.signIn('alice')
  t.equal((await gateway.call('/api/stock', { cookie: admin })).status, 200)
  const user = await gateway.signIn('bob')
  t.equal((await gateway.call('/api/stock', { cookie: user })).status, 503)
  t.match(await gateway.call('/api/news'), { json: { message: 'Stock-taking.' } })

  writeFileSync(join(gateway.folder, 'routes.yaml'), stringify({ ...routes(url), aliases }))
  t.equal((await gateway.reload('operator')).outcome, 'reloaded')
  t.match(await gateway.call('/api/newest'), { status: 503 })
  await gateway.ops(`${path}/end`, { json: {} })
  t.equal((await gateway.call('/api/newest')).status, 200)
})

t.test('changes alone: reading, sign-in, sign-out, profile and session go on', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, { routes: routes(backend.url) })
  await beginMaintenance(gateway.opsUrl, { methods: ['POST', 'PUT', 'PATCH', 'DELETE'] })
  const cookie = await gateway.signIn()
  t.match(await gateway.call('/api/orders', { json: {}, cookie }), {
    status: 503,
    json: { success: false, ok: false, message: /closed for maintenance/ }
  })
  t.equal(backend.seen.length, 0)
  const statusOf = async (path: string, method?: string) =>
    (await gateway.call(path, { cookie, ...(method !== undefined && { method }) })).status
  t.equal(await statusOf('/api/orders'), 200)
  t.equal(await statusOf('/api/account/profile'), 200)
  t.equal(await statusOf('/api/session/extend', 'POST'), 200)
  t.equal(await statusOf('/api/account/logout', 'POST'), 200)
  await beginMaintenance(gateway.opsUrl, { methods: ['GET'] })
  t.equal(await statusOf('/api/news', 'HEAD'), 503, 'HEAD is GET')
})

t.test('who may not pass anyway is told that; sign-in is closed by its name alone', async t => {
  const { call, opsUrl } = await testGateway(t.after, { routes: routes('http://127.0.0.1:9') })
  await beginMaintenance(opsUrl)
  t.match((await call('/api/stock')).json, { errorCode: 'session.none' })
  t.equal((await call('/api/nothing')).status, 404)
  t.equal((await call('/api/stock', { method: 'PUT' })).status, 405)
  const signIn = async () =>
    await call('/api/auth/admin/login', { json: { username: 'alice', password: 'x' } })
  t.equal((await signIn()).status, 401)
  await beginMaintenance(opsUrl, { routes: ['login'] })
  t.match(await signIn(), { status: 503, json: { errorCode: 'maintenance' } })
})

t.test('it holds at another replica, and after a restart', async t => {
  const { url } = await testUpstream(t.after)
  const redis = await testRedis(t.after)
  const single = async () =>
    await testGateway(
      t.after,
      await configFolder({ gateway: shared(redis.url), routes: routes(url) }),
      environment
    )
  const a = await single()
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = await configFolder({
    gateway: {
      ...shared(redis.url),
      server: { listen: `127.0.0.1:${port}` },
      ops: { listen: `127.0.0.1:${opsPort}` }
    },
    routes: routes(url)
  })
  const apart = start(t.after, folder, environment)
  await apart.says('listening on')
  const ops = `http://127.0.0.1:${opsPort}`
  await until('ready', async () => (await fetch(`${ops}/readyz`)).status === 200)
  const status = async () => (await fetch(`http://127.0.0.1:${port}/api/news`)).status
  t.equal(await status(), 200)

  await until('both hear each other', async () => {
    const answer = await a.ops('/ops/api/replicas')
    const { replicas } = (await answer.json()) as { replicas: unknown[] }
    return replicas.length === 2
  })
  const begun = await a.ops(path, { json: { until: inMs(60_000) } })
  t.equal(begun.status, 200)
  const begunAt = performance.now()
  await until('it is in force at the other one', async () => (await status()) === 503)
  t.ok(performance.now() - begunAt < 1500, `${performance.now() - begunAt} ms`)

  apart.signal('SIGKILL')
  await apart.ended
  const again = start(t.after, folder, environment)
  await again.says('listening on')
  await until('ready again', async () => (await fetch(`${ops}/readyz`)).status === 200)
  t.equal(await status(), 503, 'after a restart')

  const late = await single()
  t.equal((await late.call('/api/news')).status, 503, 'at a replica that started later')
  await askOps(ops, `${path}/end`, { json: {} })
  t.equal(await status(), 200)
  for (const gateway of [a, late]) {
    await until('it has ended', async () => (await gateway.call('/api/news')).status === 200)
  }
})

/** Maintenance that operators begin: what it closes, and at all replicas. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { start } from '../../support/command.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { askOps, beginMaintenance } from '../../support/ops.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const path = '/ops/api/maintenance'

const backend = await testUpstream(t.after)
const aliases = { '/api/newest': '/api/news' }
const routes = {
  upstreams: { b: { url: backend.url } },
  routes: {
    orders: { path: '/api/orders', upstream: 'b', access: 'public', methods: ['GET', 'POST'] },
    news: { path: '/api/news', upstream: 'b', access: 'public' },
    stock: { path: '/api/stock', upstream: 'b' }
  }
}

t.test('without Redis it closes the routes of this process, and says so', async t => {
  const gateway = await testGateway(t.after, { routes })
  t.match(await (await gateway.ops(path)).json(), {
    info: /in force in this process alone, and ends with it/,
    operators: []
  })
  const body = { until: inMs(60_000), routes: ['orders'], methods: ['POST'], message: 'Wait.' }
  const begun = await gateway.ops(path, { json: body })
  t.match(await begun.json(), { operators: [{ author: 'operator', message: 'Wait.' }] })
  const order = async () => await gateway.call('/api/orders', { json: {} })
  const refused = await order()
  t.match(refused, { status: 503, json: { errorCode: 'maintenance', message: 'Wait.' } })
  t.ok(Number(refused.headers.get('retry-after')) > 50)
  t.equal((await gateway.call('/api/orders')).status, 200, 'another method')
  t.equal((await gateway.call('/api/news')).status, 200, 'another route')
  await gateway.ops(`${path}/end`, { json: {} })
  t.equal((await order()).status, 200)
})

t.test('roles go on, the latest end counts, and a reload opens nothing', async t => {
  const gateway = await testGateway(t.after, { routes })
  const message = 'Stock-taking.'
  await gateway.ops(path, { json: { routes: ['news'], until: inMs(3_600_000), message } })
  await gateway.ops(path, { json: { until: inMs(60_000), allowRoles: ['admin'] } })
  const { maintenance } = (await (await gateway.ops('/readyz')).json()) as Record<string, unknown>
  t.match(maintenance, /^operator closes news until 20\S+; operator closes every route .* until 20/)
  const statusFor = async (user: string) =>
    (await gateway.call('/api/stock', { cookie: await gateway.signIn(user) })).status
  t.same([await statusFor('alice'), await statusFor('bob')], [200, 503])
  t.match(await gateway.call('/api/news'), { json: { message } })

  writeFileSync(join(gateway.folder, 'routes.yaml'), stringify({ ...routes, aliases }))
  t.equal((await gateway.reload('operator')).outcome, 'reloaded')
  t.match(await gateway.call('/api/newest'), { status: 503 })
  await gateway.ops(`${path}/end`, { json: {} })
  t.equal((await gateway.call('/api/newest')).status, 200)
})

t.test('changes alone: reading, sign-in, sign-out, profile and session go on', async t => {
  const gateway = await testGateway(t.after, { routes })
  const asked = backend.seen.length
  await beginMaintenance(gateway.opsUrl, { methods: ['POST', 'PUT', 'PATCH', 'DELETE'] })
  const cookie = await gateway.signIn()
  t.match(await gateway.call('/api/orders', { json: {}, cookie }), {
    status: 503,
    json: { success: false, ok: false, message: /closed for maintenance/ }
  })
  t.equal(backend.seen.length, asked)
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
  const { call, opsUrl } = await testGateway(t.after, { routes })
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
  const redis = { url: (await testRedis(t.after)).url, commandTimeout: '5s' }
  const gateway = { redis, session: { secrets: ['${SESSION_SECRET}'] } }
  const a = await testGateway(t.after, { gateway, routes }, environment)
  const folder = await configFolder({ gateway, routes })
  const begin = async () => {
    const running = start(t.after, folder, environment)
    const urls = await running.listens()
    await until('ready', async () => (await fetch(`${urls.opsUrl}/readyz`)).status === 200)
    return { ...running, ...urls }
  }
  let apart = await begin()
  const status = async () => (await fetch(`${apart.url}/api/news`)).status
  t.equal(await status(), 200)

  await until('both hear each other', async () => {
    const answer = await a.ops('/ops/api/replicas')
    return ((await answer.json()) as { replicas: unknown[] }).replicas.length === 2
  })
  t.equal((await a.ops(path, { json: { until: inMs(60_000) } })).status, 200)
  const begunAt = performance.now()
  await until('it is in force at the other one', async () => (await status()) === 503)
  t.ok(performance.now() - begunAt < 1500, `${performance.now() - begunAt} ms`)

  apart.signal('SIGKILL')
  await apart.ended
  apart = await begin()
  t.equal(await status(), 503, 'after a restart')

  await askOps(apart.opsUrl, `${path}/end`, { json: {} })
  t.equal(await status(), 200)
  await until('it has ended', async () => (await a.call('/api/news')).status === 200)
})

t.end()

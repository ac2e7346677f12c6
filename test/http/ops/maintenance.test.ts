/** Maintenance that operators begin: what it closes, beside what is closed already, and at all replicas. */
import { isDeepStrictEqual } from 'node:util'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { run } from '../../support/command.ts'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { startGatewayProcess } from '../../support/gateway-process.ts'
import { standstill } from '../../support/machine.ts'
import { askOps } from '../../support/ops.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'

interface Shown {
  readonly routes: string[]
  readonly methods: string[]
  readonly message?: string
}

const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const path = '/ops/api/maintenance'
const names = ['orders', 'news', 'stock']
const backend = await testUpstream(t.teardown)
const route = { access: 'public', methods: ['GET', 'POST'] }
const files = {
  backend: backend.url,
  routes: { routes: { orders: route, news: route, stock: {} } }
}
const gateway = await testGateway(t.teardown, files)
const { call, opsJson } = gateway
const cookie = await gateway.signIn()
const bobs = await gateway.signIn('bob')

const statusOf = async (path: string, method = 'GET', user = cookie) =>
  (await call(path, { cookie: user, method })).status
/** @returns the names of the routes that refuse */
async function closed(method = 'GET', user = cookie): Promise<string[]> {
  const statuses = names.map(async name => await statusOf(`/api/${name}`, method, user))
  const isClosed = (await Promise.all(statuses)).map(status => status === 503)
  return names.filter((_name, index) => isClosed[index])
}
const act = async (json: object, at = '') => {
  const response = await gateway.ops(path + at, { json })
  const { operators = [] } = (await response.json()) as { operators?: Shown[] }
  return { status: response.status, operators, routes: operators.map(each => each.routes) }
}
const begin = async (json: object = {}) => await act({ until: inMs(3_600_000), ...json })
const end = async (json = {}) => await act(json, '/end')
const command = async (...words: string[]) => await run([...words, '--config', gateway.folder])
t.afterEach(async () => {
  await end()
})

t.test('without Redis it closes the routes of this process, and says so', async t => {
  const info = /in force in this process alone, and ends with it/
  t.match(await opsJson('maintenance'), { info, operators: [] })
  const { operators } = await begin({ routes: ['orders'], methods: ['POST'], message: 'Wait.' })
  t.match(operators, [{ author: 'operator', message: 'Wait.' }])
  const refused = await call('/api/orders', { json: {} })
  t.match(refused, { status: 503, json: { errorCode: 'maintenance', message: 'Wait.' } })
  t.ok(Number(refused.headers.get('retry-after')) > 50)
  t.same([await closed(), await closed('POST')], [[], ['orders']], 'other methods and routes go on')
  await end()
  t.same(await closed('POST'), [])
})

t.test('case U3: a second begin closes its routes beside those of the first', async t => {
  await begin({ routes: ['orders'] })
  t.same((await begin({ routes: ['news'] })).routes, [['orders'], ['news']])
  t.same(await closed(), ['orders', 'news'])
  const maintenance = /^operator closes orders .*; operator closes news /
  t.match(await (await gateway.ops('/readyz')).json(), { maintenance })
  t.same((await end({ routes: ['orders'] })).routes, [['news']])
  t.same(await closed(), ['news'], 'an end of one leaves the other')
})

t.test('case U3: a route that is closed again takes the new end and message', async t => {
  for (const name of ['orders', 'news']) await begin({ routes: [name], message: 'First.' })
  const again = await begin({ until: inMs(1500), routes: ['orders'], message: 'Second.' })
  t.match(again.operators, [
    { routes: ['news'], message: 'First.' },
    { routes: ['orders'], message: 'Second.' }
  ])
  t.match(await call('/api/orders'), { status: 503, json: { message: 'Second.' } })
  t.match(await call('/api/news'), { status: 503, json: { message: 'First.' } })
  await until('the shorter one has ended', async () => (await closed()).length === 1)
  t.same(await closed(), ['news'])
})

t.test('case U3: a begin for some methods opens no others', async t => {
  await begin({ routes: ['orders'] })
  const second = await begin({ routes: ['orders'], methods: ['POST'] })
  t.match(second.operators, [{ methods: [] }, { methods: ['POST'] }])
  t.same([await closed(), await closed('POST')], [['orders'], ['orders']])
  const again = await begin({ routes: ['orders', 'news'], methods: ['POST'] })
  t.equal(again.operators.length, 3, 'other routes or methods stand beside what was closed before')
})

t.test('case U3: all routes and one by its name stand beside each other', async t => {
  await begin({ routes: ['orders'] })
  t.same((await begin({ until: inMs(1500) })).routes, [['orders'], []])
  t.same(await closed(), names)
  t.equal((await end({ routes: ['news'] })).status, 400)
  t.same(await closed(), names, 'it opened nothing')
  await until('all have opened', async () => (await closed()).length === 1)
  t.equal((await end({ routes: ['nowhere'] })).status, 400)
  t.same(await closed(), ['orders'], 'the one that was named stays closed')
})

t.test('a later beginning: open until then, and status tells what closes until when', async t => {
  const from = inMs(1500)
  await begin({ from, routes: ['orders'] })
  t.same(await closed(), [])
  const { out } = await command('status')
  t.match(out, /maintenance +operator closes orders from \S+ until \S+\n/)
  await until('it has begun', async () => (await closed()).length > 0)
  t.ok(Date.now() >= Date.parse(from))
  t.equal((await begin({ from: inMs(2000), until: inMs(1000) })).status, 400)
})

t.test('case U3: the command names all that is closed, and opens one route', async t => {
  await begin({ routes: ['orders'] })
  t.match(await command('maintenance', 'begin', '--until', '30m', '--route', 'news'), {
    code: 0,
    out: /operator closes orders until .*\nlocal closes news until /
  })
  const ended = await command('maintenance', 'end', '--route', 'orders')
  t.match(ended, { code: 0, out: /^(?!.*orders)local closes news until / })
  t.same(await closed(), ['news'])
  const times = ['--from', '10m', '--until', '20m', '--allow-role', 'admin']
  const later = await command('maintenance', 'begin', ...times)
  t.match(later.out, /closes every route but for the roles admin from .* until /)
})

t.test('roles go on, the latest end counts, and a reload opens nothing', async t => {
  await begin({ until: inMs(7_200_000), routes: ['news'], message: 'News are moved.' })
  await begin({ allowRoles: ['admin'] })
  const ofAdmin = await statusOf('/api/stock')
  t.same([ofAdmin, await closed('GET', bobs)], [200, names])
  t.match(await call('/api/news', { cookie: bobs }), { json: { message: 'News are moved.' } })
  appendFileSync(join(gateway.folder, 'routes.yaml'), 'aliases: { /api/newest: /api/news }\n')
  t.equal((await gateway.reload('operator')).outcome, 'reloaded')
  t.equal(await statusOf('/api/newest'), 503)
  await end()
  t.equal(await statusOf('/api/newest'), 200)
})

t.test('changes alone: reading, sign-in, sign-out, profile and session go on', async t => {
  const asked = backend.seen.length
  await begin({ methods: ['POST', 'PUT', 'PATCH', 'DELETE'] })
  const user = await gateway.signIn()
  t.match(await call('/api/orders', { json: {}, cookie: user }), {
    status: 503,
    json: { success: false, ok: false, message: /closed for maintenance/ }
  })
  t.equal(backend.seen.length, asked)
  for (const [path, method] of [
    ['/api/orders', 'GET'],
    ['/api/account/profile', 'GET'],
    ['/api/session/extend', 'POST'],
    ['/api/account/logout', 'POST']
  ] as const) {
    t.equal(await statusOf(path, method, user), 200, path)
  }
  await begin({ methods: ['GET'] })
  t.equal(await statusOf('/api/news', 'HEAD'), 503, 'HEAD is GET')
})

t.test('who may not pass anyway is told that; sign-in is closed by its name alone', async t => {
  await begin()
  t.match((await call('/api/stock')).json, { errorCode: 'session.none' })
  t.equal((await call('/api/nothing')).status, 404)
  t.equal(await statusOf('/api/stock', 'PUT'), 405)
  t.ok(await gateway.signIn())
  await begin({ routes: ['login'] })
  await t.rejects(gateway.signIn(), /503 .*maintenance/)
})

t.test('case U3: begun at two replicas at once, it holds at both, and after a restart', async t => {
  const redis = { url: (await testRedis(t.after)).url, commandTimeout: '5s' }
  const folder = await configFolder({ ...files, redis })
  const here = await testGateway(t.after, folder)
  const startAnother = async () => {
    const started = await startGatewayProcess(t.after, folder)
    await started.ready()
    return started
  }
  let there = await startAnother()
  const areClosed = async (expected: readonly string[]) => {
    for (const { url } of [here, there]) {
      await until(`closed at both: ${expected.join()}`, async () => {
        const answers = ['orders', 'news'].map(name => fetch(`${url}/api/${name}`))
        const statuses = (await Promise.all(answers)).map(({ status }) => status)
        const isClosed = ['orders', 'news'].map(name => (expected.includes(name) ? 503 : 200))
        return isDeepStrictEqual(statuses, isClosed)
      })
    }
  }
  await until('both hear each other', async () => {
    return (await here.opsJson('replicas')).replicas.length === 2
  })
  const ask = async (name: string, opsUrl: string, at = '') =>
    await askOps(opsUrl, path + at, { json: { until: inMs(60_000), routes: [name] } })
  await Promise.all([ask('orders', here.opsUrl), ask('news', there.opsUrl)])
  const begunAt = performance.now()
  const stoodStillMs = standstill()
  await areClosed(['orders', 'news'])
  const ms = performance.now() - begunAt
  t.ok(ms < 1500 + stoodStillMs(), `${Math.round(ms)} ms`)

  await there.kill()
  there = await startAnother()
  const restarted = await fetch(`${there.url}/api/orders`)
  t.equal(restarted.status, 503, 'after a restart')
  await askOps(there.opsUrl, `${path}/end`, { json: { routes: ['orders'] } })
  await areClosed(['news'])
})

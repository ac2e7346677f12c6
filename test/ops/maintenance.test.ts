/** Maintenance that operators begin: at all replicas, beside that of routes.yaml. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { stringify } from 'yaml'
import { wallClock } from '../support/clock.ts'
import { start } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { askOps } from '../support/ops.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const path = '/ops/api/maintenance'

const { url } = await testUpstream(t.after)
const routes = (maintenance?: object) => ({
  upstreams: { b: { url } },
  routes: {
    news: { path: '/api/news', upstream: 'b', access: 'public' },
    stock: { path: '/api/stock', upstream: 'b' }
  },
  ...(maintenance !== undefined && { maintenance })
})

for (const hours of [-8, 8]) {
  t.test(`without Redis its end follows a clock that is set ${hours} hours`, async t => {
    const setClock = wallClock(t.after)
    const gateway = await testGateway(t.after, { routes: routes() })
    setClock(hours * 3_600_000)
    await gateway.ops(path, { json: { until: inMs(7_200_000) } })
    const refused = await gateway.call('/api/news')
    t.equal(refused.status, 503)
    const retryAfter = Number(refused.headers.get('retry-after'))
    t.ok(retryAfter > 7100 && retryAfter <= 7200, `${retryAfter} s`)
  })
}

t.test('that of routes.yaml stays in force beside it, also across a reload', async t => {
  const file = { routes: ['news'], until: inMs(3_600_000), message: 'By file.' }
  const gateway = await testGateway(t.after, { routes: routes(file) })
  await gateway.ops(path, { json: { until: inMs(60_000), allowRoles: ['admin'] } })
  t.match(await (await gateway.ops(path)).json(), {
    shared: false,
    file: { message: 'By file.' },
    operators: [{ author: 'operator', allowRoles: ['admin'] }]
  })
  const { maintenance } = (await (await gateway.ops('/readyz')).json()) as Record<string, unknown>
  t.match(
    maintenance,
    /^routes\.yaml closes news until 20\S+; operator closes every route .* until 20/
  )
  const statusFor = async (user: string) =>
    (await gateway.call('/api/stock', { cookie: await gateway.signIn(user) })).status
  t.same([await statusFor('alice'), await statusFor('bob')], [200, 503])
  t.match(await gateway.call('/api/news'), { json: { message: 'By file.' } }, 'the later end')

  writeFileSync(join(gateway.folder, 'routes.yaml'), stringify(routes()))
  t.equal((await gateway.reload('operator')).outcome, 'reloaded')
  t.match(await gateway.call('/api/news'), { status: 503 })
  await gateway.ops(`${path}/end`, { json: {} })
  t.equal((await gateway.call('/api/news')).status, 200)
})

t.test('it holds at another replica, and after a restart', async t => {
  const redis = { url: (await testRedis(t.after)).url, commandTimeout: '5s' }
  const gateway = { redis, session: { secrets: ['${SESSION_SECRET}'] } }
  const single = async () => await testGateway(t.after, { gateway, routes: routes() }, environment)
  const a = await single()
  const folder = await configFolder({ gateway, routes: routes() })
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

  const late = await single()
  t.equal((await late.call('/api/news')).status, 503, 'at a replica that started later')
  await askOps(apart.opsUrl, `${path}/end`, { json: {} })
  t.equal(await status(), 200)
  for (const each of [a, late]) {
    await until('it has ended', async () => (await each.call('/api/news')).status === 200)
  }
})

t.end()

/** What operators close adds up, at each replica, and each answer names all of it. */
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const names = ['orders', 'notices', 'stock']
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

async function gatewayOf({ after }: Pick<Test, 'after'>, redis?: object) {
  const { url } = await testUpstream(after)
  const route = { upstream: 'b', access: 'public', methods: ['GET', 'POST'] }
  const folder = await configFolder({
    gateway: {
      ops: { listen: `127.0.0.1:${await freePort()}` },
      ...(redis && { redis, session: { secrets: ['${SESSION_SECRET}'] } })
    },
    routes: {
      upstreams: { b: { url } },
      routes: Object.fromEntries(names.map(name => [name, { ...route, path: `/api/${name}` }]))
    }
  })
  const SESSION_SECRET = 'a secret of at least thirty-two characters'
  const gateway = await testGateway(after, folder, { SESSION_SECRET })
  /** @returns the names of the routes that refuse */
  const closed = async (method = 'GET') => {
    const answers = await Promise.all(
      names.map(async name => [name, await gateway.call(`/api/${name}`, { method })] as const)
    )
    return answers.flatMap(([name, { status }]) => (status === 503 ? [name] : []))
  }
  const act = async (json: object, at = '') => {
    const response = await gateway.ops(`/ops/api/maintenance${at}`, { json })
    const { operators } = (await response.json()) as { operators?: Shown[] }
    return { status: response.status, operators, routes: operators?.map(({ routes }) => routes) }
  }
  const begin = async (json: object) => await act({ until: inMs(3_600_000), ...json })
  const end = async (json = {}) => await act(json, '/end')
  const command = async (...words: string[]) => await run([...words, '--config', folder])
  return { ...gateway, closed, begin, end, command }
}

interface Shown {
  readonly routes: string[]
  readonly methods: string[]
  readonly message?: string
}

const gateway = await gatewayOf(t)
const { begin, end, closed, command } = gateway
t.afterEach(async () => {
  await end()
})

t.test('case U3: a second begin closes its routes beside those of the first', async t => {
  await begin({ routes: ['orders'], message: 'Stock-taking.' })
  t.same((await begin({ routes: ['notices'] })).routes, [['orders'], ['notices']])
  t.same(await closed(), ['orders', 'notices'])
  t.match(await (await gateway.ops('/readyz')).json(), {
    maintenance: /^operator closes orders .*; operator closes notices /
  })
  t.same((await end({ routes: ['orders'] })).routes, [['notices']])
  t.same(await closed(), ['notices'], 'an end of one leaves the other')
  t.same((await end()).routes, [])
  t.same(await closed(), [])
})

t.test('case U3: a route that is closed again takes the new end and message', async t => {
  for (const name of ['orders', 'notices']) await begin({ routes: [name], message: 'First.' })
  const again = await begin({ until: inMs(1500), routes: ['orders'], message: 'Second.' })
  t.match(again.operators, [
    { routes: ['notices'], message: 'First.' },
    { routes: ['orders'], message: 'Second.' }
  ])
  t.match(await gateway.call('/api/orders'), { status: 503, json: { message: 'Second.' } })
  t.match(await gateway.call('/api/notices'), { status: 503, json: { message: 'First.' } })
  await until('the shorter one has ended', async () => (await closed()).length === 1)
  t.same(await closed(), ['notices'])
})

t.test('case U3: a begin for some methods opens no others', async t => {
  await begin({ routes: ['orders'] })
  const second = await begin({ routes: ['orders'], methods: ['POST'] })
  t.match(second.operators, [{ methods: [] }, { methods: ['POST'] }])
  t.same([await closed(), await closed('POST')], [['orders'], ['orders']])
  const again = await begin({ routes: ['orders', 'notices'], methods: ['POST'] })
  t.equal(again.operators?.length, 3, 'other routes or methods stand beside what was closed before')
})

t.test('case U3: all routes and one by its name stand beside each other', async t => {
  await begin({ routes: ['orders'] })
  t.same((await begin({ until: inMs(1500) })).routes, [['orders'], []])
  t.same(await closed(), names)
  t.equal((await end({ routes: ['notices'] })).status, 400)
  t.same(await closed(), names, 'it opened nothing')
  await until('all have opened', async () => (await closed()).length === 1)
  t.equal((await end({ routes: ['nowhere'] })).status, 400)
  t.same(await closed(), ['orders'], 'the one that was named stays closed')
})

t.test('case U3: begun at two replicas at once, each route is closed at both', async t => {
  const { url } = await testRedis(t.after)
  const [a, b] = [await gatewayOf(t, { url }), await gatewayOf(t, { url })]
  const begun = [a.begin({ routes: ['orders'] }), b.begin({ routes: ['notices'] })]
  await Promise.all([...begun, b.begin({ routes: ['stock'] })])
  const { routes = [] } = await a.begin({ routes: ['login'] })
  t.same(routes.flat().toSorted(), [...names, 'login'].toSorted())
  const areClosed = async (expected: readonly string[]) => {
    for (const replica of [a, b]) {
      await until('it has the same', async () =>
        isDeepStrictEqual(await replica.closed(), expected)
      )
    }
  }
  await areClosed(names)
  await b.end({ routes: ['orders'] })
  await areClosed(['notices', 'stock'])
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
  t.match(await command('maintenance', 'begin', '--until', '30m', '--route', 'notices'), {
    code: 0,
    out: /operator closes orders until .*\nlocal closes notices until /
  })
  const ended = await command('maintenance', 'end', '--route', 'orders')
  t.match(ended, { code: 0, out: /^local closes notices until / })
  t.notMatch(ended.out, /orders/)
  t.same(await closed(), ['notices'])
  const times = ['--from', '10m', '--until', '20m', '--allow-role', 'admin']
  const later = await command('maintenance', 'begin', ...times)
  t.match(later.out, /closes every route but for the roles admin from .* until /)
})

t.end()

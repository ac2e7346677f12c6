/** What operators close adds up, at each replica, and each answer names all of it. */
import { isDeepStrictEqual } from 'node:util'
import t, { type Test } from 'tap'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'

const path = '/ops/api/maintenance'
const names = ['orders', 'notices', 'stock']
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()

async function gatewayOf(t: Test, redisUrl?: string) {
  const { url } = await testUpstream(t.after)
  const shared = {
    redis: { url: redisUrl },
    session: { secrets: ['${SESSION_SECRET}'] }
  }
  const folder = await configFolder({
    gateway: {
      ops: { listen: `127.0.0.1:${await freePort()}` },
      ...(redisUrl !== undefined && shared)
    },
    routes: {
      upstreams: { b: { url } },
      routes: Object.fromEntries(
        names.map(name => [
          name,
          { path: `/api/${name}`, upstream: 'b', access: 'public', methods: ['GET', 'POST'] }
        ])
      )
    }
  })
  const gateway = await testGateway(t.after, folder, {
    SESSION_SECRET: 'a secret of at least thirty-two characters'
  })
  /** @returns the names of the routes that refuse */
  const closed = async (method = 'GET') => {
    const answers = await Promise.all(
      names.map(async name => [name, await gateway.call(`/api/${name}`, { method })] as const)
    )
    return answers.flatMap(([name, { status }]) => (status === 503 ? [name] : []))
  }
  const act = async (json: object, end = '') => {
    const response = await gateway.ops(`${path}${end}`, { json })
    return { status: response.status, ...((await response.json()) as Shown) }
  }
  return { ...gateway, closed, act, end: (json = {}) => act(json, '/end') }
}

interface Shown {
  readonly operators: ReadonlyArray<{ routes: string[]; methods: string[]; message?: string }>
}

t.test('case U3: a second begin closes its routes beside those of the first', async t => {
  const { act, end, closed, ops } = await gatewayOf(t)
  const until = inMs(3_600_000)
  await act({ until, routes: ['orders'], message: 'Stock-taking.' })
  const second = await act({ until, routes: ['notices'] })
  t.same(
    second.operators.map(({ routes }) => routes),
    [['orders'], ['notices']],
    'the answer names all that are closed'
  )
  t.same(await closed(), ['orders', 'notices'])
  t.match(await (await ops('/readyz')).json(), {
    maintenance: /^operator closes orders .*; operator closes notices /
  })

  const opened = await end({ routes: ['orders'] })
  t.same(
    opened.operators.map(({ routes }) => routes),
    [['notices']]
  )
  t.same(await closed(), ['notices'], 'an end of one leaves the other')
  t.same((await end()).operators, [])
  t.same(await closed(), [])
})

t.test('case U3: a route that is closed again takes the new end and message', async t => {
  const { act, call, closed } = await gatewayOf(t)
  await act({ until: inMs(7_200_000), routes: ['orders'], message: 'First.' })
  await act({ until: inMs(7_200_000), routes: ['notices'], message: 'First.' })
  const again = await act({ until: inMs(1_500), routes: ['orders'], message: 'Second.' })
  t.match(again.operators, [
    { routes: ['notices'], message: 'First.' },
    { routes: ['orders'], message: 'Second.' }
  ])
  t.match(await call('/api/orders'), { status: 503, json: { message: 'Second.' } })
  t.match(await call('/api/notices'), { status: 503, json: { message: 'First.' } })
  await until('the shorter one has ended', async () => (await closed()).length === 1)
  t.same(await closed(), ['notices'])
})

t.test('case U3: a begin for some methods opens no others', async t => {
  const { act, closed } = await gatewayOf(t)
  const until = inMs(3_600_000)
  await act({ until, routes: ['orders'] })
  const second = await act({ until, routes: ['orders'], methods: ['POST'] })
  t.match(second.operators, [{ methods: [] }, { methods: ['POST'] }])
  t.same(await closed(), ['orders'])
  t.same(await closed('POST'), ['orders'])
  const again = await act({ until, routes: ['orders', 'notices'], methods: ['POST'] })
  t.equal(again.operators.length, 3, 'other routes or methods stand beside what was closed before')
})

t.test('case U3: all routes and one by its name stand beside each other', async t => {
  const { act, end, closed } = await gatewayOf(t)
  await act({ until: inMs(7_200_000), routes: ['orders'] })
  const all = await act({ until: inMs(1_500) })
  t.same(
    all.operators.map(({ routes }) => routes),
    [['orders'], []]
  )
  t.same(await closed(), names)
  t.match(await end({ routes: ['notices'] }), { status: 400 })
  t.same(await closed(), names, 'it opened nothing')
  await until('all have opened', async () => (await closed()).length === 1)
  t.same(await closed(), ['orders'], 'the one that was named stays closed')
  t.match(await end({ routes: ['nowhere'] }), { status: 400 })
  t.same(await closed(), ['orders'])
})

t.test('case U3: begun at two replicas at once, each route is closed at both', async t => {
  const { url } = await testRedis(t.after)
  const [a, b] = [await gatewayOf(t, url), await gatewayOf(t, url)]
  const end = inMs(3_600_000)
  await Promise.all([
    a.act({ until: end, routes: ['orders'] }),
    b.act({ until: end, routes: ['notices'] }),
    b.act({ until: end, routes: ['stock'] })
  ])
  const last = await a.act({ until: end, routes: ['login'] })
  t.same(last.operators.flatMap(({ routes }) => routes).toSorted(), [...names, 'login'].toSorted())
  const areClosed = async (routes: readonly string[]) => {
    for (const replica of [a, b]) {
      await until('it has the same', async () => isDeepStrictEqual(await replica.closed(), routes))
    }
  }
  await areClosed(names)
  await b.end({ routes: ['orders'] })
  await areClosed(['notices', 'stock'])
})

t.test(
  'a later beginning: open until then, and status tells what is closed until when',
  async t => {
    const gateway = await gatewayOf(t)
    const from = inMs(1500)
    await gateway.act({ from, until: inMs(3_600_000), routes: ['orders'] })
    t.same(await gateway.closed(), [])
    const status = await run(['status', '--config', gateway.folder])
    t.match(status.out, /maintenance +operator closes orders from \S+ until \S+\n/)
    await until('it has begun', async () => (await gateway.closed()).length > 0)
    t.ok(Date.now() >= Date.parse(from))
    t.match(await gateway.act({ from: inMs(2000), until: inMs(1000) }), { status: 400 })
    const words = [
      'maintenance',
      'begin',
      '--from',
      '10m',
      '--until',
      '20m',
      '--allow-role',
      'admin'
    ]
    t.match(await run([...words, '--config', gateway.folder]), {
      code: 0,
      out: /closes every route but for the roles admin from .* until /
    })
  }
)

t.test('case U3: the command names all that is closed, and opens one route', async t => {
  const gateway = await gatewayOf(t)
  const maintenance = async (...words: string[]) =>
    await run(['maintenance', ...words, '--config', gateway.folder])
  await gateway.act({ until: inMs(3_600_000), routes: ['orders'] })
  t.match(await maintenance('begin', '--until', '30m', '--route', 'notices'), {
    code: 0,
    out: /operator closes orders until .*\nlocal closes notices until /
  })
  const ended = await maintenance('end', '--route', 'orders')
  t.match(ended, { code: 0, out: /^local closes notices until / })
  t.notMatch(ended.out, /orders/)
  t.same(await gateway.closed(), ['notices'])
})

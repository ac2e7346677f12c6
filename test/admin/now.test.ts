/** The present of a real gateway: rates and upstreams. */
import t, { type Test } from 'tap'
import type { Now } from '../../src/admin/now-schema.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const read = async (gateway: TestGateway) =>
  (await (await gateway.ops('/ops/api/now')).json()) as Now

async function gatewayWith(t: Test, upstreams: object) {
  return await testGateway(t.after, {
    gateway: { server: { hosts: [] } },
    routes: {
      upstreams,
      routes: Object.fromEntries(
        Object.keys(upstreams).map(name => [
          name,
          { path: `/api/${name}`, upstream: name, access: 'public' }
        ])
      )
    },
    limits: {}
  })
}

t.test('rates, error share and percentiles of each route', async t => {
  const good = await testUpstream(t.after)
  const bad = await testUpstream(t.after, json(500, {}))
  const gateway = await gatewayWith(t, { good: { url: good.url }, bad: { url: bad.url } })
  for (let count = 0; count < 30; count++) await gateway.call('/api/good')
  for (let count = 0; count < 10; count++) await gateway.call('/api/bad')
  await until('all are counted', async () => (await read(gateway)).requestsPerSecond > 0)
  const now = await read(gateway)
  t.same(
    now.routes.map(({ route, errorShare }) => [route, errorShare]),
    [
      ['good', 0],
      ['bad', 1]
    ]
  )
  t.equal(now.errorShare, 0.25)
  const [ofGood, ofBad] = now.routes
  const ratio = (ofGood?.requestsPerSecond ?? 0) / (ofBad?.requestsPerSecond ?? 1)
  t.ok(Math.abs(ratio - 3) < 0.01, `${ratio}`)
  t.ok((ofGood?.p50Ms ?? 0) > 0)
  t.ok((ofGood?.p99Ms ?? 0) >= (ofGood?.p50Ms ?? Infinity))
  t.match(now, {
    redis: { state: 'embedded', latencyMs: null, since: null },
    process: { pid: process.pid, rssBytes: Number, cpu: Number },
    replicas: [{ id: now.replica, ready: true, configHash: now.config.hash }],
    config: { generation: 1, hash: /^[0-9a-f]{16}$/, state: 'running' },
    inFlight: 0,
    queued: 0
  })
})

t.test('an address that does not work shows', async t => {
  const alive = await testUpstream(t.after)
  const dead = `http://127.0.0.1:${await freePort()}`
  const gateway = await gatewayWith(t, { pair: { urls: [alive.url, dead] }, sole: { url: dead } })
  for (let count = 0; count < 20; count++) await gateway.call('/api/pair')
  for (let count = 0; count < 10; count++) await gateway.call('/api/sole')
  const { upstreams } = await read(gateway)
  const of = (upstream: string, address: string) =>
    upstreams.find(each => each.upstream === upstream && each.address.includes(address))
  t.match(of('pair', alive.url), { state: 'up', errorShare: 0 })
  t.match(of('pair', dead), { state: 'open', errorShare: 1 })
  t.match(of('sole', dead), { state: 'open', errorShare: 1 })
  t.ok((of('pair', alive.url)?.requestsPerSecond ?? 0) > 0)
})

/** The present of a real gateway: rates, upstreams, the live stream. */
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

t.test('the stream sends the present at once and every second', async t => {
  const gateway = await gatewayWith(t, {})
  const response = await gateway.ops('/ops/api/now/stream')
  t.equal(response.headers.get('content-type'), 'text/event-stream')
  t.equal(response.headers.get('cache-control'), 'no-store')
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk)
    if (text.split('\n\n').length > 3) break
  }
  const events = text.split('\n\n').slice(0, 3)
  for (const event of events) {
    const [name, data] = event.split('\n')
    t.equal(name, 'event: now')
    t.ok((JSON.parse(data?.replace('data: ', '') ?? '') as Now).at)
  }
  const last = JSON.parse(events[2]?.split('data: ')[1] ?? '') as Now
  t.type(last.process.eventLoopDelayMs, 'number', 'measured while somebody watches')
})

t.test('so many streams and no more; a stopping gateway ends them', async t => {
  const gateway = await gatewayWith(t, {})
  const open = await Promise.all(
    Array.from({ length: 32 }, () => gateway.ops('/ops/api/now/stream'))
  )
  t.ok(open.every(({ status }) => status === 200))
  const refused = await gateway.ops('/ops/api/now/stream')
  t.equal(refused.status, 503)
  t.match(await refused.json(), { code: 'overloaded', error: /32 live views/ })
  await open[0]?.body?.cancel()
  await until('one place is free', async () => {
    const next = await gateway.ops('/ops/api/now/stream')
    if (next.status !== 200) await next.body?.cancel()
    else open.push(next)
    return next.status === 200
  })
  const texts = Promise.all(open.slice(1).map(response => response.text()))
  await gateway.stop({ noticeMs: 0 })
  for (const text of await texts) t.match(text, /event: end\ndata: \{\}\n\n$/)
})

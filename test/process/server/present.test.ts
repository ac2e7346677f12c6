/** What a process reports of its present: differences. */
import t from 'tap'
import { createCounters } from '../../../src/app/hooks/metrics.ts'
import { Metrics, requestBuckets } from '../../../src/observability/metrics.ts'
import type { AddressUse } from '../../../src/proxy/pools.ts'
import { createPresent } from '../../../src/services/present.ts'

type Services = Parameters<typeof createPresent>[0]

const use = { upstream: 'b', address: 'http://b:1', state: 'up', inFlight: 2, since: 0 } as const
let address: AddressUse = { ...use, requests: 100, failures: 10 }
const upstreams = { addresses: () => [address], waiting: () => [['b', 3]] } as unknown
const metrics = new Metrics()
const { meter } = createCounters(metrics)
const present = createPresent({
  metrics,
  upstreams: upstreams as Services['upstreams'],
  redis: undefined
})
t.after(() => present.close())

/** So many requests of a route without an upstream. */
function answer(route: string, outcome: number, ms: number, times = 1): void {
  const ended = { method: 'GET', outcome, ms, isCut: outcome === 499, upstreamMs: undefined }
  for (let count = 0; count < times; count++) meter(route, undefined)(ended)
}

t.test('counts are those of the period; a new pool counts from zero', async t => {
  const idle = { p50Ms: null, p99Ms: null, requestsPerSecond: 0, errorShare: 0, routes: [] }
  t.match(present.read(), idle)
  answer('r0', 200, 7)
  answer('r0', 502, 70)
  answer('r0', 499, 40_000)
  address = { ...use, requests: 120, failures: 11 }
  await present.sample()
  const { routes, upstreams, queued } = present.read()
  t.match(routes, [{ route: 'r0', errorShare: 0.3333, p99Ms: 1000 * (requestBuckets.at(-1) ?? 0) }])
  t.equal(routes.length, 1)
  t.match(upstreams, [{ state: 'up', errorShare: 0.05, inFlight: 2, queued: 3 }])
  t.equal(queued, 3)
  address = { ...use, requests: 5, failures: 1 }
  t.match(present.read().upstreams, [{ errorShare: 0.2 }])
})

t.test('percentiles are read from the sum of the buckets of all routes', async t => {
  answer('r0', 200, 2, 980)
  answer('r1', 200, 900, 20)
  await present.sample()
  const { p50Ms, p99Ms, routes } = present.read()
  t.ok((p50Ms ?? Infinity) < 2.5, `${p50Ms}`)
  t.ok((p99Ms ?? 0) > 500, `${p99Ms}`)
  t.match(routes, [{ route: 'r0' }, { route: 'r1' }], 'the busiest first')
})

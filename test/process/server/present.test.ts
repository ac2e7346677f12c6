/** What a process reports of its present: differences. */
import t from 'tap'
import { createCounters, type Meter } from '../../../src/app/hooks/metrics.ts'
import { Metrics, requestBuckets } from '../../../src/observability/metrics.ts'
import type { AddressUse } from '../../../src/proxy/pools.ts'
import { createPresent } from '../../../src/services/present.ts'

type Services = Parameters<typeof createPresent>[0]

/** @param addresses of the upstream `b` */
function processWith(addresses: AddressUse[] = []) {
  const metrics = new Metrics()
  const { meter } = createCounters(metrics)
  const upstreams = { addresses: () => addresses, waiting: () => [['b', 3]] } as unknown
  const present = createPresent({
    metrics,
    upstreams: upstreams as Services['upstreams'],
    redis: undefined
  })
  t.after(() => present.close())
  return { meters: ['r0', 'r1'].map(route => meter(route, undefined)), present }
}

/** So many requests without an upstream. */
function answer(meter: Meter | undefined, outcome: number, ms: number, times = 1): void {
  const isCut = outcome === 499
  for (let count = 0; count < times; count++) {
    meter?.({ method: 'GET', outcome, ms, isCut, upstreamMs: undefined })
  }
}

t.test('counts are those of the period; a new pool counts from zero', async t => {
  const use = { upstream: 'b', address: 'http://b:1', state: 'up', inFlight: 2, since: 0 } as const
  const addresses = [{ ...use, requests: 100, failures: 10 }]
  const { meters, present } = processWith(addresses)
  answer(meters[0], 200, 7)
  answer(meters[0], 502, 70)
  answer(meters[0], 499, 40_000)
  addresses[0] = { ...use, requests: 120, failures: 11 }
  await present.sample()
  const { routes, upstreams, queued } = present.read()
  t.match(routes, [{ route: 'r0', errorShare: 0.3333, p99Ms: 1000 * (requestBuckets.at(-1) ?? 0) }])
  t.equal(routes.length, 1)
  t.match(upstreams, [{ state: 'up', errorShare: 0.05, inFlight: 2, queued: 3 }])
  t.equal(queued, 3)
  addresses[0] = { ...use, requests: 5, failures: 1 }
  t.match(present.read().upstreams, [{ errorShare: 0.2 }])
})

t.test('percentiles are read from the sum of the buckets of all routes', async t => {
  const { meters, present } = processWith()
  answer(meters[0], 200, 2, 980)
  answer(meters[1], 200, 900, 20)
  await present.sample()
  const { p50Ms, p99Ms, routes } = present.read()
  t.ok((p50Ms ?? Infinity) < 2.5, `${p50Ms}`)
  t.ok((p99Ms ?? 0) > 500, `${p99Ms}`)
  t.match(routes, [{ route: 'r0' }, { route: 'r1' }], 'the busiest first')
  const idle = processWith().present.read()
  t.match(idle, { p50Ms: null, p99Ms: null, requestsPerSecond: 0, errorShare: 0, routes: [] })
})

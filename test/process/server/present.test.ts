/** What a process reports of its present: differences. */
import t from 'tap'
import { createCounters, type Meter } from '../../../src/app/hooks/metrics.ts'
import { Metrics } from '../../../src/observability/metrics.ts'
import { boundsMs, RequestRates } from '../../../src/observability/request-rates.ts'
import { createPresent } from '../../../src/services/present.ts'
import type { AddressUse } from '../../../src/proxy/pools.ts'

type Services = Parameters<typeof createPresent>[0]

function processWith(routes: number, addresses: AddressUse[]) {
  const rates = new RequestRates()
  const { meter: createMeter } = createCounters(new Metrics(), rates)
  const meters = Array.from({ length: routes }, (_, index) => createMeter(`r${index}`, undefined))
  const upstreams = { addresses: () => addresses, waiting: () => [['b', 3]] } as unknown
  const present = createPresent({
    rates,
    upstreams: upstreams as Services['upstreams'],
    redis: undefined
  })
  t.after(() => present.close())
  return { meters, present }
}

const address = (requests: number, failures: number): AddressUse => ({
  upstream: 'b',
  address: 'http://b:1',
  state: 'up',
  inFlight: 2,
  since: 0,
  requests,
  failures
})

/** A request without an upstream. */
const answered = (outcome: number, ms: number): Parameters<Meter>[0] => ({
  method: 'GET',
  outcome,
  ms,
  isCut: false,
  upstreamMs: undefined
})

t.test('counts are those of the period; a new pool counts from zero', t => {
  const addresses = [address(100, 10)]
  const { meters, present } = processWith(2, addresses)
  const [first] = meters
  first?.(answered(200, 7))
  first?.(answered(502, 70))
  first?.({ ...answered(499, 40_000), isCut: true })
  addresses[0] = address(120, 11)
  present.sample()
  const { routes, upstreams, queued } = present.read()
  t.match(routes, [{ route: 'r0', errorShare: 0.3333, p99Ms: boundsMs.at(-1) }])
  t.equal(routes.length, 1)
  t.match(upstreams, [{ state: 'up', errorShare: 0.05, inFlight: 2, queued: 3 }])
  t.equal(queued, 3)
  addresses[0] = address(5, 1)
  t.match(present.read().upstreams, [{ errorShare: 0.2 }])
  t.end()
})

t.test('percentiles are read from the sum of the buckets of all routes', t => {
  const { meters, present } = processWith(2, [])
  for (let count = 0; count < 980; count++) meters[0]?.(answered(200, 2))
  for (let count = 0; count < 20; count++) meters[1]?.(answered(200, 900))
  present.sample()
  const { p50Ms, p99Ms, routes } = present.read()
  t.ok((p50Ms ?? Infinity) < 2.5, `${p50Ms}`)
  t.ok((p99Ms ?? 0) > 500, `${p99Ms}`)
  t.same(
    routes.map(({ route }) => route),
    ['r0', 'r1'],
    'the busiest first'
  )
  const idle = processWith(1, []).present.read()
  t.match(idle, { p50Ms: null, p99Ms: null, requestsPerSecond: 0, errorShare: 0, routes: [] })
  t.end()
})

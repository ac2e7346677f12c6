/** This process at present: rates of the last ten seconds, its upstreams, its own load. */
import { type Metrics, requestBuckets } from '../observability/metrics.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { Services } from './services.ts'

/** Numbers of requests: all, with 5xx, with 4xx, then those within each bound of `requestBuckets`. */
type Counts = readonly number[]

interface Sample {
  readonly at: number
  readonly routes: ReadonlyMap<string, Counts>
  readonly upstreams: ReadonlyMap<string, AddressUse>
}

const sampleEveryMs = 1000
const maxSamples = 11
const maxPast = 300

export type Present = ReturnType<typeof createPresent>
export type Now = ReturnType<Present['read']>
/** One point of the charts, each second: the figures of the ten seconds before it. */
export type Past = ReturnType<typeof inSeconds>

type Used = Pick<Services, 'metrics' | 'upstreams' | 'redis'>

export function createPresent({ metrics, upstreams, redis }: Used) {
  const usesOfUpstreams = () => new Map(upstreams.addresses().map(each => [keyOf(each), each]))
  let first: Sample = { at: performance.now(), routes: new Map(), upstreams: usesOfUpstreams() }
  let last = first
  const samples = [first]
  const past: Past[] = []

  /** Of the ten seconds before the last sample. */
  function counts() {
    const routes = Array.from(last.routes, ([route, of]) => {
      const before = first.routes.get(route)
      return { route, of: of.map((count, index) => count - (before?.[index] ?? 0)) }
    }).filter(({ of: [requests = 0] }) => requests > 0)
    const sum = (one: Counts, other: Counts) => other.map((count, at) => count + (one[at] ?? 0))
    const all = routes.map(({ of }) => of).reduce(sum, [])
    return { all, routes, seconds: secondsIn(last.at - first.at) }
  }

  async function sample(): Promise<void> {
    const routes = await countsByRoute(metrics)
    last = { at: performance.now(), routes, upstreams: usesOfUpstreams() }
    samples.push(last)
    if (samples.length > maxSamples) samples.shift()
    first = samples[0] ?? last
    const { all, seconds } = counts()
    past.push(inSeconds(all, seconds))
    if (past.length > maxPast) past.shift()
  }

  const timer = setInterval(() => void sample(), sampleEveryMs).unref()
  return {
    past: past as readonly Past[],
    sample,
    read: () => {
      const { all, routes, seconds } = counts()
      const untilNow = secondsIn(performance.now() - first.at)
      const busiest = routes.toSorted(({ of: [a = 0] }, { of: [b = 0] }) => b - a)
      return {
        ...inSeconds(all, seconds),
        routes: busiest.map(({ route, of }) => ({ route, ...inSeconds(of, seconds) })),
        inFlight: metrics.inFlight,
        queued: Array.from(upstreams.waiting()).reduce((sum, [, waiting]) => sum + waiting, 0),
        upstreams: upstreamsSince(upstreams, first, untilNow),
        redis
      }
    },
    close: (): void => clearInterval(timer)
  }
}

async function countsByRoute(metrics: Metrics): Promise<Sample['routes']> {
  const routes = new Map<string, number[]>()
  for (const { labels, value } of await metrics.values('console_gateway_requests_total')) {
    const { route = '', status } = labels
    const [all = 0, failed = 0, refused = 0] = routes.get(route) ?? []
    const isOf = (kind: string) => (status === kind ? value : 0)
    routes.set(route, [all + value, failed + isOf('5xx'), refused + isOf('4xx')])
  }
  const durations = await metrics.values('console_gateway_request_duration_seconds')
  for (const { labels, value } of durations) {
    const { route = '', le } = labels
    if (le !== undefined && le !== '+Inf') routes.get(route)?.push(value)
  }
  return routes
}

function upstreamsSince(upstreams: Services['upstreams'], first: Sample, seconds: number) {
  const waiting = new Map(upstreams.waiting())
  return upstreams.addresses().map(use => {
    const { upstream, address, state, inFlight } = use
    let { requests, failures: errors } = use
    const before = first.upstreams.get(keyOf(use))
    // A new pool of the same address counts from zero.
    if (before !== undefined && before.requests <= requests) {
      requests -= before.requests
      errors -= before.failures
    }
    const queued = waiting.get(upstream) ?? 0
    return { upstream, address, state, inFlight, queued, ...ratesOf(requests, errors, seconds) }
  })
}

function keyOf({ upstream, address }: AddressUse): string {
  return `${upstream} ${address}`
}

function inSeconds(counts: Counts, seconds: number) {
  const [requests = 0, errors = 0, refused = 0, ...within] = counts
  return {
    ...ratesOf(requests, errors, seconds),
    refusedShare: shareOf(refused, requests),
    p50Ms: percentile(within, 0.5 * requests),
    p99Ms: percentile(within, 0.99 * requests)
  }
}

function secondsIn(ms: number): number {
  return Math.max(1, ms) / 1000
}

function ratesOf(requests: number, errors: number, seconds: number) {
  return {
    requestsPerSecond: rounded(requests / seconds),
    errorShare: shareOf(errors, requests)
  }
}

function shareOf(part: number, all: number): number {
  return all === 0 ? 0 : rounded(Math.min(1, part / all))
}

/** As Prometheus estimates it: evenly spread within a bucket, at most the last bound. */
function percentile(within: readonly number[], rank: number): number | null {
  if (rank === 0) return null
  const index = within.findIndex(count => count >= rank)
  const upper = requestBuckets.at(index) ?? 0
  if (index < 0) return 1000 * upper
  const lower = requestBuckets[index - 1] ?? 0
  const below = within[index - 1] ?? 0
  const part = (rank - below) / ((within[index] ?? 0) - below)
  return rounded(1000 * (lower + (upper - lower) * part))
}

/** Four digits: more only make the JSON longer. */
function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

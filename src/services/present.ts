/** This process at present: rates of the last ten seconds, its upstreams, its own load. */
import { boundsMs, RequestRates, RouteCounts } from '../observability/request-rates.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { Services } from './services.ts'

interface Sample {
  readonly at: number
  /** Since the sample before. */
  readonly routes: ReadonlyMap<string, RouteCounts>
  readonly upstreams: ReadonlyMap<string, AddressUse>
}

const sampleEveryMs = 1000
const maxSamples = 11
const maxPast = 300

export type Present = ReturnType<typeof createPresent>
export type Now = ReturnType<Present['read']>
/** One point of the charts, each second: the figures of the ten seconds before it. */
export type Past = ReturnType<typeof inSeconds>

export function createPresent(services: Pick<Services, 'rates' | 'upstreams' | 'redis'>) {
  const { rates, upstreams } = services
  const samples: Sample[] = []
  const past: Past[] = []

  /** Of the ten seconds before the last sample. */
  function counts() {
    const [first, ...others] = samples as [Sample, ...Sample[]]
    const routes = new RequestRates()
    const all = new RouteCounts()
    for (const [route, of] of others.flatMap(each => [...each.routes])) {
      routes.ofRoute(route).add(of)
      all.add(of)
    }
    const { at } = others.at(-1) ?? first
    return { first, all, routes, seconds: secondsIn(at - first.at) }
  }

  function sample(): void {
    samples.push({
      at: performance.now(),
      routes: rates.take(),
      upstreams: new Map(upstreams.addresses().map(each => [keyOf(each), each]))
    })
    if (samples.length > maxSamples) samples.shift()
    const { all, seconds } = counts()
    past.push(inSeconds(all, seconds))
    if (past.length > maxPast) past.shift()
  }

  sample()
  const timer = setInterval(sample, sampleEveryMs).unref()
  return {
    past: past as readonly Past[],
    sample,
    read: () => {
      const { first, all, routes, seconds } = counts()
      const untilNow = secondsIn(performance.now() - first.at)
      const busiest = [...routes.take()].toSorted(([, a], [, b]) => b.requests - a.requests)
      return {
        ...inSeconds(all, seconds),
        routes: busiest.map(([route, of]) => ({ route, ...inSeconds(of, seconds) })),
        inFlight: rates.inFlight,
        queued: Array.from(upstreams.waiting()).reduce((sum, [, waiting]) => sum + waiting, 0),
        upstreams: upstreamsSince(upstreams, first, untilNow),
        redis: services.redis
      }
    },
    close: (): void => clearInterval(timer)
  }
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

function inSeconds(counts: RouteCounts, seconds: number) {
  return {
    ...ratesOf(counts.requests, counts.errors, seconds),
    refusedShare: shareOf(counts.refused, counts.requests),
    p50Ms: percentile(counts, 0.5),
    p99Ms: percentile(counts, 0.99)
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
function percentile({ requests, buckets }: RouteCounts, part: number): number | null {
  if (requests === 0) return null
  let rank = part * requests
  for (const [index, upper] of boundsMs.entries()) {
    const count = buckets[index] ?? 0
    if (count > 0 && rank <= count) {
      const lower = boundsMs[index - 1] ?? 0
      return rounded(lower + ((upper - lower) * rank) / count)
    }
    rank -= count
  }
  return boundsMs.at(-1) ?? null
}

/** Four digits: more only make the JSON longer. */
function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

/** The present of several processes as one: counts are added, percentiles read from the sums. */
import type { Now, UpstreamNow } from '../../admin/now-schema.ts'
import { boundsMs } from '../../app/request-rates.ts'
import type { RedisState } from '../../services/services.ts'
import type { Observation } from './observers.ts'
import type { ProcessPresent, UpstreamCounts } from './present.ts'

export type Present = Pick<
  Now,
  | 'processes'
  | 'requestsPerSecond'
  | 'errorShare'
  | 'inFlight'
  | 'queued'
  | 'p50Ms'
  | 'p99Ms'
  | 'routes'
  | 'upstreams'
  | 'redis'
>

/** Sums of one route, or of one address of an upstream. */
interface Sums {
  requests: number
  errors: number
  perSecond: number
  readonly buckets: number[]
}

const maxRoutes = 1000

export function mergePresent(observed: readonly Observation[]): Present {
  const presents = observed.map(({ value }) => value as ProcessPresent)
  const byRoute = new Map<string, Sums>()
  const total = createSums()
  for (const { routes, seconds } of presents) {
    for (const { route, requests, errors, buckets } of routes) {
      let sums = byRoute.get(route)
      if (sums === undefined) byRoute.set(route, (sums = createSums()))
      for (const each of [sums, total]) {
        add(each, requests, errors, seconds)
        for (let index = 0; index < buckets.length; index++) {
          each.buckets[index] = (each.buckets[index] ?? 0) + (buckets[index] as number)
        }
      }
    }
  }
  const routes = [...byRoute].toSorted(([, a], [, b]) => b.perSecond - a.perSecond)
  return {
    processes: observed.map(({ worker, pid }, index) => {
      const { load } = presents[index] as ProcessPresent
      const { rssBytes, cpu, eventLoopDelayMs } = load
      return {
        ...(worker !== undefined && { worker }),
        pid,
        rssBytes,
        cpu: rounded(cpu),
        ...(eventLoopDelayMs !== undefined && { eventLoopDelayMs: rounded(eventLoopDelayMs) })
      }
    }),
    ...ratesOf(total),
    ...percentilesOf(total),
    inFlight: sumOf(presents, ({ inFlight }) => inFlight),
    queued: sumOf(presents, ({ queued }) => queued),
    routes: routes
      .slice(0, maxRoutes)
      .map(([route, sums]) => ({ route, ...ratesOf(sums), ...percentilesOf(sums) })),
    upstreams: mergeUpstreams(presents),
    redis: mergeRedis(presents.map(({ redis }) => redis))
  }
}

function createSums(): Sums {
  return { requests: 0, errors: 0, perSecond: 0, buckets: [] }
}

function add(sums: Sums, requests: number, errors: number, seconds: number): void {
  sums.requests += requests
  sums.errors += errors
  sums.perSecond += requests / seconds
}

function ratesOf({ requests, errors, perSecond }: Sums) {
  return {
    requestsPerSecond: rounded(perSecond),
    errorShare: requests === 0 ? 0 : rounded(Math.min(1, errors / requests))
  }
}

function percentilesOf({ requests, buckets }: Sums) {
  return {
    p50Ms: percentile(buckets, requests, 0.5),
    p99Ms: percentile(buckets, requests, 0.99)
  }
}

/** As Prometheus estimates it: evenly spread within a bucket, at most the last bound. */
function percentile(buckets: readonly number[], requests: number, part: number): number | null {
  if (requests === 0) return null
  let rank = part * requests
  for (let index = 0; index < boundsMs.length; index++) {
    const count = buckets[index] ?? 0
    const upper = boundsMs[index] as number
    if (count > 0 && rank <= count) {
      const lower = boundsMs[index - 1] ?? 0
      return rounded(lower + ((upper - lower) * rank) / count)
    }
    rank -= count
  }
  return boundsMs.at(-1) ?? null
}

/** Each process has connections of its own: an address is as it is for the one that it fails. */
function mergeUpstreams(presents: readonly ProcessPresent[]): UpstreamNow[] {
  const merged = new Map<string, { worst: UpstreamCounts; sums: Sums; inFlight: number }>()
  const queued = new Map<string, number>()
  for (const { upstreams, seconds } of presents) {
    for (const counts of upstreams) {
      const key = `${counts.upstream} ${counts.address}`
      let entry = merged.get(key)
      if (entry === undefined) {
        merged.set(key, (entry = { worst: counts, sums: createSums(), inFlight: 0 }))
      }
      if (entry.worst.state === 'up') entry.worst = counts
      add(entry.sums, counts.requests, counts.failures, seconds)
      entry.inFlight += counts.inFlight
    }
    for (const [upstream, waiting] of new Map(
      upstreams.map(each => [each.upstream, each.queued])
    )) {
      queued.set(upstream, (queued.get(upstream) ?? 0) + waiting)
    }
  }
  const all = [...merged.values()]
  const working = new Set(
    all.filter(({ worst }) => worst.state === 'up').map(({ worst }) => worst.upstream)
  )
  return all.map(({ worst: { upstream, address, state, breaker }, sums, inFlight }) => ({
    upstream,
    address,
    state,
    breaker,
    ejected: state !== 'up' && working.has(upstream),
    inFlight,
    queued: queued.get(upstream) ?? 0,
    ...ratesOf(sums)
  }))
}

/** As it is for the process for which it is worst. */
function mergeRedis(states: readonly RedisState[]): Now['redis'] {
  const shared = states.flatMap(state => (state.kind === 'redis' ? [state] : []))
  const [worst] = shared.toSorted(
    (a, b) => Number(a.up) - Number(b.up) || (b.latencyMs ?? 0) - (a.latencyMs ?? 0)
  )
  if (worst === undefined) return { state: 'embedded', latencyMs: null, since: null }
  const { up, latencyMs, since } = worst
  return {
    state: up ? 'up' : 'down',
    latencyMs: latencyMs === undefined ? null : rounded(latencyMs),
    since: new Date(since).toISOString()
  }
}

function sumOf<T>(values: readonly T[], read: (value: T) => number): number {
  return values.reduce((sum, value) => sum + read(value), 0)
}

/** Four digits: more only make the JSON longer. */
function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

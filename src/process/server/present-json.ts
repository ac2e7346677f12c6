/** The present as operators read it: shares, rates and percentiles of its counts. */
import type { Now, UpstreamNow } from '../../admin/now-schema.ts'
import { boundsMs } from '../../observability/request-rates.ts'
import type { RedisState } from '../../services/services.ts'
import type { ProcessPresent } from './present.ts'

export type Present = Pick<
  Now,
  | 'process'
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

const maxRoutes = 1000

export function presentJson(present: ProcessPresent): Present {
  const { seconds, inFlight, queued, routes, load, redis } = present
  const { rssBytes, cpu, eventLoopDelayMs } = load
  const total = { requests: 0, errors: 0, buckets: [] as number[] }
  for (const { requests, errors, buckets } of routes) {
    total.requests += requests
    total.errors += errors
    for (const [index, count] of buckets.entries()) {
      total.buckets[index] = (total.buckets[index] ?? 0) + count
    }
  }
  return {
    process: {
      pid: process.pid,
      rssBytes,
      cpu: rounded(cpu),
      ...(eventLoopDelayMs !== undefined && { eventLoopDelayMs: rounded(eventLoopDelayMs) })
    },
    ...ratesOf(total.requests, total.errors, seconds),
    ...percentilesOf(total.requests, total.buckets),
    inFlight,
    queued,
    routes: routes
      .toSorted((a, b) => b.requests - a.requests)
      .slice(0, maxRoutes)
      .map(({ route, requests, errors, buckets }) => ({
        route,
        ...ratesOf(requests, errors, seconds),
        ...percentilesOf(requests, buckets)
      })),
    upstreams: upstreamsOf(present),
    redis: redisOf(redis)
  }
}

function ratesOf(requests: number, errors: number, seconds: number) {
  return {
    requestsPerSecond: rounded(requests / seconds),
    errorShare: requests === 0 ? 0 : rounded(Math.min(1, errors / requests))
  }
}

function percentilesOf(requests: number, buckets: readonly number[]) {
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

function upstreamsOf({ upstreams, seconds }: ProcessPresent): UpstreamNow[] {
  return upstreams.map(({ requests, failures, ...address }) => ({
    ...address,
    ...ratesOf(requests, failures, seconds)
  }))
}

function redisOf(state: RedisState): Now['redis'] {
  if (state.kind === 'embedded') return { state: 'embedded', latencyMs: null, since: null }
  const { up, latencyMs, since } = state
  return {
    state: up ? 'up' : 'down',
    latencyMs: latencyMs === undefined ? null : rounded(latencyMs),
    since: new Date(since).toISOString()
  }
}

/** Four digits: more only make the JSON longer. */
function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

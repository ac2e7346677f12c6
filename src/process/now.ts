/** This process at present: rates of the last ten seconds, its upstreams, its own load. */
import type { Now, Past } from '../ops/state-schemas.ts'
import type { GatewayState } from '../services/gateway-state.ts'
import { boundsMs, RouteCounts } from '../observability/request-rates.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { Services } from '../services/services.ts'

interface Sample {
  readonly at: number
  readonly totals: ReadonlyMap<string, RouteCounts>
  /** By upstream and address. */
  readonly upstreams: ReadonlyMap<string, AddressUse>
  readonly cpu: NodeJS.CpuUsage
  readonly delayMs: number
}

const sampleEveryMs = 1000
/** One more than the seconds of the period. */
const maxSamples = 11
const loopTimerMs = 20
const maxRoutes = 1000
/** Five minutes of charts. */
const maxPast = 300

export type Present = ReturnType<typeof createPresent>

/** Samples once a second: 0.15 ms for 1,000 routes and 100 addresses. */
export function createPresent(services: Pick<Services, 'rates' | 'upstreams' | 'redis'>) {
  const { rates, upstreams } = services
  const samples: Sample[] = []
  const past: Past[] = []
  let loopAt = performance.now()
  /** Since the last sample. */
  let maxDelayMs = 0

  /** Node's own histogram forgets a delay in which it is reset. */
  function measureDelay(): void {
    const now = performance.now()
    maxDelayMs = Math.max(maxDelayMs, now - loopAt - loopTimerMs)
    loopAt = now
  }

  /** Of the last ten seconds, each route with requests. */
  function counts() {
    const first = samples[0] as Sample
    const all = Array.from(rates.read(first.totals))
    return {
      first,
      seconds: Math.max(1, performance.now() - first.at) / 1000,
      routes: all.filter(([, { requests }]) => requests > 0)
    }
  }

  function sample(): void {
    measureDelay()
    samples.push({
      at: performance.now(),
      totals: rates.read(),
      upstreams: new Map(upstreams.addresses().map(each => [keyOf(each), each])),
      cpu: process.cpuUsage(),
      delayMs: maxDelayMs
    })
    maxDelayMs = 0
    if (samples.length > maxSamples) samples.shift()
    const { routes, seconds } = counts()
    past.push(inSeconds(sumOf(routes), seconds))
    if (past.length > maxPast) past.shift()
  }

  sample()
  const timers = [
    setInterval(sample, sampleEveryMs).unref(),
    setInterval(measureDelay, loopTimerMs).unref()
  ]
  return {
    /** Oldest first. */
    past: past as readonly Past[],
    sample,
    read: (): Omit<Now, 'replicas'> => {
      const { first, seconds, routes } = counts()
      const { user, system } = process.cpuUsage(first.cpu)
      routes.sort(([, a], [, b]) => b.requests - a.requests)
      return {
        process: {
          pid: process.pid,
          rssBytes: process.memoryUsage.rss(),
          cpu: rounded((user + system) / 1e6 / seconds),
          eventLoopDelayMs: rounded(Math.max(...samples.map(({ delayMs }) => delayMs)))
        },
        ...inSeconds(sumOf(routes), seconds),
        routes: routes
          .slice(0, maxRoutes)
          .map(([route, of]) => ({ route, ...inSeconds(of, seconds) })),
        inFlight: rates.inFlight,
        queued: Array.from(upstreams.waiting()).reduce((sum, [, waiting]) => sum + waiting, 0),
        upstreams: upstreamsSince(upstreams, first, seconds),
        redis: redisNow(services.redis)
      }
    },
    close: (): void => timers.forEach(clearInterval)
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

function redisNow(redis: Services['redis']): Now['redis'] {
  if (redis === undefined) return { state: 'embedded', latencyMs: null, since: null }
  const { up, latencyMs, since } = redis
  return {
    state: up ? 'up' : 'down',
    latencyMs: latencyMs === undefined ? null : rounded(latencyMs),
    since: new Date(since).toISOString()
  }
}

export type ReplicaState = ReturnType<typeof describeReplica>

/** What other replicas and operators see of this one. */
export function describeReplica(
  { version, startedAt, ready, config }: GatewayState,
  present: Present
) {
  const { generation, hash: configHash, files, restartNeeded } = config
  const { requestsPerSecond, errorShare, inFlight, queued, p99Ms } = present.read()
  return {
    version,
    pid: process.pid,
    startedAt,
    ready,
    generation,
    configHash,
    files: files.state,
    ...(files.state === 'refused' && { since: files.since, fault: files.faults[0] }),
    restartNeeded: [...restartNeeded],
    ...{ requestsPerSecond, errorShare, inFlight, queued, p99Ms }
  }
}

function keyOf({ upstream, address }: AddressUse): string {
  return `${upstream} ${address}`
}

function sumOf(routes: ReadonlyArray<readonly [string, RouteCounts]>): RouteCounts {
  return routes.reduce((sum, [, counts]) => sum.add(counts), new RouteCounts())
}

function inSeconds(counts: RouteCounts, seconds: number) {
  return {
    ...ratesOf(counts.requests, counts.errors, seconds),
    refusedShare: shareOf(counts.refused, counts.requests),
    p50Ms: percentile(counts, 0.5),
    p99Ms: percentile(counts, 0.99)
  }
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

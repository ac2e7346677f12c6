/** This process at present: rates of the last ten seconds, its upstreams, its own load. */
import type { Now } from '../../admin/now-schema.ts'
import { boundsMs, type RequestRates, type Totals } from '../../observability/request-rates.ts'
import type { AddressUse } from '../../proxy/pools.ts'
import type { RedisState, Services } from '../../services/services.ts'

export type ProcessNow = Omit<Now, 'at' | 'replica' | 'replicas' | 'config'>

interface Sample {
  readonly at: number
  readonly totals: Totals
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

/** Samples once a second: 0.15 ms for 1,000 routes and 100 addresses. */
export class Present {
  readonly #services: Pick<Services, 'upstreams' | 'redis'>
  readonly #rates: RequestRates
  readonly #samples: Sample[] = []
  readonly #timers: readonly NodeJS.Timeout[]
  #loopAt = performance.now()
  /** Since the last sample. */
  #delayMs = 0

  constructor(services: Pick<Services, 'rates' | 'upstreams' | 'redis'>) {
    this.#services = services
    this.#rates = services.rates
    this.sample()
    this.#timers = [
      setInterval(() => this.sample(), sampleEveryMs).unref(),
      setInterval(() => this.#measureDelay(), loopTimerMs).unref()
    ]
  }

  sample(): void {
    this.#measureDelay()
    this.#samples.push({
      at: performance.now(),
      totals: this.#rates.read(),
      upstreams: new Map(this.#services.upstreams.addresses().map(each => [keyOf(each), each])),
      cpu: process.cpuUsage(),
      delayMs: this.#delayMs
    })
    this.#delayMs = 0
    if (this.#samples.length > maxSamples) this.#samples.shift()
  }

  read(): ProcessNow {
    const first = this.#samples[0] as Sample
    const ms = Math.max(1, performance.now() - first.at)
    const { user, system } = process.cpuUsage(first.cpu)
    const { upstreams, redis } = this.#services
    return {
      process: {
        pid: process.pid,
        rssBytes: process.memoryUsage.rss(),
        cpu: rounded((user + system) / 1000 / ms),
        eventLoopDelayMs: rounded(Math.max(...this.#samples.map(({ delayMs }) => delayMs)))
      },
      ...this.#requestsSince(first, ms / 1000),
      inFlight: this.#rates.inFlight,
      queued: Array.from(upstreams.waiting()).reduce((sum, [, waiting]) => sum + waiting, 0),
      upstreams: this.#upstreamsSince(first, ms / 1000),
      redis: redisOf(redis())
    }
  }

  close(): void {
    for (const timer of this.#timers) clearInterval(timer)
  }

  /** Node's own histogram forgets a delay in which it is reset. */
  #measureDelay(): void {
    const now = performance.now()
    this.#delayMs = Math.max(this.#delayMs, now - this.#loopAt - loopTimerMs)
    this.#loopAt = now
  }

  #requestsSince({ totals }: Sample, seconds: number) {
    const routes = this.#rates.since(totals).toSorted((a, b) => b.requests - a.requests)
    const total = { requests: 0, errors: 0, buckets: boundsMs.map(() => 0) }
    for (const { requests, errors, buckets } of routes) {
      total.requests += requests
      total.errors += errors
      total.buckets = total.buckets.map((count, index) => count + (buckets[index] ?? 0))
    }
    return {
      ...ratesOf(total, seconds),
      ...percentilesOf(total),
      routes: routes.slice(0, maxRoutes).map(counts => ({
        route: counts.route,
        ...ratesOf(counts, seconds),
        ...percentilesOf(counts)
      }))
    }
  }

  #upstreamsSince({ upstreams: then }: Sample, seconds: number): Now['upstreams'] {
    const { upstreams } = this.#services
    const waiting = new Map(upstreams.waiting())
    return upstreams.addresses().map(use => {
      const before = then.get(keyOf(use))
      // A new pool of the same address counts from zero.
      const isSame = before !== undefined && before.requests <= use.requests
      const requests = use.requests - (isSame ? before.requests : 0)
      const errors = use.failures - (isSame ? before.failures : 0)
      const { upstream, address, state, inFlight } = use
      const queued = waiting.get(upstream) ?? 0
      return {
        upstream,
        address,
        state,
        inFlight,
        queued,
        ...ratesOf({ requests, errors }, seconds)
      }
    })
  }
}

function keyOf({ upstream, address }: AddressUse): string {
  return `${upstream} ${address}`
}

interface Counts {
  readonly requests: number
  readonly errors: number
}

function ratesOf({ requests, errors }: Counts, seconds: number) {
  return {
    requestsPerSecond: rounded(requests / seconds),
    errorShare: requests === 0 ? 0 : rounded(Math.min(1, errors / requests))
  }
}

interface Durations {
  readonly requests: number
  readonly buckets: readonly number[]
}

function percentilesOf(counts: Durations) {
  return { p50Ms: percentile(counts, 0.5), p99Ms: percentile(counts, 0.99) }
}

/** As Prometheus estimates it: evenly spread within a bucket, at most the last bound. */
function percentile({ requests, buckets }: Durations, part: number): number | null {
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

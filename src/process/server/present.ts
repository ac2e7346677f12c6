/** A process at present: rates of the last ten seconds, its upstreams, its own load. */
import type { AddressState } from '../../proxy/address.ts'
import type { RequestRates, RouteCounts, Totals } from '../../observability/request-rates.ts'
import type { RedisState, Services } from '../../services/services.ts'

export interface UpstreamCounts {
  readonly upstream: string
  readonly address: string
  readonly state: AddressState
  readonly inFlight: number
  /** Requests that wait for a connection of the upstream, whichever address they get. */
  readonly queued: number
  /** In the period. */
  readonly requests: number
  readonly failures: number
}

export interface ProcessPresent {
  /** Length of the period of all counts. */
  readonly seconds: number
  readonly inFlight: number
  readonly queued: number
  /** Only those with requests in the period. */
  readonly routes: readonly RouteCounts[]
  readonly upstreams: readonly UpstreamCounts[]
  readonly redis: RedisState
  readonly load: ProcessLoad
}

export interface ProcessLoad {
  /** Longest delay of the event loop in the period; missing until somebody watches. */
  readonly eventLoopDelayMs?: number
  readonly rssBytes: number
  /** Share of one core in the period. */
  readonly cpu: number
}

interface Sample {
  readonly at: number
  readonly totals: Totals
  /** Requests and failures by upstream and address. */
  readonly upstreams: ReadonlyMap<string, readonly [requests: number, failures: number]>
  readonly cpu: NodeJS.CpuUsage
  readonly delayMs: number | undefined
}

const sampleEveryMs = 1000
/** One more than the seconds of the period. */
const maxSamples = 11
/** Without a question for this time nobody watches. */
const watchedForMs = 15_000
const loopTimerMs = 20

/**
 * Samples once a second, watched or not, so that the first answer has rates too: 0.15 ms for
 * 1,000 routes and 100 addresses.
 */
export class Present {
  readonly #services: Pick<Services, 'upstreams' | 'redis'>
  readonly #rates: RequestRates
  readonly #samples: Sample[] = []
  readonly #timer: NodeJS.Timeout
  readonly #loop = new LoopDelay()
  #askedAt = -Infinity

  constructor(services: Pick<Services, 'rates' | 'upstreams' | 'redis'>) {
    this.#services = services
    this.#rates = services.rates
    this.sample()
    this.#timer = setInterval(() => this.sample(), sampleEveryMs).unref()
  }

  sample(): void {
    this.#samples.push({
      at: performance.now(),
      totals: this.#rates.read(),
      upstreams: new Map(
        this.#services.upstreams
          .use()
          .map(({ requests, failures, ...each }) => [keyOf(each), [requests, failures]])
      ),
      cpu: process.cpuUsage(),
      delayMs: this.#loop.take()
    })
    if (this.#samples.length > maxSamples) this.#samples.shift()
    if (performance.now() - this.#askedAt > watchedForMs) this.#loop.stop()
  }

  /** @param isWatched whether somebody looks at it: then the delay of the event loop is measured */
  read(isWatched = true): ProcessPresent {
    if (isWatched) {
      this.#askedAt = performance.now()
      this.#loop.start()
    }
    const first = this.#samples[0] as Sample
    const { upstreams, redis } = this.#services
    const waiting = new Map(upstreams.waiting())
    return {
      seconds: Math.max(0.001, (performance.now() - first.at) / 1000),
      inFlight: this.#rates.inFlight,
      queued: [...waiting.values()].reduce((sum, number) => sum + number, 0),
      routes: this.#rates.since(first.totals),
      upstreams: upstreams.use().map(({ requests, failures, ...each }) => {
        const [requestsThen, failuresThen] = first.upstreams.get(keyOf(each)) ?? [0, 0]
        // A new pool of the same address counts from zero.
        const isNew = requests < requestsThen
        return {
          ...each,
          queued: waiting.get(each.upstream) ?? 0,
          requests: isNew ? requests : requests - requestsThen,
          failures: isNew ? failures : failures - failuresThen
        }
      }),
      redis: redis(),
      load: this.#load(first)
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#loop.stop()
  }

  #load({ at, cpu: before }: Sample): ProcessLoad {
    const { user, system } = process.cpuUsage(before)
    const delays = this.#samples.flatMap(({ delayMs }) => (delayMs === undefined ? [] : [delayMs]))
    return {
      ...(delays.length > 0 && { eventLoopDelayMs: Math.max(...delays) }),
      rssBytes: process.memoryUsage.rss(),
      cpu: (user + system) / 1000 / Math.max(1, performance.now() - at)
    }
  }
}

/**
 * The longest delay of a timer. Node's own histogram forgets a delay in which it is reset, and
 * has no maximum of the last seconds otherwise.
 */
class LoopDelay {
  #timer: NodeJS.Timeout | undefined
  #lastAt = 0
  #maxMs = 0

  start(): void {
    if (this.#timer !== undefined) return
    this.#lastAt = performance.now()
    this.#maxMs = 0
    this.#timer = setInterval(() => this.#note(), loopTimerMs).unref()
  }

  /** Since the last call; undefined where it is stopped. */
  take(): number | undefined {
    if (this.#timer === undefined) return undefined
    const maxMs = this.#maxMs
    this.#maxMs = 0
    return maxMs
  }

  /** The timer is too frequent to run for nobody. */
  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #note(): void {
    const now = performance.now()
    this.#maxMs = Math.max(this.#maxMs, now - this.#lastAt - loopTimerMs)
    this.#lastAt = now
  }
}

function keyOf({ upstream, address }: { readonly upstream: string; readonly address: string }) {
  return `${upstream} ${address}`
}

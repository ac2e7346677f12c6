import Counter from '@prometheus-io/client/lib/counter.js'
import Gauge from '@prometheus-io/client/lib/gauge.js'
import Histogram from '@prometheus-io/client/lib/histogram.js'
import Registry from '@prometheus-io/client/lib/registry.js'

export type { Counter, Histogram }

/** Upper bounds of durations in seconds, of requests and of upstreams. */
export const requestBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30
] as const

/** Of a metric without labels; else for each series its labels' values, and its own. */
type Values = number | undefined | Iterable<readonly [string | readonly string[], number]>

interface Readable {
  readonly name: string
  readonly help: string
  readonly labelNames?: readonly string[]
  readonly read: () => Values | Promise<Values>
}

/**
 * Outlives a generation: a name that is asked for again gives the same metric. Values of labels are
 * never what a client chooses.
 */
export class Metrics {
  /** Requests that are being answered. */
  inFlight = 0
  readonly #registry = new Registry()
  #ofProcess: Promise<void> | undefined

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    const existing = this.#registry.getSingleMetric(name) as Counter | undefined
    return existing ?? new Counter(this.#options(name, help, labelNames))
  }

  histogram(
    name: string,
    help: string,
    labelNames: readonly string[],
    buckets: readonly number[]
  ): Histogram {
    const existing = this.#registry.getSingleMetric(name) as Histogram | undefined
    const options = { ...this.#options(name, help, labelNames), buckets: [...buckets] }
    return existing ?? new Histogram(options)
  }

  read({ name, help, labelNames = [], read }: Readable): void {
    const options = this.#options(name, help, labelNames)
    const metric = new Gauge(options)
    const collect = async () => {
      const values = await read()
      metric.reset()
      // Without labels it would be 0 where nothing is read.
      if (labelNames.length === 0) metric.remove()
      if (typeof values === 'number') metric.inc(values)
      else for (const [labels, value] of values ?? []) metric.labels(...[labels].flat()).inc(value)
    }
    Object.assign(metric, { collect })
  }

  /** Those of all series of a counter or a histogram. */
  async values(name: string) {
    const metric = this.#registry.getSingleMetric(name) as Counter | Histogram | undefined
    return (await metric?.get())?.values ?? []
  }

  /** Those of the process are there from the first call on. */
  async text(): Promise<{ readonly type: string; readonly body: string }> {
    this.#ofProcess ??= import('@prometheus-io/client').then(({ collectDefaultMetrics }) =>
      collectDefaultMetrics({ register: this.#registry, eventLoopMonitoringPrecision: 20 })
    )
    await this.#ofProcess
    return { type: this.#registry.contentType, body: await this.#registry.metrics() }
  }

  #options(name: string, help: string, labelNames: readonly string[]) {
    return { name, help, labelNames: [...labelNames], registers: [this.#registry] }
  }
}

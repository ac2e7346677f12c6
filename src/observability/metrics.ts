import Counter from '@prometheus-io/client/lib/counter.js'
import Gauge from '@prometheus-io/client/lib/gauge.js'
import Histogram from '@prometheus-io/client/lib/histogram.js'
import Registry from '@prometheus-io/client/lib/registry.js'
import names from './metrics.json' with { type: 'json' }

export type Count = (...labels: string[]) => void

/** Of metrics.json, which has a row for each metric. */
type Name = keyof typeof names

export const { buckets: requestBuckets } = names.console_gateway_request_duration_seconds

/** Of a metric without labels; else for each series its labels' values, and its own. */
type Values = number | undefined | Iterable<readonly [string | readonly string[], number]>

/** Outlives a generation. Values of labels are never what a client chooses. */
export class Metrics {
  inFlight = 0
  readonly #registry = new Registry()
  #ofProcess: Promise<void> | undefined

  counter(name: Name): Count {
    const existing = this.#registry.getSingleMetric(name) as Counter | undefined
    const counter = existing ?? new Counter(this.#options(name))
    return (...labels) => counter.labels(...labels).inc()
  }

  histogram(name: Name): Histogram {
    const existing = this.#registry.getSingleMetric(name) as Histogram | undefined
    return existing ?? new Histogram(this.#options(name))
  }

  read(name: Name, read: () => Values | Promise<Values>): void {
    const options = this.#options(name)
    const metric = new Gauge(options)
    const collect = async () => {
      const values = await read()
      metric.reset()
      // Without labels it would be 0 where nothing is read.
      if (options.labelNames.length === 0) metric.remove()
      if (typeof values === 'number') metric.inc(values)
      else for (const [labels, value] of values ?? []) metric.labels(...[labels].flat()).inc(value)
    }
    Object.assign(metric, { collect })
  }

  async values(name: Name) {
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

  #options(name: Name) {
    const { labels, ...others } = names[name]
    return { ...others, name, labelNames: [...labels], registers: [this.#registry] }
  }
}

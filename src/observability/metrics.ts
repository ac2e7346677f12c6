import Counter from '@prometheus-io/client/lib/counter.js'
import Gauge from '@prometheus-io/client/lib/gauge.js'
import Histogram from '@prometheus-io/client/lib/histogram.js'
import Registry from '@prometheus-io/client/lib/registry.js'

export type { Counter, Histogram }

/** Of a metric without labels; else for each series its labels' values, and its own. */
type Values = number | undefined | Iterable<readonly [string | readonly string[], number]>

interface Readable {
  /** A gauge without it. */
  readonly type?: 'counter' | 'gauge'
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

  read({ type = 'gauge', name, help, labelNames = [], read }: Readable): void {
    const options = this.#options(name, help, labelNames)
    const metric = type === 'counter' ? new Counter(options) : new Gauge(options)
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

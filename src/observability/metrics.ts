/** What is counted and measured: cells that cost an addition to change, and their text when somebody asks. */
import type { Registry } from '@prometheus-io/client'

export interface Counter {
  readonly inc: (by?: number) => void
}

export interface Gauge extends Counter {
  readonly set: (value: number) => void
}

export interface Histogram {
  readonly observe: (value: number) => void
}

/** A metric with its labels; `with` gives the series of some label values. Ask once and keep it: that is what makes counting cheap. */
export interface Family<C> {
  /** @param values in the order of the label names; never what a client chooses */
  readonly with: (...values: readonly string[]) => C
}

/** Outlives a generation. Whoever asks for a name again gets the same metric. */
export interface Metrics {
  readonly counter: (name: string, help: string, labelNames?: readonly string[]) => Family<Counter>
  readonly gauge: (name: string, help: string, labelNames?: readonly string[]) => Family<Gauge>
  /** @param buckets upper bounds, rising */
  readonly histogram: (
    name: string,
    help: string,
    labelNames: readonly string[],
    buckets: readonly number[]
  ) => Family<Histogram>
  /** Read when somebody asks: for each series its label values, and the value. A gauge unless `type` says so. */
  readonly read: (
    name: string,
    help: string,
    labelNames: readonly string[],
    values: () => Iterable<readonly [labels: readonly string[], value: number]>,
    type?: 'counter' | 'gauge'
  ) => void
  /** All of them as Prometheus reads them, with those of the process. */
  readonly text: () => Promise<{ readonly type: string; readonly body: string }>
}

interface Sample {
  readonly labels: Record<string, string>
  readonly value: number
  readonly metricName?: string
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: () => Sample[]
}

/** Beyond so many, what is new shares one series: a fault of ours must not fill the memory. */
const maxSeries = 50_000

class Cell {
  value = 0
  readonly inc = (by = 1): void => {
    this.value += by
  }
  readonly set = (value: number): void => {
    this.value = value
  }
}

class Buckets {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum = 0
  count = 0
  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  observe(value: number): void {
    this.sum += value
    this.count++
    const { bounds } = this
    for (let index = 0; index < bounds.length; index++) {
      if (value <= (bounds[index] as number)) {
        ;(this.counts[index] as number)++
        return
      }
    }
  }

  samples(name: string, labels: Record<string, string>): Sample[] {
    let below = 0
    const bucket = (le: string, value: number) => ({
      labels: { ...labels, le },
      value,
      metricName: `${name}_bucket`
    })
    return [
      ...this.bounds.map((bound, index) =>
        bucket(String(bound), (below += this.counts[index] ?? 0))
      ),
      bucket('+Inf', this.count),
      { labels, value: this.sum, metricName: `${name}_sum` },
      { labels, value: this.count, metricName: `${name}_count` }
    ]
  }
}

export function createMetrics(): Metrics {
  const metrics = new Map<string, Metric>()
  const families = new Map<string, Family<unknown>>()

  function family<C>(
    metric: Omit<Metric, 'samples'>,
    labelNames: readonly string[],
    create: () => C,
    samplesOf: (cell: C, labels: Record<string, string>) => Sample[]
  ): Family<C> {
    const known = families.get(metric.name)
    if (known !== undefined) return known as Family<C>
    const series = new Map<string, { labels: Record<string, string>; cell: C }>()
    const made: Family<C> = {
      with: (...values) => {
        const given = series.size < maxSeries ? values : labelNames.map(() => 'other')
        const key = JSON.stringify(given)
        let found = series.get(key)
        if (found === undefined)
          series.set(
            key,
            (found = {
              labels: Object.fromEntries(
                labelNames.map((name, index) => [name, given[index] ?? ''])
              ),
              cell: create()
            })
          )
        return found.cell
      }
    }
    families.set(metric.name, made)
    metrics.set(metric.name, {
      ...metric,
      samples: () => [...series.values()].flatMap(({ labels, cell }) => samplesOf(cell, labels))
    })
    // Without labels there is one series, and it is there from the start.
    if (labelNames.length === 0) made.with()
    return made
  }

  const cells =
    (type: 'counter' | 'gauge') =>
    (name: string, help: string, labelNames: readonly string[] = []) =>
      family(
        { name, help, type },
        labelNames,
        () => new Cell(),
        ({ value }, labels) => [{ labels, value }]
      )

  return {
    counter: cells('counter'),
    gauge: cells('gauge'),
    histogram: (name, help, labelNames, buckets) =>
      family(
        { name, help, type: 'histogram' },
        labelNames,
        () => new Buckets(buckets),
        (cell, labels) => cell.samples(name, labels)
      ),
    read: (name, help, labelNames, values, type = 'gauge') => {
      metrics.set(name, {
        name,
        help,
        type,
        samples: () =>
          Array.from(values(), ([given, value]) => ({
            labels: Object.fromEntries(
              labelNames.map((label, index) => [label, given[index] ?? ''])
            ),
            value
          }))
      })
    },
    text: async () => {
      const { Registry, ofProcess } = await library()
      const registry = new Registry()
      for (const { samples, ...told } of metrics.values())
        registry.registerMetric({
          ...told,
          get: async () => ({ ...told, values: samples() })
        } as never)
      return {
        type: registry.contentType,
        body: (await registry.metrics()) + (await ofProcess.metrics())
      }
    }
  }
}

let loaded: Promise<{ Registry: new () => Registry; ofProcess: Registry }> | undefined

/** Loaded when it is first asked for: no start waits for it. The process has one set of its own metrics, since they watch it from then on. */
function library(): NonNullable<typeof loaded> {
  loaded ??= import('@prometheus-io/client').then(({ Registry, collectDefaultMetrics }) => {
    const ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: 20 })
    return { Registry, ofProcess }
  })
  return loaded
}

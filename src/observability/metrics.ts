/** Metrics: cells that cost an addition to change. `metrics-text.ts` writes them. */
import { type Exemplar, type MetricsFormat, type Sample, writeMetrics } from './metrics-text.ts'

export interface Counter {
  readonly value: number
  readonly inc: (by?: number) => void
}

export interface Gauge extends Counter {
  readonly set: (value: number) => void
}

export interface Histogram {
  /** Of each bucket, without those of lower ones; what is beyond the last is only in `count`. */
  readonly counts: readonly number[]
  readonly count: number
  /** @param traceId of a sampled trace: the value becomes the example of its bucket */
  readonly observe: (value: number, traceId?: string) => void
}

/**
 * A metric with its labels; `with` gives the series of some label values. Ask once and keep it:
 * that is what makes counting cheap.
 */
export interface Family<C> {
  /** @param values in the order of the label names; never what a client chooses */
  readonly with: (...values: readonly string[]) => C
  /** All series in the order in which they came; none ever goes. */
  readonly list: () => ReadonlyArray<{ readonly labels: Labels; readonly cell: C }>
}

type Labels = Readonly<Record<string, string>>

type Values = Iterable<readonly [labels: readonly string[], value: number]>
type Read = () => Values | Promise<Values>

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
  /** Read when somebody asks: for each series its label values, and the value. A gauge. */
  readonly read: (name: string, help: string, labelNames: readonly string[], values: Read) => void
  /** The same for a value that only rises. */
  readonly readCounter: Metrics['read']
  /** All of them as Prometheus reads them, with those of the process. */
  readonly text: (format?: MetricsFormat) => Promise<MetricsText>
}

export interface MetricsText {
  /** For `Content-Type`. */
  readonly type: string
  readonly body: string
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: () => Sample[] | Promise<Sample[]>
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
  /** The latest example of each bucket, the one without a bound included. */
  readonly #exemplars: Array<Exemplar | undefined> = []

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  observe(value: number, traceId?: string): void {
    this.sum += value
    this.count++
    const { bounds } = this
    let index = 0
    while (index < bounds.length && value > (bounds[index] as number)) index++
    if (index < bounds.length) (this.counts[index] as number)++
    if (traceId === undefined) return
    const timestamp = Date.now() / 1000
    this.#exemplars[index] = { labelSet: { trace_id: traceId }, value, timestamp }
  }

  samples(name: string, labels: Record<string, string>): Sample[] {
    let below = 0
    const bucket = (le: string, value: number, index: number) => ({
      labels: { ...labels, le },
      value,
      metricName: `${name}_bucket`,
      exemplar: this.#exemplars[index]
    })
    return [
      // Whole bounds stand as in the older format, without ".0": it is the same series in both.
      ...this.bounds.map((bound, index) =>
        bucket(String(bound), (below += this.counts[index] ?? 0), index)
      ),
      bucket('+Inf', this.count, this.bounds.length),
      { labels, value: this.sum, metricName: `${name}_sum` },
      { labels, value: this.count, metricName: `${name}_count` }
    ]
  }
}

/** The kind of a family: how its cells are created, and its Prometheus type. */
interface Kind<C> {
  readonly type: Metric['type']
  readonly create: () => C
  readonly samplesOf: (name: string, cell: C, labels: Record<string, string>) => Sample[]
}

const cellKind = (type: 'counter' | 'gauge'): Kind<Cell> => ({
  type,
  create: () => new Cell(),
  samplesOf: (_name, { value }, labels) => [{ labels, value }]
})

const kinds = { counter: cellKind('counter'), gauge: cellKind('gauge') }

const histogramKind = (bounds: readonly number[]): Kind<Buckets> => ({
  type: 'histogram',
  create: () => new Buckets(bounds),
  samplesOf: (name, cell, labels) => cell.samples(name, labels)
})

/** The names and help of a metric. */
interface Header {
  readonly name: string
  readonly help: string
  readonly labelNames: readonly string[]
}

class Series<C> implements Family<C> {
  readonly #labelNames: readonly string[]
  readonly #create: () => C
  readonly #cells = new Map<string, { readonly labels: Record<string, string>; readonly cell: C }>()

  constructor(labelNames: readonly string[], create: () => C) {
    this.#labelNames = labelNames
    this.#create = create
    // Without labels there is one series, and it is there from the start.
    if (labelNames.length === 0) this.with()
  }

  with(...values: readonly string[]): C {
    const existing = this.#cells.get(JSON.stringify(values))
    if (existing !== undefined) return existing.cell
    if (this.#cells.size < maxSeries) return this.#add(values)
    const others = this.#labelNames.map(() => 'other')
    return this.#cells.get(JSON.stringify(others))?.cell ?? this.#add(others)
  }

  #add(values: readonly string[]): C {
    const cell = this.#create()
    const labels = labelled(this.#labelNames, values)
    this.#cells.set(JSON.stringify(values), { labels, cell })
    return cell
  }

  list(): Array<{ readonly labels: Record<string, string>; readonly cell: C }> {
    return [...this.#cells.values()]
  }
}

function labelled(names: readonly string[], values: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name, index) => [name, values[index] ?? '']))
}

export function createMetrics(): Metrics {
  const metrics = new Map<string, Metric>()
  const families = new Map<string, Family<unknown>>()

  function family<C>(
    { name, help, labelNames }: Header,
    { type, create, samplesOf }: Kind<C>
  ): Family<C> {
    const existing = families.get(name)
    if (existing !== undefined) return existing as Family<C>
    const series = new Series(labelNames, create)
    families.set(name, series)
    metrics.set(name, {
      name,
      help,
      type,
      samples: () => series.list().flatMap(({ labels, cell }) => samplesOf(name, cell, labels))
    })
    return series
  }

  function addRead(type: 'counter' | 'gauge', { name, help, labelNames }: Header, values: Read) {
    const samples = async () =>
      Array.from(await values(), ([labels, value]) => ({
        labels: labelled(labelNames, labels),
        value
      }))
    metrics.set(name, { name, help, type, samples })
  }

  return {
    counter: (name, help, labelNames = []) => family({ name, help, labelNames }, kinds.counter),
    gauge: (name, help, labelNames = []) => family({ name, help, labelNames }, kinds.gauge),
    histogram: (name, help, labelNames, buckets) =>
      family({ name, help, labelNames }, histogramKind(buckets)),
    read: (name, help, labelNames, values) => addRead('gauge', { name, help, labelNames }, values),
    readCounter: (name, help, labelNames, values) =>
      addRead('counter', { name, help, labelNames }, values),
    text: format => writeMetrics([...metrics.values()], format)
  }
}

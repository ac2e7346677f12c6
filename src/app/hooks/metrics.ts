/**
 * The metrics of requests: their number by route, method and status, and how long they and their
 * upstreams took.
 */
import type { Counter, Family, Histogram, Metrics } from '../../observability/metrics.ts'
import type { Trail } from '../../observability/trail.ts'

/** Upper bounds of durations in seconds. */
export const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']

/** The members of a request's trail that are counted. */
export type Counted = Pick<Trail, 'method' | 'status' | 'isCut' | 'ms' | 'upstreamMs'>

/** The series of one route; those of a method begin with its first request. */
export interface Meter {
  /** @param traceId of a trace that somebody keeps */
  readonly count: (trail: Counted, traceId?: string) => void
}

export interface RequestMetrics {
  readonly inFlight: Counter
  /** The same one for the same names; requests that no route takes share one. */
  readonly meter: (route: string, upstream: string | undefined) => Meter
}

interface RequestFamilies {
  readonly requests: Family<Counter>
  readonly durations: Family<Histogram>
  readonly inFlight: Family<Counter>
}

export function requestFamilies(metrics: Metrics): RequestFamilies {
  return {
    requests: metrics.counter(
      'console_gateway_requests_total',
      'Requests, by route (an alias counts as what it stands for), method and class of the ' +
        'status; "gone" where the client left before the answer.',
      ['route', 'method', 'status']
    ),
    durations: metrics.histogram(
      'console_gateway_request_duration_seconds',
      'From the first byte of a request to the last of its answer, by route.',
      ['route'],
      buckets
    ),
    inFlight: metrics.gauge(
      'console_gateway_requests_in_flight',
      'Requests that are being answered.'
    )
  }
}

export function createRequestMetrics(metrics: Metrics): RequestMetrics {
  const { requests, durations, inFlight } = requestFamilies(metrics)
  const firstBytes = metrics.histogram(
    'console_gateway_upstream_first_byte_seconds',
    'How long upstreams took to the first byte of their answers.',
    ['upstream'],
    buckets
  )
  const meters = new Map<string, Meter>()

  function createMeter(route: string, upstream: string | undefined): Meter {
    const duration = durations.with(route)
    const firstByte: Histogram | undefined =
      upstream === undefined ? undefined : firstBytes.with(upstream)
    const byMethod = new Map<string, Array<Counter | undefined>>(
      methods.map(method => [method, []])
    )
    const others: Array<Counter | undefined> = []
    return {
      count({ method, status, isCut, ms, upstreamMs }, traceId) {
        const ofMethod = byMethod.get(method)
        const counters = ofMethod ?? others
        const kind = isCut ? 0 : Math.floor(status / 100)
        const counter = (counters[kind] ??= requests.with(
          route,
          ofMethod === undefined ? 'other' : method,
          kind === 0 ? 'gone' : `${kind}xx`
        ))
        counter.inc()
        duration.observe(ms / 1000, traceId)
        if (upstreamMs !== undefined) firstByte?.observe(upstreamMs / 1000, traceId)
      }
    }
  }

  return {
    inFlight: inFlight.with(),
    meter: (route, upstream) => {
      const key = `${route} ${upstream ?? ''}`
      let meter = meters.get(key)
      if (meter === undefined) meters.set(key, (meter = createMeter(route, upstream)))
      return meter
    }
  }
}

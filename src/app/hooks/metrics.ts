/**
 * The metrics of requests: their number by route, method and status, and how long they and their
 * upstreams took.
 */
import type { Metrics } from '../../observability/metrics.ts'
import type { Trail } from '../../observability/trail.ts'
import { buckets, type RequestRates } from '../../observability/request-rates.ts'

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The series of one route; those of a method begin with its first request. */
export interface Meter {
  readonly count: (trail: Pick<Trail, 'method' | 'status' | 'isCut' | 'ms' | 'upstreamMs'>) => void
}

export type CreateMeter = (route: string, upstream: string | undefined) => Meter

export function createMeters(metrics: Metrics, rates: RequestRates): CreateMeter {
  const requests = metrics.counter(
    'console_gateway_requests_total',
    'Requests, by route (an alias counts as what it stands for), method and class of the ' +
      'status; "gone" where the client left before the answer.',
    ['route', 'method', 'status']
  )
  const durations = metrics.histogram(
    'console_gateway_request_duration_seconds',
    'From the first byte of a request to the last of its answer, by route.',
    ['route'],
    buckets
  )
  const firstBytes = metrics.histogram(
    'console_gateway_upstream_first_byte_seconds',
    'How long upstreams took to the first byte of their answers.',
    ['upstream'],
    buckets
  )

  return (route, upstream) => {
    const totals = rates.ofRoute(route)
    const duration = durations.labels(route)
    const firstByte = upstream === undefined ? undefined : firstBytes.labels(upstream)
    return {
      count({ method, status, isCut, ms, upstreamMs }) {
        totals.count(ms, isCut ? 0 : status)
        const kind = isCut ? 'gone' : `${Math.floor(status / 100)}xx`
        requests.labels(route, methods.has(method) ? method : 'other', kind).inc()
        duration.observe(ms / 1000)
        if (upstreamMs !== undefined) firstByte?.observe(upstreamMs / 1000)
      }
    }
  }
}

/**
 * The metrics of requests: their number by route, method and status, and how long they and their
 * upstreams took.
 */
import type { Metrics } from '../../observability/metrics.ts'
import type { Trail } from '../../observability/trail.ts'
import { buckets, type RequestRates } from '../../observability/request-rates.ts'

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts a request that has ended. */
export type CountRequest = (
  request: Pick<Trail, 'route' | 'upstream' | 'method' | 'status' | 'isCut' | 'ms' | 'upstreamMs'>
) => void

export function createRequestMetrics(metrics: Metrics, rates: RequestRates): CountRequest {
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

  return ({ route, upstream, method, status, isCut, ms, upstreamMs }) => {
    rates.ofRoute(route).count(ms, status >= 500 && !isCut)
    const kind = isCut ? 'gone' : `${Math.floor(status / 100)}xx`
    requests.labels(route, methods.has(method) ? method : 'other', kind).inc()
    durations.labels(route).observe(ms / 1000)
    if (upstream === undefined || upstreamMs === undefined) return
    firstBytes.labels(upstream).observe(upstreamMs / 1000)
  }
}

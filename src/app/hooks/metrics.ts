/** The metrics of requests: their number, how long they and their upstreams took, and refusals. */
import type { FastifyBaseLogger } from 'fastify'
import type { Metrics } from '../../observability/metrics.ts'
import { createQuiet } from '../../observability/quiet.ts'
import type { Trail } from '../../observability/trail.ts'

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts a request of one route. The series of a method begin with its first request. */
export type Meter = (
  trail: Pick<Trail, 'method' | 'outcome' | 'isCut' | 'ms' | 'upstreamMs'>
) => void

export function createCounters(metrics: Metrics) {
  return {
    meter: createMeters(metrics),
    onError: metrics.counter('console_gateway_errors_total'),
    onMissingPart: metrics.counter('console_gateway_parts_missing_total'),
    onRefused: metrics.counter('console_gateway_limit_refused_total'),
    onShadowed: metrics.counter('console_gateway_limit_shadowed_total'),
    onLocked: metrics.counter('console_gateway_lockouts_total'),
    /** The source is empty where none decided. */
    onSignIn: metrics.counter('console_gateway_sign_ins_total')
  }
}

function createMeters(metrics: Metrics) {
  const countRequest = metrics.counter('console_gateway_requests_total')
  const durations = metrics.histogram('console_gateway_request_duration_seconds')
  const firstBytes = metrics.histogram('console_gateway_upstream_first_byte_seconds')

  return (route: string, upstream: string | undefined): Meter => {
    const duration = durations.labels(route)
    const firstByte = upstream === undefined ? undefined : firstBytes.labels(upstream)
    return ({ method, outcome, isCut, ms, upstreamMs }) => {
      const kind = isCut ? 'gone' : `${Math.floor(outcome / 100)}xx`
      countRequest(route, methods.has(method) ? method : 'other', kind)
      duration.observe(ms / 1000)
      if (upstreamMs !== undefined) firstByte?.observe(upstreamMs / 1000)
    }
  }
}

export type ShedLog = ReturnType<typeof createShedLog>

export function createShedLog(metrics: Metrics, log: Pick<FastifyBaseLogger, 'warn'>) {
  const count = metrics.counter('console_gateway_shed_total')
  const onceASecond = createQuiet(1000)
  return (reason: string, fields: object): void => {
    count(reason)
    onceASecond(() =>
      log.warn({ event: 'requests.shed', reason, ...fields }, 'refused because of overload')
    )
  }
}

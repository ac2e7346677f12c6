/** The metrics of requests: their number, how long they and their upstreams took, and refusals. */
import type { FastifyBaseLogger } from 'fastify'
import type { Metrics } from '../../observability/metrics.ts'
import { createQuiet } from '../../observability/quiet.ts'
import { buckets, type RequestRates } from '../../observability/request-rates.ts'
import type { Trail } from '../../observability/trail.ts'

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** Counts a request of one route. The series of a method begin with its first request. */
export type Meter = (
  trail: Pick<Trail, 'method' | 'outcome' | 'isCut' | 'ms' | 'upstreamMs'>
) => void

export function createCounters(metrics: Metrics, rates: RequestRates) {
  const counting = (...counter: Parameters<Metrics['counter']>) => countingIn(metrics, ...counter)
  return {
    meter: createMeters(metrics, rates),
    onError: countingErrors(metrics),
    onMissingPart: counting(
      'console_gateway_parts_missing_total',
      'Answers without a part that is not required, by route and part.',
      ['route', 'part']
    ),
    onRefused: counting(
      'console_gateway_limit_refused_total',
      'Requests that a limit refused, by its name.',
      ['limit']
    ),
    onShadowed: counting(
      'console_gateway_limit_shadowed_total',
      'Requests that a limit in shadow would have refused, by its name.',
      ['limit']
    ),
    onLocked: counting(
      'console_gateway_lockouts_total',
      'Locks of sign-in after too many failures, by what they lock: account, address, or browser ' +
        'for a known one.',
      ['of']
    ),
    /** The source is empty where none decided. */
    onSignIn: counting(
      'console_gateway_sign_ins_total',
      'Attempts to sign in, by what became of them: accepted, refused, challenge, blocked, ' +
        'expired-password, limited, malformed, or failed where it could not be decided; and by ' +
        'the credential source that decided.',
      ['source', 'outcome']
    )
  }
}

function countingIn(metrics: Metrics, ...counter: Parameters<Metrics['counter']>) {
  const counts = metrics.counter(...counter)
  return (...labels: string[]): void => counts.labels(...labels).inc()
}

export function countingErrors(metrics: Metrics) {
  const help = 'Errors that were answered, by their code.'
  return countingIn(metrics, 'console_gateway_errors_total', help, ['code'])
}

function createMeters(metrics: Metrics, rates: RequestRates) {
  const requests = metrics.counter(
    'console_gateway_requests_total',
    'Requests, by route (an alias counts as what it stands for), method and class of the ' +
      'status, of an error its own; "gone" where the client left before the answer.',
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

  return (route: string, upstream: string | undefined): Meter => {
    const duration = durations.labels(route)
    const firstByte = upstream === undefined ? undefined : firstBytes.labels(upstream)
    return ({ method, outcome, isCut, ms, upstreamMs }) => {
      rates.ofRoute(route).count(ms, isCut ? 0 : outcome)
      const kind = isCut ? 'gone' : `${Math.floor(outcome / 100)}xx`
      requests.labels(route, methods.has(method) ? method : 'other', kind).inc()
      duration.observe(ms / 1000)
      if (upstreamMs !== undefined) firstByte?.observe(upstreamMs / 1000)
    }
  }
}

export type ShedLog = ReturnType<typeof createShedLog>

export function createShedLog(metrics: Metrics, log: Pick<FastifyBaseLogger, 'warn'>) {
  const counter = metrics.counter(
    'console_gateway_shed_total',
    'Requests and connections that were refused because of overload, by the reason.',
    ['reason']
  )
  const onceASecond = createQuiet(1000)
  return (reason: string, fields: object): void => {
    counter.labels(reason).inc()
    onceASecond(() =>
      log.warn({ event: 'requests.shed', reason, ...fields }, 'refused because of overload')
    )
  }
}

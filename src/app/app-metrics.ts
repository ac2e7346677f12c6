/** The counters of one generation's hooks and endpoints. */
import { createMeters } from './hooks/metrics.ts'
import type { ErrorCode } from '../errors/errors.ts'
import type { Metrics } from '../observability/metrics.ts'
import type { RequestRates } from '../observability/request-rates.ts'

export function createAppMetrics(metrics: Metrics, rates: RequestRates) {
  const errors = countedErrors(metrics)
  const missingParts = metrics.counter(
    'console_gateway_parts_missing_total',
    'Answers without a part that is not required, by route and part.',
    ['route', 'part']
  )
  const refused = metrics.counter(
    'console_gateway_limit_refused_total',
    'Requests that a limit refused, by its name.',
    ['limit']
  )
  const shadowed = metrics.counter(
    'console_gateway_limit_shadowed_total',
    'Requests that a limit in shadow would have refused, by its name.',
    ['limit']
  )
  const locks = metrics.counter(
    'console_gateway_lockouts_total',
    'Locks of sign-in after too many failures, by what they lock: account, address, or browser ' +
      'for a known one.',
    ['of']
  )
  const signIns = metrics.counter(
    'console_gateway_sign_ins_total',
    'Attempts to sign in, by what became of them: accepted, refused, challenge, blocked, ' +
      'expired-password, limited, malformed, or failed where it could not be decided; and by the ' +
      'credential source that decided.',
    ['source', 'outcome']
  )
  return {
    meter: createMeters(metrics, rates),
    onError: (code: ErrorCode): void => errors.labels(code).inc(),
    onRefused: (limit: string, inShadow: boolean): void =>
      (inShadow ? shadowed : refused).labels(limit).inc(),
    onLocked: (kind: string): void => locks.labels(kind).inc(),
    /** @param source the name of the credential source that decided; empty where none did */
    onSignIn: (outcome: string, source: string): void => signIns.labels(source, outcome).inc(),
    onMissingPart: (route: string, part: string): void => missingParts.labels(route, part).inc()
  }
}

export function countedErrors(metrics: Metrics) {
  return metrics.counter(
    'console_gateway_errors_total',
    'Errors that were answered, by their code.',
    ['code']
  )
}

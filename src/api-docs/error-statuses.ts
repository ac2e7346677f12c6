/** The HTTP statuses of errors, as `errorStatus` and `envelope.custom.errors` set them. */
import { errorEntryOf } from '../config/schema/custom-envelope.ts'
import { type ErrorCode, errorKinds } from '../errors.ts'
import type { EnvelopeSettings } from './envelope-schemas.ts'

/**
 * Codes of requests that never reach a route: there the status is the code's own. All but
 * `request.expectation` also occur on routes.
 */
const beforeRouting: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'request.malformed',
  'request.timeout',
  'request.too-large',
  'request.expectation',
  'request.headers'
])

/** The status that config sets for a code; undefined where errors keep their own. */
export type ConfiguredStatus = (code: ErrorCode) => number | undefined

/**
 * @param envelope with the dialect of the operation
 * @param errorsAreOk whether errors without an entry have the status 200
 */
export function configuredStatus(
  { dialect, custom }: EnvelopeSettings,
  errorsAreOk: boolean
): ConfiguredStatus {
  const errors = dialect === 'custom' ? custom?.errors : undefined
  const general = errorsAreOk ? 200 : undefined
  return code => (errors && errorEntryOf(errors, code)?.entry.status) ?? general
}

/** The codes of an operation, grouped by status; a code may have two. */
export function errorsByStatus(
  codes: readonly ErrorCode[],
  statusOf: ConfiguredStatus
): Array<readonly [status: number, codes: readonly ErrorCode[]]> {
  const pairs = codes.flatMap(code => statusesOf(code, statusOf).map(status => ({ code, status })))
  const byStatus = Map.groupBy(pairs, ({ status }) => status)
  return Array.from(
    byStatus,
    ([status, group]) => [status, group.map(({ code }) => code)] as const
  ).toSorted(([a], [b]) => a - b)
}

function statusesOf(code: ErrorCode, statusOf: ConfiguredStatus): number[] {
  const { status } = errorKinds[code]
  if (code === 'request.expectation') return [status]
  const configured = statusOf(code) ?? status
  return beforeRouting.has(code) && configured !== status ? [configured, status] : [configured]
}

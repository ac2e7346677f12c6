/**
 * Rules for the codes on which a console calls its refresh endpoint. An ended session must not have
 * one of them: the refresh is refused with the same code, so such a console would never stop.
 */
import { type ErrorCode, errorKinds } from '../../errors/errors.ts'
import {
  type CustomEnvelope,
  errorEntryOf,
  readsAs,
  type ResponseCode
} from '../schema/envelope.ts'
import type { CheckedConfig, Report } from './report.ts'

type Codes = Pick<CheckedConfig, 'gateway' | 'routes'>

/** Of sessions that are over, or never were. */
const signedOutCodes = (Object.keys(errorKinds) as ErrorCode[]).filter(
  code => code.startsWith('session.') && errorKinds[code].status === 401
)

export function checkRefreshCodes({ gateway, routes }: Codes, report: Report): void {
  const { custom } = gateway.envelope
  custom?.refreshCodes.forEach((refreshCode, index) => {
    const place = ['envelope', 'custom', 'refreshCodes', index]
    const clash = signedOutCodes.find(code => readsAs(codeOf(custom, code), refreshCode))
    if (clash !== undefined) {
      const message =
        `is the code of \`${clash}\`, too: a console would answer the end of its session with a ` +
        'refresh, whose refusal has the same code, and so on for ever. Give `session.*` in ' +
        '`errors` the code on which the console signs out'
      return report('gateway', place, message)
    }
    if (index > 0 || routes.endpoints.refresh !== undefined) return
    const message = 'has no effect for the console: `endpoints.refresh` of routes.yaml is not set'
    report('gateway', place, message, 'warning')
  })
}

/** As the envelope writes it. */
function codeOf({ errors }: CustomEnvelope, code: ErrorCode): ResponseCode {
  return errorEntryOf(errors, code)?.entry.code ?? errorKinds[code].status
}

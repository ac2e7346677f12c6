/**
 * Rules for `envelope.custom` and `dialect: problem`: an error must not look like a success, by its
 * code or its status.
 */
import { type ErrorCode, errorKinds } from '../../errors/errors.ts'
import {
  type CustomEnvelope,
  errorEntryOf,
  readsAs,
  type ResponseCode
} from '../schema/envelope.ts'
import { nearest } from '../schema/faults.ts'
import type { CheckedConfig, Report } from './report.ts'
import type { Path } from '../schema/node.ts'

const codes = Object.keys(errorKinds)

export function checkEnvelope(config: CheckedConfig, report: Report): void {
  const { envelope } = config.gateway
  checkDialects(config, report)
  const status = codes
    .map(code => errorKinds[code as keyof typeof errorKinds].status)
    .find(each => readsAs(each, envelope.successCode))
  if (status !== undefined) {
    const message =
      `is also the HTTP status ${status}, the code of an error: ` +
      'take the code that the console checks for'
    report(['envelope', 'successCode'], message)
  }
  checkFieldErrors(envelope, report)
  const { custom } = envelope
  if (custom === undefined) return
  checkNames(custom, report)
  checkErrors(custom, [envelope.successCode, ...custom.alsoSuccess], report)
  checkRecognizable(config, custom, report)
  checkRefreshCodes(custom, config, report)
}

/** The dialect and `errorStatus` of the whole config and of routes that set one. */
function usesOf({ gateway: { envelope }, routes }: CheckedConfig) {
  const { dialect, errorStatus } = envelope
  return [
    { path: ['envelope'] as Path, dialect, errorStatus },
    ...Object.entries(routes.routes)
      .filter(([, route]) => (route.dialect ?? route.errorStatus) !== undefined)
      .map(([name, route]) => ({
        path: ['routes', name],
        dialect: route.dialect ?? dialect,
        errorStatus: route.errorStatus ?? errorStatus
      }))
  ]
}

function checkDialects(config: CheckedConfig, report: Report): void {
  const { envelope } = config.gateway
  for (const { path, dialect, errorStatus } of usesOf(config)) {
    if (dialect === 'custom' && envelope.custom === undefined) {
      report([...path, 'dialect'], '`custom` needs `envelope.custom` in gateway.yaml')
    }
    if ((dialect === 'problem' || dialect === 'none') && errorStatus === 'ok') {
      const message = `errors of \`${dialect}\` have the HTTP status of the error: set \`errorStatus: own\``
      report([...path, 'errorStatus'], message)
    }
  }
}

/** Members of the errors of the other dialects. */
const standardNames = [
  'ok',
  'code',
  'message',
  'success',
  'errorCode',
  'errorMessage',
  'showType',
  'requestId',
  'type',
  'title',
  'status',
  'detail'
]

function checkFieldErrors(
  { dialect, custom, fieldErrors }: CheckedConfig['gateway']['envelope'],
  report: Report
): void {
  const isCustom = dialect === 'custom' && custom !== undefined
  const names = isCustom ? Object.values(custom.members) : standardNames
  if (fieldErrors === false || !names.includes(fieldErrors)) return
  report(['envelope', 'fieldErrors'], `"${fieldErrors}" is a member of every error`)
}

function checkNames({ members }: CustomEnvelope, report: Report): void {
  const places = new Map<string, string>()
  for (const [key, name] of Object.entries(members)) {
    if (name === false) continue
    const other = places.get(name)
    if (other !== undefined) {
      const message = `"${name}" is the name of \`${other}\`, too: each member needs its own`
      report(['envelope', 'custom', 'members', key], message)
    }
    places.set(name, key)
  }
}

function checkErrors(
  { errors, refreshCodes }: CustomEnvelope,
  successes: readonly ResponseCode[],
  report: Report
): void {
  const isSuccess = (code: ResponseCode) => successes.some(each => readsAs(each, code))
  const place = ['envelope', 'custom']
  refreshCodes.forEach((code, index) => {
    if (!isSuccess(code)) return
    report([...place, 'refreshCodes', index], 'is a code of success')
  })
  for (const [key, { code, status }] of Object.entries(errors)) {
    if (!codes.some(each => errorEntryOf({ [key]: {} }, each) !== undefined)) {
      report([...place, 'errors', key], `no error code fits.${nearest(key, codes)}`)
    }
    if (code !== undefined && isSuccess(code)) {
      const message =
        `${JSON.stringify(code)} reads as a code of success: ` +
        'the console would take the error for one'
      report([...place, 'errors', key, 'code'], message)
    }
    if (status !== undefined && status !== 200 && status < 400) {
      report([...place, 'errors', key, 'status'], 'expected 200, or 400 to 599')
    }
  }
}

/** Without a code and a success flag, only the HTTP status tells an error from a success. */
function checkRecognizable(config: CheckedConfig, custom: CustomEnvelope, report: Report): void {
  const { code, success } = custom.members
  if (code !== false || success !== false) return
  const problem = 'the envelope has neither a code nor a success flag, so errors need their status'
  for (const { path, dialect, errorStatus } of usesOf(config)) {
    if (dialect !== 'custom' || errorStatus !== 'ok') continue
    report([...path, 'errorStatus'], `${problem}: set \`errorStatus: own\``)
  }
  for (const [key, { status }] of Object.entries(custom.errors)) {
    if (status !== 200) continue
    report(['envelope', 'custom', 'errors', key, 'status'], problem)
  }
}

/** Of sessions that are over, or never were. */
const signedOutCodes = (Object.keys(errorKinds) as ErrorCode[]).filter(
  code => code.startsWith('session.') && errorKinds[code].status === 401
)

/**
 * Codes on which a console calls its refresh endpoint. An ended session must not have one of them:
 * the refresh is refused with the same code, so such a console would never stop.
 */
function checkRefreshCodes(
  custom: CustomEnvelope,
  { routes }: CheckedConfig,
  report: Report
): void {
  custom.refreshCodes.forEach((refreshCode, index) => {
    const place = ['envelope', 'custom', 'refreshCodes', index]
    const clash = signedOutCodes.find(code => readsAs(codeOf(custom, code), refreshCode))
    if (clash !== undefined) {
      const message =
        `is the code of \`${clash}\`, too: a console would answer the end of its session with a ` +
        'refresh, whose refusal has the same code, and so on for ever. Give `session.*` in ' +
        '`errors` the code on which the console signs out'
      return report(place, message)
    }
    if (index > 0 || routes.endpoints.refresh !== undefined) return
    const message = 'has no effect for the console: `endpoints.refresh` of routes.yaml is not set'
    report(place, message, { warning: true })
  })
}

/** As the envelope writes it. */
function codeOf({ errors }: CustomEnvelope, code: ErrorCode): ResponseCode {
  return errorEntryOf(errors, code)?.entry.code ?? errorKinds[code].status
}

/**
 * Rules for `envelope.custom` and `dialect: problem`: an error must not look like a success, by its
 * code or its status.
 */
import { errorKinds } from '../../errors/errors.ts'
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
    report('gateway', ['envelope', 'successCode'], message)
  }
  checkFieldErrors(envelope, report)
  const { custom } = envelope
  if (custom === undefined) return
  checkNames(custom, report)
  checkErrors(custom, [envelope.successCode, ...custom.alsoSuccess], report)
  checkRecognizable(config, custom, report)
}

/** The dialect and `errorStatus` of the whole config and of routes that set one. */
function usesOf({ gateway: { envelope }, routes }: CheckedConfig) {
  const { dialect, errorStatus } = envelope
  const ofRoutes = Object.entries(routes.routes).map(([name, route]) => ({
    file: 'routes' as const,
    path: ['routes', name] as Path,
    dialect: route.dialect ?? dialect,
    errorStatus: route.errorStatus ?? errorStatus,
    isOwn: route.dialect !== undefined || route.errorStatus !== undefined
  }))
  const general = {
    file: 'gateway' as const,
    path: ['envelope'] as Path,
    dialect,
    errorStatus
  }
  return [general, ...ofRoutes.filter(({ isOwn }) => isOwn)]
}

function checkDialects(config: CheckedConfig, report: Report): void {
  const { envelope } = config.gateway
  for (const { file, path, dialect, errorStatus } of usesOf(config)) {
    if (dialect === 'custom' && envelope.custom === undefined) {
      report(file, [...path, 'dialect'], '`custom` needs `envelope.custom` in gateway.yaml')
    }
    if ((dialect === 'problem' || dialect === 'none') && errorStatus === 'ok') {
      const message = `errors of \`${dialect}\` have the HTTP status of the error: set \`errorStatus: own\``
      report(file, [...path, 'errorStatus'], message)
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
  report('gateway', ['envelope', 'fieldErrors'], `"${fieldErrors}" is a member of every error`)
}

function checkNames({ members }: CustomEnvelope, report: Report): void {
  const places = new Map<string, string>()
  for (const [key, name] of Object.entries(members)) {
    if (name === false) continue
    const other = places.get(name)
    if (other !== undefined) {
      const message = `"${name}" is the name of \`${other}\`, too: each member needs its own`
      report('gateway', ['envelope', 'custom', 'members', key], message)
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
    report('gateway', [...place, 'refreshCodes', index], 'is a code of success')
  })
  for (const [key, { code, status }] of Object.entries(errors)) {
    if (!codes.some(each => errorEntryOf({ [key]: {} }, each) !== undefined)) {
      report('gateway', [...place, 'errors', key], `no error code fits.${nearest(key, codes)}`)
    }
    if (code !== undefined && isSuccess(code)) {
      const message =
        `${JSON.stringify(code)} reads as a code of success: ` +
        'the console would take the error for one'
      report('gateway', [...place, 'errors', key, 'code'], message)
    }
    if (status !== undefined && status !== 200 && status < 400) {
      report('gateway', [...place, 'errors', key, 'status'], 'expected 200, or 400 to 599')
    }
  }
}

/** Without a code and a success flag, only the HTTP status tells an error from a success. */
function checkRecognizable(config: CheckedConfig, custom: CustomEnvelope, report: Report): void {
  const { code, success } = custom.members
  if (code !== false || success !== false) return
  const problem = 'the envelope has neither a code nor a success flag, so errors need their status'
  for (const { file, path, dialect, errorStatus } of usesOf(config)) {
    if (dialect !== 'custom' || errorStatus !== 'ok') continue
    report(file, [...path, 'errorStatus'], `${problem}: set \`errorStatus: own\``)
  }
  for (const [key, { status }] of Object.entries(custom.errors)) {
    if (status !== 200) continue
    report('gateway', ['envelope', 'custom', 'errors', key, 'status'], problem)
  }
}

/** Rules for `envelope`: no error looks like a success, nor the end of a session like a refresh. */
import { type ErrorCode, errorKinds } from '../../errors/errors.ts'
import {
  type CustomEnvelope,
  errorEntryOf,
  readsAs,
  type ResponseCode
} from '../schema/envelope.ts'
import { nearest } from '../schema/faults.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

type Envelope = CheckedConfig['gateway']['envelope']

const codes = Object.keys(errorKinds) as ErrorCode[]

export function checkEnvelope(config: CheckedConfig, report: Report): void {
  const { envelope } = config.gateway
  checkStatuses(config, report)
  const status = codes
    .map(code => errorKinds[code].status)
    .find(each => readsAs(each, envelope.successCode))
  if (status !== undefined) {
    const message = `is also the HTTP status ${status}, which is the code of an error`
    report(['envelope', 'successCode'], message)
  }
  checkErrors(envelope, report)
  checkRefreshCodes(envelope, report)
}

const needsStatus = 'the envelope tells errors by their status alone: set `errorStatus: own`'

function isBare({ members: { code, success } }: CustomEnvelope): boolean {
  return code === false && success === false
}

function tellsByStatus({ dialect, custom }: Envelope): boolean {
  if (dialect === 'custom') return isBare(custom)
  return dialect === 'problem' || dialect === 'none'
}

function checkStatuses({ gateway, routes }: CheckedConfig, report: Report): void {
  const { envelope } = gateway
  if (!tellsByStatus(envelope)) return
  if (envelope.errorStatus === 'ok') report(['envelope', 'errorStatus'], needsStatus)
  for (const [name, { errorStatus }] of Object.entries(routes.routes)) {
    if (errorStatus === 'ok') report(['routes', name, 'errorStatus'], needsStatus)
  }
}

function isSuccess(code: ResponseCode, { successCode, custom }: Envelope): boolean {
  return [successCode, ...custom.alsoSuccess].some(each => readsAs(each, code))
}

function checkErrors(envelope: Envelope, report: Report): void {
  const { custom } = envelope
  for (const [key, { code, status }] of Object.entries(custom.errors)) {
    const fault = report.at('envelope', 'custom', 'errors', key)
    if (status === 200 && isBare(custom)) fault(['status'], needsStatus)
    if (!codes.some(each => errorEntryOf({ [key]: {} }, each) !== undefined)) {
      fault([], `no error code fits.${nearest(key, codes)}`)
    }
    if (code !== undefined && isSuccess(code, envelope)) {
      fault(['code'], `${JSON.stringify(code)} reads as a code of success`)
    }
    if (status !== undefined && status !== 200 && status < 400) {
      fault(['status'], 'expected 200, or 400 to 599')
    }
  }
}

const signedOutCodes = codes.filter(
  code => code.startsWith('session.') && errorKinds[code].status === 401
)

/** The refresh of an ended session is refused with the same code: the console would never stop. */
function checkRefreshCodes(envelope: Envelope, report: Report): void {
  const { errors, refreshCodes } = envelope.custom
  const written = (code: ErrorCode) =>
    errorEntryOf(errors, code)?.entry.code ?? errorKinds[code].status
  refreshCodes.forEach((refreshCode, index) => {
    const place = ['envelope', 'custom', 'refreshCodes', index]
    if (isSuccess(refreshCode, envelope)) report(place, 'is a code of success')
    const clash = signedOutCodes.find(code => readsAs(written(code), refreshCode))
    if (clash !== undefined) {
      const message = 'a console would refresh for ever. Give `session.*` in `errors` another'
      report(place, `is the code of \`${clash}\` too: ${message}`)
    }
  })
}

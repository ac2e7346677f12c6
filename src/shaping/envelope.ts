/** The outer object of every response, in the console's dialect. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import type { ResponseCode } from '../config/schema/response-codes.ts'
import { errorKinds } from '../errors/errors.ts'
import { createCustomEnvelope } from './custom-envelope.ts'
import type { Envelope, Members, MessageOf } from './dialect.ts'
import { errorExtra } from './error-extra.ts'
import { createBare } from './bare.ts'
import { createSuccess, jsonType } from './success.ts'
import { createSuccessCodes } from './success-codes.ts'

export type { Envelope, Language, Placement } from './dialect.ts'

export function createEnvelope(settings: GatewayConfig['envelope']): Envelope {
  const { dialect, custom, language, messages } = settings
  const messageOf: MessageOf = (error, asked = 'en', standard) =>
    error.detail.message ??
    messages[error.code] ??
    standard ??
    errorKinds[error.code][language === 'auto' ? asked : language]
  if (dialect === 'problem' || dialect === 'none') return createBare(dialect, messageOf, settings)
  if (dialect === 'custom') {
    if (custom === undefined) throw new Error('envelope.custom is not set')
    return createCustomEnvelope({ ...settings, custom }, messageOf)
  }
  return createStandardEnvelope(settings, dialect, messageOf)
}

type StandardDialect = 'dual' | 'ant-design-pro' | 'base-response'

/** The members of a success before its data, by dialect. */
const successHeads: Record<StandardDialect, (code: ResponseCode) => Members> = {
  'dual': code => ({ ok: true, code, message: 'OK', success: true }),
  'ant-design-pro': () => ({ success: true }),
  'base-response': code => ({ ok: true, code, message: 'OK' })
}

function createStandardEnvelope(
  settings: GatewayConfig['envelope'],
  dialect: StandardDialect,
  messageOf: MessageOf
): Envelope {
  const { inertToken } = settings
  const codes = createSuccessCodes(settings)
  const success = createSuccess(successHeads[dialect](settings.successCode), 'data')
  const failure: Envelope['failure'] = (error, id, asked) => {
    const requestId = settings.requestId && { requestId: id }
    const extra = errorExtra(error, settings.fieldErrors)
    const number = error.detail.extra?.['code']
    const numberMember =
      number !== undefined && !codes.isSuccess(number) ? { code: number } : undefined
    const message = messageOf(error, asked)
    const { showType } = errorKinds[error.code]
    const numbered = { ok: false, code: codes.firstOther(error.status), message }
    const shown = {
      success: false,
      errorCode: error.code,
      errorMessage: message,
      showType,
      ...requestId
    }
    if (dialect === 'ant-design-pro') return { ...extra, ...shown, ...numberMember }
    if (dialect === 'base-response') {
      return { ...extra, ...numbered, ...numberMember, errorCode: error.code, ...requestId }
    }
    return { ...extra, ...numbered, ...numberMember, ...shown }
  }

  return {
    success,
    failure,
    login: ({ type, authority }) => {
      // It overwrites a stale token of an older back-end; a console sends no empty one.
      const result = { status: 'ok', type, currentAuthority: authority }
      return dialect === 'base-response'
        ? success({ authToken: inertToken, ...result })
        : success({ authToken: inertToken, ...result }, result)
    },
    loginRefused: (error, type, { requestId, language }) => {
      const { success: _, ...rest }: Members = failure(error, requestId, language)
      return { ...rest, status: 'error', type, currentAuthority: 'guest' }
    },
    errorType: jsonType,
    statusOf: () => undefined,
    notSignedIn: { data: { isLogin: false } },
    dataName: 'data',
    fillsUser: true
  }
}

/** The dialects without an envelope: a success is its value; errors are problems (RFC 9457), or plain. */
import { STATUS_CODES } from 'node:http'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { errorExtra } from './error-extra.ts'
import type { Envelope, MessageOf } from './dialect.ts'
import { jsonType } from './success.ts'

export function createBare(
  dialect: 'none' | 'problem',
  messageOf: MessageOf,
  { fieldErrors, ...settings }: Pick<GatewayConfig['envelope'], 'fieldErrors' | 'requestId'>
): Envelope {
  const isProblem = dialect === 'problem'
  const failure: Envelope['failure'] = (error, requestId, language) => {
    const message = messageOf(error, language)
    return {
      ...errorExtra(error, fieldErrors),
      // RFC 9457 §3.1
      ...(isProblem && {
        type: 'about:blank',
        title: STATUS_CODES[error.status] ?? 'Error',
        status: error.status
      }),
      [isProblem ? 'detail' : 'message']: message,
      code: error.code,
      ...(settings.requestId && { requestId })
    }
  }
  return {
    success: data => data,
    failure,
    login: () => ({}),
    loginRefused: (error, _type, { requestId, language }) => failure(error, requestId, language),
    errorType: isProblem ? 'application/problem+json; charset=utf-8' : jsonType,
    statusOf: () => undefined,
    notSignedIn: {},
    dataName: false,
    fillsUser: false
  }
}

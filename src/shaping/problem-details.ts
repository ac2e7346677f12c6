/** Problem details (RFC 9457): errors in their own format, successes without an envelope. */
import { STATUS_CODES } from 'node:http'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { errorExtra } from './error-extra.ts'
import type { Envelope, MessageOf } from './dialect.ts'

/** RFC 9457 §3.1 and the members that every error of ours has. */
export function createProblemDetails(
  messageOf: MessageOf,
  settings: Pick<GatewayConfig['envelope'], 'inertToken' | 'fieldErrors' | 'requestId'>
): Envelope {
  const { inertToken, fieldErrors } = settings
  const failure: Envelope['failure'] = (error, requestId, language) => ({
    ...errorExtra(error, fieldErrors),
    type: 'about:blank',
    title: STATUS_CODES[error.status] ?? 'Error',
    status: error.status,
    detail: messageOf(error, language),
    code: error.code,
    ...(settings.requestId && { requestId })
  })
  return {
    success: data => data,
    failure,
    login: ({ type, authority }) => ({
      authToken: inertToken,
      status: 'ok',
      type,
      currentAuthority: authority
    }),
    loginRefused: (error, _type, { requestId, language }) => failure(error, requestId, language),
    errorType: 'application/problem+json; charset=utf-8',
    statusOf: () => undefined,
    notSignedIn: {},
    dataName: false
  }
}

/** The outer object of every response, in the console's dialect. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { errorKinds, type GatewayError } from '../errors.ts'

type Members = Readonly<Record<string, unknown>>

export interface LoginResult {
  /**
   * The kind of sign-in that the console sent (`account`, `mobile`, …); it expects it in the
   * response.
   */
  readonly type: string
  /** The first role. */
  readonly authority: string
}

export interface Envelope {
  readonly success: (data: unknown, extra?: Members) => Record<string, unknown>
  readonly failure: (error: GatewayError, requestId: string) => Record<string, unknown>
  readonly login: (result: LoginResult) => Record<string, unknown>
  /**
   * For `login.refusedStatus: 200`: no `success` member, so that consoles show the sign-in page's
   * own alert.
   */
  readonly loginRefused: (
    error: GatewayError,
    type: string,
    requestId: string
  ) => Record<string, unknown>
}

export function createEnvelope({
  dialect,
  successCode,
  language,
  messages
}: GatewayConfig['envelope']): Envelope {
  const success = (data: unknown, extra: Members = {}) => {
    if (dialect === 'ant-design-pro') return { success: true, data, ...extra }
    if (dialect === 'base-response') {
      return { ok: true, code: successCode, message: 'OK', data, ...extra }
    }
    return { ok: true, code: successCode, message: 'OK', success: true, data, ...extra }
  }
  const messageOf = (error: GatewayError) =>
    error.detail.message ?? messages[error.code] ?? errorKinds[error.code][language]
  const failure = (error: GatewayError, requestId: string) => {
    const message = messageOf(error)
    const extra = withoutSuccess(error.detail.extra ?? {}, successCode)
    const { showType } = errorKinds[error.code]
    if (dialect === 'ant-design-pro') {
      return {
        success: false,
        errorCode: error.code,
        errorMessage: message,
        showType,
        requestId,
        ...extra
      }
    }
    if (dialect === 'base-response') {
      return { ok: false, code: error.status, message, errorCode: error.code, requestId, ...extra }
    }
    return {
      ok: false,
      code: error.status,
      message,
      success: false,
      errorCode: error.code,
      errorMessage: message,
      showType,
      requestId,
      ...extra
    }
  }

  return {
    success,
    failure,
    login: ({ type, authority }) => {
      // An empty token overwrites a stale one of an older back-end; the console then sends none.
      const result = { status: 'ok', type, currentAuthority: authority }
      return dialect === 'base-response'
        ? success({ authToken: '', ...result })
        : success({ authToken: '', ...result }, result)
    },
    loginRefused: (error, type, requestId) => {
      const { success: _, ...rest }: Record<string, unknown> = failure(error, requestId)
      return { ...rest, status: 'error', type, currentAuthority: 'guest' }
    }
  }
}

/** A console takes an error with the success code for a success. */
function withoutSuccess(extra: Members, successCode: number): Members {
  const { code, ...others } = extra
  return code === undefined || code === successCode ? others : extra
}

/** The outer object of every response, in the console's dialect. */
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { errorKinds, type GatewayError } from '../errors.ts'
import { isRecord, type JsonRecord, put } from '../json/values.ts'

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

/**
 * The place of a success's value. `data`: under `data`. `flat`: its members stand beside the code
 * and the message, which win over members of the same name; a value that is not an object stands
 * under `data`. `none`: the value is the whole body, and nothing stands beside it.
 */
export type Placement = 'data' | 'flat' | 'none'

export interface Envelope {
  /** @param extra members beside the value */
  readonly success: (data: unknown, extra?: Members, placement?: Placement) => unknown
  readonly failure: (error: GatewayError, requestId: string) => Record<string, unknown>
  readonly login: (result: LoginResult) => unknown
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

/** The members of a success before its data, by dialect. */
const successHeads: Record<GatewayConfig['envelope']['dialect'], (code: number) => Members> = {
  'dual': code => ({ ok: true, code, message: 'OK', success: true }),
  'ant-design-pro': () => ({ success: true }),
  'base-response': code => ({ ok: true, code, message: 'OK' })
}

export function createEnvelope({
  dialect,
  successCode,
  language,
  messages,
  inertToken
}: GatewayConfig['envelope']): Envelope {
  const head = successHeads[dialect](successCode)
  const success = (data: unknown, extra: Members = {}, placement: Placement = 'data') => {
    if (placement === 'none') return data
    if (placement === 'flat' && isRecord(data)) return flat(head, data, extra)
    return { ...head, data, ...extra }
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
      // It overwrites a stale token of an older back-end; a console sends no empty one.
      const result = { status: 'ok', type, currentAuthority: authority }
      return dialect === 'base-response'
        ? success({ authToken: inertToken, ...result })
        : success({ authToken: inertToken, ...result }, result)
    },
    loginRefused: (error, type, requestId) => {
      const { success: _, ...rest }: Record<string, unknown> = failure(error, requestId)
      return { ...rest, status: 'error', type, currentAuthority: 'guest' }
    }
  }
}

/** A member of the value never replaces one by which a console tells success from failure. */
function flat(head: Members, data: JsonRecord, extra: Members): JsonRecord {
  const body: JsonRecord = { ...head }
  for (const name of Object.keys(data)) if (!Object.hasOwn(head, name)) put(body, name, data[name])
  return Object.assign(body, extra)
}

/** A console takes an error with the success code for a success. */
function withoutSuccess(extra: Members, successCode: number): Members {
  const { code, ...others } = extra
  return code === undefined || code === successCode ? others : extra
}

/** Every error that the gateway answers itself. */
import en from './texts.en.json' with { type: 'json' }
import zh from './texts.zh.json' with { type: 'json' }

/** Ant Design Pro's: 0 silent, 1 warning, 2 message, 3 notification, 9 go to sign-in. */
type ShowType = 0 | 1 | 2 | 3 | 9

interface ErrorKind {
  readonly status: number
  readonly showType: ShowType
  readonly en: string
  readonly zh: string
}

/** A code never changes its meaning; messages may be replaced by config. */
const codes = {
  'session.none': [401, 9],
  'session.unknown': [401, 9],
  'session.idle': [401, 9],
  'session.absolute': [401, 9],
  'session.revoked': [401, 9],
  'session.replaced': [401, 9],
  'session.upstream': [401, 9],
  'key.invalid': [401, 2],
  'login.too-many': [409, 2],
  'login.refused': [401, 2],
  'login.locked': [429, 2],
  'login.challenge': [400, 2],
  'login.blocked': [403, 2],
  'login.blocked-by-operator': [403, 2],
  'login.expired-password': [403, 2],
  'route.credential': [403, 2],
  'route.unknown-user': [403, 2],
  'route.forbidden': [403, 2],
  'route.keys': [403, 2],
  'ops.host': [421, 2],
  'ops.secret': [401, 2],
  'ops.session': [401, 2],
  'ops.role': [403, 2],
  'ops.origin': [403, 2],
  'ops.ledger': [503, 2],
  'ops.redis': [503, 2],
  'origin.refused': [403, 2],
  'route.unknown': [404, 2],
  'route.method': [405, 2],
  'request.malformed': [400, 2],
  'request.path': [400, 2],
  'request.timeout': [408, 2],
  'request.too-large': [413, 2],
  'request.uri-too-long': [414, 2],
  'request.type': [415, 2],
  'request.expectation': [417, 2],
  'request.headers': [431, 2],
  'limit.exceeded': [429, 1],
  'upstream.refused': [502, 2],
  'upstream.reset': [502, 2],
  'upstream.invalid': [502, 2],
  'upstream.redirect': [502, 2],
  'upstream.error': [502, 2],
  'shape.not-json': [502, 2],
  'shape.too-large': [502, 2],
  'shape.module': [502, 2],
  'upstream.module': [502, 2],
  'contract.broken': [502, 2],
  'session.unavailable': [503, 2],
  'maintenance': [503, 1],
  'overloaded': [503, 2],
  'gateway.stopping': [503, 2],
  'gateway.fault': [500, 2],
  'upstream.timeout': [504, 2],
  'upstream.timeout.connect': [504, 2],
  'upstream.timeout.idle': [504, 2],
  'upstream.timeout.total': [504, 2]
} as const satisfies Record<string, readonly [status: number, showType: ShowType]>

export type ErrorCode = keyof typeof codes

/** What operators do about a code is in advice.json. */
export const errorKinds = Object.fromEntries(
  (Object.keys(codes) as ErrorCode[]).map(code => {
    const [status, showType] = codes[code]
    return [code, { status, showType, en: en[code], zh: zh[code] }]
  })
) as Readonly<Record<ErrorCode, ErrorKind>>

interface ErrorDetail {
  /** The reason, for the log only. */
  readonly cause?: unknown
  /** Seconds for `Retry-After` (RFC 9110 §10.2.3). */
  readonly retryAfter?: number
  /** Replaces the code's HTTP status (an upstream's error keeps its own). */
  readonly status?: number
  readonly message?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The back-end's errors of single fields of a form, by name. */
  readonly fieldErrors?: Readonly<Record<string, readonly string[]>>
  /** The limit or bound that refused, and its number: for the log and `console-gateway why`. */
  readonly limit?: string
  readonly limitMax?: number
  /** Members for the envelope, beside the standard ones. */
  readonly extra?: Readonly<Record<string, unknown>>
}

/** An error with a stable code; everything thrown while a request is handled becomes one. */
export class GatewayError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly detail: ErrorDetail
  /** Fastify and its plugins read this name. */
  readonly statusCode: number

  constructor(code: ErrorCode, detail: ErrorDetail = {}) {
    super(
      detail.message ?? errorKinds[code].en,
      detail.cause === undefined ? undefined : { cause: detail.cause }
    )
    this.name = 'GatewayError'
    this.code = code
    this.status = detail.status ?? errorKinds[code].status
    this.statusCode = this.status
    this.detail = detail
  }
}

/** Of Fastify, Node and plugins, caused by clients. Any other is an internal error. */
const codeOfForeignError: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'request.type',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'request.malformed',
  FST_ERR_CTP_BODY_TOO_LARGE: 'request.too-large',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'request.malformed',
  FST_ERR_CTP_INVALID_JSON_BODY: 'request.malformed',
  FST_ERR_VALIDATION: 'request.malformed',
  FST_ERR_BAD_URL: 'request.path',
  FST_ERR_ASYNC_CONSTRAINT: 'request.malformed',
  FST_ERR_MAX_PARAM_LENGTH: 'request.uri-too-long',
  FST_ERR_HANDLER_TIMEOUT: 'upstream.timeout',
  ECONNRESET: 'request.malformed'
}

/** Whether an upstream or a provider failed, and neither the client nor the gateway. */
export function isOfUpstream(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code.startsWith('upstream.')
}

/** What clients did not cause becomes `gateway.fault`, without its message. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const clientError =
    typeof code === 'string' && Object.hasOwn(codeOfForeignError, code)
      ? codeOfForeignError[code]
      : undefined
  if (clientError !== undefined) return new GatewayError(clientError, { cause: error })
  if (statusCode === 413) return new GatewayError('request.too-large', { cause: error })
  if (statusCode === 415) return new GatewayError('request.type', { cause: error })
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new GatewayError('request.malformed', { cause: error })
  }
  return new GatewayError('gateway.fault', { cause: error })
}

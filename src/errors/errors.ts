/** Every error that the gateway answers itself. */
import en from './texts.en.json' with { type: 'json' }
import zh from './texts.zh.json' with { type: 'json' }

/**
 * HTTP status, and Ant Design Pro's way to show it: 0 silent, 1 warning, 2 message, 3 notification,
 * 9 go to sign-in. A code never changes its meaning; messages may be replaced by config.
 */
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
} as const satisfies Record<string, readonly [status: number, showType: 0 | 1 | 2 | 3 | 9]>

export type ErrorCode = keyof typeof codes

/** What operators do about a code is in advice.json. */
export const errorKinds = Object.fromEntries(
  (Object.keys(codes) as ErrorCode[]).map(code => {
    const [status, showType] = codes[code]
    return [code, { status, showType, en: en[code], zh: zh[code] }]
  })
) as Readonly<
  Record<ErrorCode, Record<'status' | 'showType', number> & Record<'en' | 'zh', string>>
>

interface ErrorDetail {
  /** The reason, for the log only: an error, or a sentence. */
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
    const { cause, message = errorKinds[code].en } = detail
    super(message, { cause: typeof cause === 'string' ? new Error(cause) : cause })
    this.name = 'GatewayError'
    this.code = code
    this.status = detail.status ?? errorKinds[code].status
    this.statusCode = this.status
    this.detail = detail
  }
}

/** @param message tells the client what to send instead */
export function malformed(message: string, cause?: unknown): GatewayError {
  return new GatewayError('request.malformed', { message, cause })
}

/** By the status of an error of Fastify or a plugin that a client caused; others are malformed. */
const codeOfStatus: Readonly<Record<number, ErrorCode>> = {
  413: 'request.too-large',
  414: 'request.uri-too-long',
  415: 'request.type'
}

/** Whether an upstream or a provider failed, and neither the client nor the gateway. */
export function isOfUpstream(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code.startsWith('upstream.')
}

/** What clients did not cause becomes `gateway.fault`, without its message. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const status = typeof statusCode === 'number' ? statusCode : 500
  // The client's connection was reset while its request was read.
  const isOfClient = code === 'ECONNRESET' || (status >= 400 && status < 500)
  const ours = isOfClient ? (codeOfStatus[status] ?? 'request.malformed') : 'gateway.fault'
  return new GatewayError(ours, { cause: error })
}

/** One line: an upstream that is away needs no stack. */
export function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const { code } = cause as NodeJS.ErrnoException
  const text = cause.message === '' ? (code ?? cause.name) : cause.message
  return cause.cause === undefined ? text : `${text}: ${reasonOf(cause.cause)}`
}

/**
 * Every error that the gateway answers itself: its code, HTTP status, and the message for people.
 */

import { type ErrorKind, kind } from './error-kind.ts'
import { opsErrorKinds } from './ops-errors.ts'
import { signInErrorKinds } from './sign-in-errors.ts'

const badGateway = (en: string, zh: string) => kind(502, 2, en, zh)
const gatewayTimeout = (en: string, zh: string) => kind(504, 2, en, zh)

/** The stable codes. A code never changes its meaning; messages may be replaced by config. */
export const errorKinds = {
  'session.none': kind(401, 9, 'Please sign in.', '请先登录。'),
  'session.unknown': kind(
    401,
    9,
    'Your session is no longer known. Please sign in again.',
    '会话不存在,请重新登录。'
  ),
  'session.idle': kind(
    401,
    9,
    'You were signed out because you were inactive. Please sign in again.',
    '由于长时间未操作,您已被登出,请重新登录。'
  ),
  'session.absolute': kind(
    401,
    9,
    'Your session has reached its longest duration. Please sign in again.',
    '会话已达最长时限,请重新登录。'
  ),
  'session.revoked': kind(
    401,
    9,
    'You have been signed out. Please sign in again.',
    '您已被登出,请重新登录。'
  ),
  'session.replaced': kind(
    401,
    9,
    'This session was replaced by a newer sign-in.',
    '此会话已被新的登录取代。'
  ),
  'session.upstream': kind(
    401,
    9,
    'The service behind this console ended your sign-in. Please sign in again.',
    '后端服务已终止您的登录,请重新登录。'
  ),
  ...signInErrorKinds,
  'route.credential': kind(
    403,
    2,
    'This needs a sign-in with another kind of account.',
    '此操作需要使用其他类型的账户登录。'
  ),
  'route.forbidden': kind(403, 2, 'Your role does not allow this.', '您的角色无权执行此操作。'),
  ...opsErrorKinds,
  'origin.refused': kind(
    403,
    2,
    'This request came from another site and was refused.',
    '该请求来自其他站点,已被拒绝。'
  ),
  'route.unknown': kind(404, 2, 'There is nothing at this address.', '该地址不存在。'),
  'route.method': kind(
    405,
    2,
    'This address does not allow that method.',
    '该地址不支持此请求方法。'
  ),
  'request.malformed': kind(400, 2, 'The request is not well-formed.', '请求格式不正确。'),
  'request.path': kind(400, 2, 'The address of the request is not allowed.', '请求地址不被允许。'),
  'request.timeout': kind(408, 2, 'The request took too long to arrive.', '请求接收超时。'),
  'request.too-large': kind(413, 2, 'The request is too large.', '请求内容过大。'),
  'request.uri-too-long': kind(414, 2, 'The address of the request is too long.', '请求地址过长。'),
  'request.type': kind(415, 2, 'This content type is not supported here.', '不支持该内容类型。'),
  'request.expectation': kind(
    417,
    2,
    'The expectation of the request cannot be met.',
    '无法满足请求的期望条件。'
  ),
  'request.headers': kind(
    431,
    2,
    'The header fields of the request are too large or too many.',
    '请求头过大或过多。'
  ),
  'limit.exceeded': kind(
    429,
    1,
    'Too many requests. Please wait a moment, then try again.',
    '请求过于频繁,请稍后再试。'
  ),
  'upstream.refused': badGateway(
    'The service behind this page cannot be reached. Please try again later.',
    '后端服务无法连接,请稍后再试。'
  ),
  'upstream.reset': badGateway(
    'The service behind this page broke off the connection. Please try again.',
    '后端服务中断了连接,请重试。'
  ),
  'upstream.invalid': badGateway(
    'The service behind this page gave an answer that makes no sense.',
    '后端服务返回了无法识别的响应。'
  ),
  'upstream.redirect': badGateway(
    'The service behind this page answered with a redirect that is not allowed here.',
    '后端服务返回了不被允许的重定向。'
  ),
  'upstream.error': badGateway(
    'The service behind this page reported an error.',
    '后端服务返回错误。'
  ),
  'shape.not-json': badGateway(
    'The service behind this page gave an answer in another format than expected.',
    '后端服务返回的数据格式不符合预期。'
  ),
  'shape.too-large': badGateway(
    'The answer of the service behind this page is too large.',
    '后端服务返回的数据过大。'
  ),
  'contract.broken': badGateway(
    'The service behind this page gave an answer that this page cannot use.',
    '后端服务返回的数据不符合约定。'
  ),
  'session.unavailable': kind(
    503,
    2,
    'Sessions cannot be checked right now. You are not signed out; please try again in a moment.',
    '暂时无法校验会话,您并未登出,请稍后重试。'
  ),
  'maintenance': kind(
    503,
    1,
    'This is closed for maintenance. Please try again later.',
    '系统维护中,请稍后再试。'
  ),
  'overloaded': kind(
    503,
    2,
    'The service is busy. Please try again in a moment.',
    '服务繁忙,请稍后重试。'
  ),
  'gateway.stopping': kind(
    503,
    2,
    'The service is restarting. Please try again in a moment.',
    '服务正在重启,请稍后重试。'
  ),
  'gateway.fault': kind(
    500,
    2,
    'Something went wrong in the gateway. Please report the request id.',
    '网关内部错误,请提供请求编号以便排查。'
  ),
  'upstream.timeout': gatewayTimeout(
    'The service behind this page took too long to answer. Please try again.',
    '后端服务响应超时,请重试。'
  ),
  'upstream.timeout.connect': gatewayTimeout(
    'The service behind this page could not be reached in time. Please try again.',
    '连接后端服务超时,请重试。'
  ),
  'upstream.timeout.idle': gatewayTimeout(
    'The service behind this page stopped in the middle of its answer. Please try again.',
    '后端服务响应中断,请重试。'
  ),
  'upstream.timeout.total': gatewayTimeout(
    'The service behind this page took too long to finish its answer. Please try again.',
    '后端服务未能在规定时间内完成响应,请重试。'
  )
} as const satisfies Record<string, ErrorKind>

export type ErrorCode = keyof typeof errorKinds

interface ErrorDetail {
  /** The reason, for the log only. */
  readonly cause?: unknown
  /** Seconds for `Retry-After` (RFC 9110 §10.2.3). */
  readonly retryAfter?: number
  /** Replaces the code's HTTP status (an upstream's error keeps its own). */
  readonly status?: number
  /** Replaces the code's message. */
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

/**
 * Our codes for errors of Fastify, Node and plugins that clients cause. Any other is an internal
 * error.
 */
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

/**
 * Turns anything thrown into a GatewayError; what clients did not cause becomes `gateway.fault`,
 * without its message.
 */
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

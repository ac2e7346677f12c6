/** Sends the errors of all requests. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import { holdsCredential } from '../../login/leaked-credential.ts'
import type { Language } from '../../shaping/envelope.ts'
import { isBodyPending } from '../../proxy/request-body.ts'
import type { Gateway } from '../gateway.ts'
import { unknownRoute } from './context.ts'

/** Headers of an upstream's response that an error in its place must not keep. */
const bodyHeaders = [
  'content-encoding',
  'content-length',
  'content-disposition',
  'content-language',
  'content-range',
  'etag',
  'last-modified',
  'accept-ranges',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
  'cache-control'
]

export function createErrorHandler({ config, envelope, counters, shed }: Gateway) {
  const { errorStatus } = config.gateway.envelope
  return function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    if (isAbandoned(thrown, reply)) return void reply.hijack()
    const error = withoutSecrets(toGatewayError(thrown), request)
    recordReason(error, request)
    logError(error, request, shed)
    counters.onError(error.code)
    const route = request.routeOptions.config
    const { failure, statusOf, errorType, notSignedIn } = route.envelope ?? envelope
    const isProfile = route.route === ownRoutes.profile.name
    const extra = isProfile && error.status === 401 ? notSignedIn : undefined
    const generalStatus = (route.errorStatus ?? errorStatus) === 'ok' ? 200 : error.status
    replyWith(reply, error, {
      body: { ...failure(error, request.id, languageOf(request)), ...extra },
      type: errorType,
      status: statusOf(error.code) ?? generalStatus
    })
  }
}

/** The first that a browser names is that of its user. */
export function languageOf({ headers }: Pick<FastifyRequest, 'headers'>): Language {
  return /^\s*zh\b/i.test(headers['accept-language'] ?? '') ? 'zh' : 'en'
}

/** Requests that the router refuses have no trail. */
function recordReason(
  { code, cause, detail }: GatewayError,
  { trail }: Partial<Pick<FastifyRequest, 'trail'>>
) {
  if (trail === undefined) return
  // The router's reason quotes the whole target, and tokens travel in queries.
  if (cause !== undefined && code !== 'request.path') trail.reason = reasonOf(cause)
  if (detail.limit === undefined) return
  trail.limit = detail.limit
  trail.limitMax = detail.limitMax
}

/** The texts of a back-end that quote the session's own token give way to ours. */
function withoutSecrets(error: GatewayError, request: FastifyRequest): GatewayError {
  const { message, fieldErrors, ...detail } = error.detail
  if (message === undefined && fieldErrors === undefined) return error
  const credential = request.live?.session.credential
  if (!holdsCredential([message, fieldErrors], credential)) return error
  return new GatewayError(error.code, detail)
}

/**
 * The client disconnected before the response began, which closed the file it was to get: nothing
 * failed, and nobody reads a response. The access log has the request as 499.
 */
function isAbandoned(thrown: unknown, reply: FastifyReply): boolean {
  const { code } = (thrown ?? {}) as NodeJS.ErrnoException
  return code === 'ERR_STREAM_PREMATURE_CLOSE' && reply.raw.destroyed && !reply.raw.headersSent
}

interface ErrorResponse {
  readonly body: Readonly<Record<string, unknown>>
  readonly type: string
  readonly status: number
}

/** Sends an error in the place of the response that was being made. */
export function replyWith(
  reply: FastifyReply,
  error: GatewayError,
  { body, type, status }: ErrorResponse
): void {
  const { request } = reply
  request.errorCode = error.code
  request.ownErrorStatus = error.status
  for (const name of bodyHeaders) reply.removeHeader(name)
  reply.code(status).header('cache-control', 'no-store').header('content-type', type)
  if (error.detail.retryAfter !== undefined) {
    reply.header('retry-after', String(Math.max(1, Math.ceil(error.detail.retryAfter))))
  }
  if (error.detail.headers !== undefined) reply.headers({ ...error.detail.headers })
  // The unread rest of a request's body would be parsed as the next request.
  if (isBodyPending(request.raw)) reply.header('connection', 'close')
  void reply.send(JSON.stringify(body))
}

/** Everything else stands in the access line. */
function logError(
  { code, cause, detail }: GatewayError,
  request: FastifyRequest,
  shed: Gateway['shed']
) {
  const { route = unknownRoute } = request.routeOptions.config
  if (code === 'overloaded') {
    shed.count(detail.limit ?? 'other', { requestId: request.id, code, route })
  } else if (code === 'gateway.fault') {
    request.log.error({ code, route, err: cause }, 'internal error')
  }
}

/** One line: an upstream that is away needs no stack. */
export function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause)
  const { code } = cause as NodeJS.ErrnoException
  return `${cause.message === '' ? (code ?? cause.name) : cause.message}${cause.cause === undefined ? '' : `: ${reasonOf(cause.cause)}`}`
}

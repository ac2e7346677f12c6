import type { FastifyReply, FastifyRequest } from 'fastify'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { GatewayError, reasonOf, toGatewayError } from '../../errors/errors.ts'
import { holdsCredential } from '../../login/leaked-credential.ts'
import type { Language } from '../../shaping/envelope.ts'
import { isBodyPending } from '../../proxy/request-body.ts'
import type { Gateway } from '../gateway.ts'
import { sendNotice } from './pages.ts'

/** Headers of an upstream's response that an error in its place must not keep. */
const ofBody =
  /^(?:content-(?:encoding|length|disposition|language|range|md5|digest)|(?:repr-)?digest|etag|last-modified|accept-ranges)$/

export function createErrorHandler({ config, envelope, counters }: Gateway) {
  const { errorStatus: usual } = config.gateway.envelope
  const { failure, messageOf, statusOf, errorType, notSignedIn } = envelope
  return function answerError(thrown: unknown, request: FastifyRequest, reply: FastifyReply): void {
    if (isAbandoned(thrown, reply)) return void reply.hijack()
    const error = withoutSecrets(toGatewayError(thrown), request)
    const { code, status, detail } = error
    const { route, page, errorStatus = usual } = request.routeOptions.config
    record(error, request)
    counters.onError(code)
    Object.assign(request.trail, { code, errorStatus: status })
    for (const name of Object.keys(reply.getHeaders())) {
      if (ofBody.test(name)) reply.removeHeader(name)
    }
    reply
      .code(statusOf(code) ?? (errorStatus === 'ok' ? 200 : status))
      .headers({ 'cache-control': 'no-store', 'content-type': errorType, ...detail.headers })
    if (detail.retryAfter !== undefined) {
      reply.header('retry-after', String(Math.max(1, Math.ceil(detail.retryAfter))))
    }
    // The unread rest of a request's body would be parsed as the next request.
    if (isBodyPending(request.raw)) reply.header('connection', 'close')
    if (page !== undefined) {
      return sendNotice(reply.code(status), messageOf(error, languageOf(request)), page)
    }
    const extra = route === ownRoutes.profile.name && status === 401 ? notSignedIn : undefined
    const body = { ...failure(error, request.id, languageOf(request)), ...extra }
    void reply.send(JSON.stringify(body))
  }
}

/** The first that a browser names is that of its user. */
function languageOf({ headers }: Pick<FastifyRequest, 'headers'>): Language {
  return /^\s*zh\b/i.test(headers['accept-language'] ?? '') ? 'zh' : 'en'
}

/** Writes down what is wrong. Only what would hide in the access line has a line of its own. */
function record({ code, cause, detail }: GatewayError, request: FastifyRequest): void {
  const { id, trail, log, server } = request
  const { limit, limitMax } = detail
  const { route } = trail
  // The router's reason quotes the whole target, and tokens travel in queries.
  if (cause !== undefined && code !== 'request.path') trail.reason = reasonOf(cause)
  trail.limit = limit
  trail.limitMax = limitMax
  if (code === 'overloaded') server.gateway.shed(limit ?? 'other', { requestId: id, code, route })
  if (code === 'gateway.fault') log.error({ code, route, err: cause }, 'internal error')
}

/** The texts of a back-end that quote the session's own token give way to ours. */
function withoutSecrets(error: GatewayError, request: FastifyRequest): GatewayError {
  const { message, fieldErrors, ...detail } = error.detail
  if (message === undefined && fieldErrors === undefined) return error
  if (!holdsCredential([message, fieldErrors], request.live?.session)) return error
  return new GatewayError(error.code, detail)
}

/** The client left before the response began. The access log has the request as 499. */
function isAbandoned(thrown: unknown, reply: FastifyReply): boolean {
  const { code } = (thrown ?? {}) as NodeJS.ErrnoException
  return code === 'ERR_STREAM_PREMATURE_CLOSE' && reply.raw.destroyed && !reply.raw.headersSent
}

/** Headers and errors of the operators' listener, for its page and for curl. */
import type { FastifyReply } from 'fastify'
import { errorKinds, toGatewayError } from '../errors/errors.ts'

/** Pages run nothing but their own. */
const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

/** Also for answers to what is no request, which are written past Fastify. */
export const opsHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': contentSecurityPolicy,
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY'
}

export function sendOpsError(
  thrown: unknown,
  _request: unknown,
  reply: FastifyReply
): FastifyReply {
  return reply.send({ ...prepareError(thrown, reply), requestId: reply.request.id })
}

export function prepareError(thrown: unknown, reply: FastifyReply) {
  const { status, code, detail } = toGatewayError(thrown)
  const { retryAfter, message } = detail
  if (retryAfter !== undefined) reply.header('retry-after', Math.ceil(retryAfter))
  reply.code(status)
  return { error: message ?? errorKinds[code].en, code }
}

/** Of a path that the router cannot read: no hook has seen the request. */
export function sendRouterError(thrown: unknown, request: unknown, reply: FastifyReply): void {
  const headers = { ...opsHeaders, 'x-request-id': reply.request.id }
  sendOpsError(thrown, request, reply.headers(headers))
}

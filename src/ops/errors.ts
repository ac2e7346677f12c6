/** Errors of the operators' listener: for its page and for people with curl, not for consoles. */
import type { FastifyReply } from 'fastify'
import { errorKinds, toGatewayError } from '../errors/errors.ts'
import { opsHeaders } from './response-headers.ts'

export function sendOpsError(
  thrown: unknown,
  _request: unknown,
  reply: FastifyReply
): FastifyReply {
  return reply.send({ ...prepareError(thrown, reply), requestId: reply.request.id })
}

/** Sets the status and headers of an error. @returns what its body says */
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

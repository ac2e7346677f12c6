/** The headers of every response, unless its route sets them itself. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

export type StandardHeaders = Readonly<Record<string, string>>

export function standardHeaders(secure: boolean): StandardHeaders {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    ...(secure && { 'strict-transport-security': 'max-age=31536000' })
  }
}

/**
 * For responses that Fastify sends. `sendBody` bypasses it and writes `reply.standardHeaders` as a
 * whole: setting them one by one costs more than all hooks.
 */
export function addStandardHeaders(app: FastifyInstance, headers: StandardHeaders): void {
  app.decorateReply('standardHeaders', { getter: () => headers })
  app.addHook('onSend', function fillStandardHeaders(request, reply, _payload, done) {
    setStandardHeaders(request, reply, headers)
    done()
  })
}

export function setStandardHeaders(
  request: Pick<FastifyRequest, 'id'>,
  reply: Pick<FastifyReply, 'header' | 'hasHeader'>,
  headers: StandardHeaders
): void {
  for (const name in headers) if (!reply.hasHeader(name)) reply.header(name, headers[name])
  reply.header('x-request-id', request.id)
}

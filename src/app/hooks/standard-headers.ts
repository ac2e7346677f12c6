/** The header fields that every answer has, unless it says otherwise. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

export type Fields = Readonly<Record<string, string>>

export function standardFields(secure: boolean): Fields {
  return {
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'same-origin',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    ...(secure && { 'strict-transport-security': 'max-age=31536000' })
  }
}

/** For answers that Fastify sends. One that goes past it (`sendBody`) takes `reply.standardFields` by itself: to set them one by one costs more than all hooks. */
export function addStandardFields(app: FastifyInstance, fields: Fields): void {
  app.decorateReply('standardFields', { getter: () => fields })
  app.addHook('onSend', function addStandardHeaders(request, reply, _payload, done) {
    setStandardFields(request, reply, fields)
    done()
  })
}

export function setStandardFields(
  request: Pick<FastifyRequest, 'id'>,
  reply: Pick<FastifyReply, 'header' | 'hasHeader'>,
  fields: Fields
): void {
  for (const name in fields) if (!reply.hasHeader(name)) reply.header(name, fields[name])
  reply.header('x-request-id', request.id)
}

/** The fixed response of a route whose upstream failed. For GET and HEAD. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { FallbackConfig } from '../../config/schema/route.ts'
import { toGatewayError } from '../../errors/errors.ts'
import { discard, failureStatuses, type UpstreamResponse } from '../../proxy/response.ts'
import type { Call } from '../../proxy/receiver.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import { jsonType } from '../../shaping/envelope.ts'

/** @returns what sends a call, and returns undefined where the fixed response is to be sent */
export function sendWithFallback(
  { send }: Upstream,
  fallback: FallbackConfig | undefined
): (call: Call) => Promise<UpstreamResponse | undefined> {
  if (fallback === undefined) return send
  return async call => {
    if (call.method !== 'GET' && call.method !== 'HEAD') return await send(call)
    try {
      const response = await send(call)
      if (!failureStatuses.has(response.status)) return response
      discard(response)
    } catch (error) {
      const { code, status } = toGatewayError(error)
      if (!code.startsWith('upstream.') || !failureStatuses.has(status)) throw error
    }
    return undefined
  }
}

export function sendFallback(
  { trail, method }: FastifyRequest,
  reply: FastifyReply,
  { status, body }: FallbackConfig
): void {
  trail.isFallback = true
  const text = JSON.stringify(body)
  reply.code(status).header('content-type', jsonType)
  if (method === 'HEAD') reply.header('content-length', Buffer.byteLength(text)).send()
  else reply.send(text)
}

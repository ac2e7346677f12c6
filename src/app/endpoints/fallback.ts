/** The fixed response of a route whose upstream failed. */
import type { FallbackConfig } from '../../config/schema/fallback.ts'
import type { GatewayError } from '../../errors.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import { jsonType } from '../../shaping/success.ts'
import type { ProxiedExchange } from './exchange.ts'
import { sendBody } from './send-body.ts'

const failureStatuses: ReadonlySet<number> = new Set([502, 503, 504])

export function hasFailed(
  error: GatewayError | null,
  response: UpstreamResponse | undefined
): boolean {
  if (response !== undefined) return failureStatuses.has(response.status)
  return error !== null && error.code.startsWith('upstream.') && failureStatuses.has(error.status)
}

/** For GET and HEAD. */
export function sendFallback({ reply, trail, isHead }: ProxiedExchange, fallback: FallbackConfig) {
  trail.isFallback = true
  const text = JSON.stringify(fallback.body)
  reply.code(fallback.status).header('content-type', jsonType)
  if (isHead) reply.header('content-length', Buffer.byteLength(text)).send()
  else sendBody(reply, text)
}

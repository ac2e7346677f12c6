/**
 * Long bodies, which are read, shaped and written in a thread: the event loop only moves the bytes.
 */
import { toGatewayError } from '../../errors.ts'
import { isEventStream } from '../../proxy/event-stream.ts'
import { CollectedBody, type UpstreamResponse } from '../../proxy/response.ts'
import type { ProxiedExchange } from './exchange.ts'
import type { ResponseStage } from './response-stages.ts'
import { isCacheable, passUnshaped, sendJson, type ShapingApart } from './shaped.ts'

/** Ends the list for long bodies; others are left to the next stage. */
export function shapeApartStage(apart: ShapingApart): ResponseStage {
  return function shapeLongBody(exchange, response) {
    const { status, headers, body } = response
    if (!(body instanceof CollectedBody) || !apart.takes(body.bytes.length)) return false
    // Errors of the next stage.
    if (status === 206 || isEventStream(headers)) return false
    void shapeLong(exchange, response, body.bytes, apart)
    return true
  }
}

async function shapeLong(
  exchange: ProxiedExchange,
  response: UpstreamResponse,
  bytes: Buffer,
  apart: ShapingApart
): Promise<void> {
  const { reply, trail } = exchange
  trail.shapeAt = performance.now()
  try {
    const result = await apart.shape(bytes, response.headers, {
      isTagged: isCacheable(reply),
      isNeeded: () => !exchange.isGone
    })
    trail.shapeMs += performance.now() - trail.shapeAt
    if (exchange.isGone) return
    if ('unshaped' in result) {
      passUnshaped(reply, { ...response, body: new CollectedBody(result.unshaped) })
    } else sendJson(reply, result.body, result.tag)
  } catch (error) {
    if (!exchange.isGone) reply.send(toGatewayError(error))
  }
}

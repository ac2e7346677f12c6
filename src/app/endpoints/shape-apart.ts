/** The stage that hands long bodies to a thread. */
import { isEventStream } from '../../proxy/event-stream.ts'
import { CollectedBody } from '../../proxy/response.ts'
import type { ResponseStage } from './response-stages.ts'
import { sendApart } from './send-apart.ts'
import type { ShapingApart } from './shaped.ts'

/** Ends the list for long bodies; others are left to the next stage. */
export function shapeApartStage(apart: ShapingApart): ResponseStage {
  return function shapeLongBody(exchange, { status, headers, body }) {
    if (!(body instanceof CollectedBody)) return false
    const { bytes } = body
    if (!apart.takes(bytes.length, apart.unpacked(bytes, headers))) return false
    // Errors of the next stage.
    if (status === 206 || isEventStream(headers)) return false
    const main = { source: { bytes, headers } }
    void sendApart(exchange.reply, { main }, apart, () => exchange.isGone)
    return true
  }
}

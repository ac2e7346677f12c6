/**
 * A response with parts, once all are there: read, merged, shaped and sent, in a thread where they
 * are long together.
 */
import type { FastifyReply } from 'fastify'
import { toGatewayError } from '../../errors.ts'
import type { JsonSource } from '../../proxy/merge-parts.ts'
import { readParts } from '../../proxy/parts.ts'
import { CollectedBody, type UpstreamResponse } from '../../proxy/response.ts'
import type { PendingParts } from './pending-parts.ts'
import { sendApart } from './send-apart.ts'
import { type MainResponse, readResponse, sendShaped, type Shaping } from './shaped.ts'

/** A response whose value may have been read from its bytes, which a thread would read again. */
type MergedMain = MainResponse | (MainResponse & { readonly value: unknown })

/**
 * Reads an upstream's response, unless it is long, and sends it with its parts.
 * @throws GatewayError
 */
export function shapeWithParts(
  reply: FastifyReply,
  response: UpstreamResponse,
  shaping: Shaping,
  pending: PendingParts
): void {
  const { headers, body } = response
  const { work } = pending
  const source = body instanceof CollectedBody ? { bytes: body.bytes, headers } : undefined
  if (source !== undefined && work.add(source)) {
    return sendOnceGathered(reply, { source }, shaping, pending)
  }
  const startedAt = performance.now()
  const value = readResponse(reply, response, shaping)
  work.spend(performance.now() - startedAt)
  const isKept = source !== undefined && shaping.apart !== undefined
  sendOnceGathered(reply, isKept ? { value, source } : { value }, shaping, pending)
}

/** Sends once the parts are there. A required part that fails before is answered by the caller. */
export function sendOnceGathered(
  reply: FastifyReply,
  main: MergedMain,
  shaping: Shaping,
  { gathered, work }: PendingParts
): void {
  const { apart } = shaping
  void gathered.then(
    parts => {
      if (apart !== undefined && work.isTaken()) {
        const unread = 'source' in main ? { source: main.source } : main
        return void sendApart(reply, { main: unread, parts }, apart, () => reply.raw.closed)
      }
      const startedAt = performance.now()
      try {
        const value = 'value' in main ? main.value : readSource(reply, main.source, shaping)
        sendShaped(reply, value, shaping, readParts(parts))
        work.spend(performance.now() - startedAt)
        work.finish()
      } catch (error) {
        reply.send(toGatewayError(error))
      }
    },
    () => {}
  )
}

/** @throws GatewayError `shape.*` */
function readSource(
  reply: FastifyReply,
  { headers, bytes }: JsonSource,
  shaping: Shaping
): unknown {
  return readResponse(reply, { status: 200, headers, body: new CollectedBody(bytes) }, shaping)
}

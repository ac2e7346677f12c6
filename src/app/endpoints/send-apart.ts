/** Sends responses that a thread reads, shapes and writes: the event loop only moves the bytes. */
import type { FastifyReply } from 'fastify'
import { toGatewayError } from '../../errors.ts'
import { CollectedBody } from '../../proxy/response.ts'
import {
  type ApartSources,
  isCacheable,
  passUnshaped,
  sendJson,
  type ShapingApart
} from './shaped.ts'

/**
 * Sends what a thread makes of the responses.
 * @param isGone whether nobody needs it any more
 */
export async function sendApart(
  reply: FastifyReply,
  sources: ApartSources,
  apart: ShapingApart,
  isGone: () => boolean
): Promise<void> {
  const { main } = sources
  const { trail } = reply.request
  const startedAt = performance.now()
  if (trail.shapeMs === 0) trail.shapeAt = startedAt
  try {
    const result = await apart.shape(sources, {
      isTagged: isCacheable(reply),
      isNeeded: () => !isGone()
    })
    trail.shapeMs += performance.now() - startedAt
    if (isGone()) return
    if ('body' in result) sendJson(reply, result.body, result.tag)
    else if ('source' in main) {
      const body = new CollectedBody(result.unshaped)
      passUnshaped(reply, { headers: main.source.headers, body })
    }
  } catch (error) {
    if (!isGone()) reply.send(toGatewayError(error))
  }
}

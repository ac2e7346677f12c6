/** Reads, shapes and sends JSON, under headers that are true of the result. */
import type { FastifyReply } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { readJson, writeJson } from '../../json/body.ts'
import {
  discard,
  hasNoContent,
  invalid,
  isBodiless,
  isEventStream,
  isRedirect,
  type UpstreamResponse
} from '../../proxy/response.ts'
import { entityTagOf } from '../../shaping/entity-tag.ts'
import { jsonType } from '../../shaping/envelope.ts'
import type { Merge } from './parts.ts'
import type { Shaping } from './route.ts'

/** @throws GatewayError that is to be sent in the place of the response */
export async function respondShaped(
  reply: FastifyReply,
  response: UpstreamResponse,
  shaping: Shaping,
  parts: Promise<Merge> | undefined
): Promise<void> {
  const { status, headers } = response
  const isHead = reply.request.method === 'HEAD'
  if (status === 304) throw invalid('304, although no condition was sent')
  if (isBodiless(status) || (!isHead && status < 300 && hasNoContent(response))) {
    return respondEmpty(reply, status, shaping, parts)
  }
  if (isRedirect(status)) {
    discard(response)
    return void reply.removeHeader('content-type').send()
  }
  // The length of a shaped body is unknown before it is shaped, so HEAD does not name one.
  if (isHead) return void reply.header('content-type', jsonType).send()
  if (status === 206) throw invalid('206 Partial Content, although no range was requested')
  if (isEventStream(headers)) {
    const cause = new Error('the response is not valid JSON: it is a stream of events')
    throw new GatewayError('shape.not-json', { cause })
  }
  const value = readResponse(reply, response, shaping)
  return sendShaped(reply, value, shaping.shape, await parts)
}

/** A response without content; its parts, if any, are shaped all the same. */
async function respondEmpty(
  reply: FastifyReply,
  status: number,
  shaping: Shaping,
  parts: Promise<Merge> | undefined
): Promise<void> {
  if (parts !== undefined) {
    if (isBodiless(status)) reply.code(200)
    return sendShaped(reply, null, shaping.shape, await parts)
  }
  if (isBodiless(status)) return void reply.removeHeader('content-length').send()
  return sendShaped(reply, null, shaping.shapeNothing)
}

function readResponse(
  { request: { trail } }: FastifyReply,
  { headers, body }: UpstreamResponse,
  { maxShaped, onIgnored }: Shaping
): unknown {
  const startedAt = performance.now()
  trail.shapeAt = startedAt
  if (!Buffer.isBuffer(body)) throw new GatewayError('shape.too-large')
  const value = readJson(body, headers, maxShaped, onIgnored)
  trail.shapeMs += performance.now() - startedAt
  return value
}

export async function sendShaped(
  reply: FastifyReply,
  value: unknown,
  shape: Shaping['shape'],
  merge?: Merge
): Promise<void> {
  const { request } = reply
  const { trail } = request
  const startedAt = performance.now()
  if (trail.shapeMs === 0) trail.shapeAt = startedAt
  const sent = { target: request.raw.url ?? '', body: request.clientBody }
  const shapeWhole = (whole: unknown) => shape(whole, request.live, sent)
  const shaped = await (merge === undefined ? shapeWhole(value) : merge(value, shapeWhole))
  const text = writeJson(shaped)
  trail.shapeMs += performance.now() - startedAt
  if (!reply.raw.closed) sendText(reply, text)
}

/** Sends a text; one that may be cached has an `ETag`, and a client that has it gets 304. */
function sendText(reply: FastifyReply, text: string): void {
  reply.header('content-type', jsonType)
  const caching = String(reply.getHeader('cache-control') ?? 'no-store')
  const { method, headers } = reply.request
  if (method === 'GET' && reply.statusCode === 200 && !caching.includes('no-store')) {
    const tag = entityTagOf(text)
    reply.header('etag', tag)
    if (namesTag(headers['if-none-match'], tag)) {
      return void reply.code(304).removeHeader('content-type').send()
    }
  }
  void reply.send(text)
}

/** RFC 9110 §13.1.2: a proxy on the way may have marked the tag as weak. */
function namesTag(condition: string | undefined, tag: string): boolean {
  const tags = condition?.split(',') ?? []
  return tags.some(each => ['*', tag].includes(each.trim().replace(/^W\//, '')))
}

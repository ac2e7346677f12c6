/** Reads, shapes and sends JSON, under headers that are true of the result. */
import type { FastifyReply } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { readJson, writeJson } from '../../json/body.ts'
import { isEventStream } from '../../proxy/event-stream.ts'
import type { UpstreamResponse } from '../../proxy/receiver.ts'
import { entityTagOf } from '../../shaping/entity-tag.ts'
import { jsonType } from '../../shaping/envelope.ts'
import type { Merge } from './parts.ts'
import type { Shaping } from './route.ts'

/** @throws GatewayError of a response that is not one whole JSON text, whatever its body is */
export function refuseOthers({ status, headers }: UpstreamResponse): void {
  if (status === 206) {
    throw new GatewayError('upstream.invalid', {
      cause: new Error('206 Partial Content, although no range was requested')
    })
  }
  if (isEventStream(headers)) {
    throw new GatewayError('shape.not-json', {
      cause: new Error('the response is not valid JSON: it is a stream of events')
    })
  }
}

/** @throws GatewayError `shape.*` */
export function readResponse(
  reply: FastifyReply,
  { headers, body }: UpstreamResponse,
  { maxShaped, onIgnored }: Pick<Shaping, 'maxShaped' | 'onIgnored'>
): unknown {
  const { trail } = reply.request
  const startedAt = performance.now()
  trail.shapeAt = startedAt
  if (!Buffer.isBuffer(body)) throw new GatewayError('shape.too-large')
  const value = readJson(body, headers, maxShaped, onIgnored)
  trail.shapeMs += performance.now() - startedAt
  return value
}

/** @throws GatewayError */
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

function sendText(reply: FastifyReply, text: string): void {
  reply.header('content-type', jsonType)
  if (isCacheable(reply)) {
    const tag = entityTagOf(text)
    reply.header('etag', tag)
    if (namesTag(reply.request.headers['if-none-match'], tag)) {
      return void reply.code(304).removeHeader('content-type').send()
    }
  }
  void reply.send(text)
}

/** A response that may be cached may be requested again with If-None-Match. */
function isCacheable(reply: FastifyReply): boolean {
  return (
    reply.request.method === 'GET' &&
    reply.statusCode === 200 &&
    !String(reply.getHeader('cache-control') ?? 'no-store').includes('no-store')
  )
}

/** RFC 9110 §13.1.2: a proxy on the way may have marked the tag as weak. */
function namesTag(condition: string | undefined, tag: string): boolean {
  return (
    condition?.split(',').some(each => ['*', tag].includes(each.trim().replace(/^W\//, ''))) ===
    true
  )
}

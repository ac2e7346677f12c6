/**
 * A response on a route with a shape: the upstream's JSON read, shaped and written, under headers
 * that are true of the result.
 */
import { entityTagOf } from '../../shaping/entity-tag.ts'
import { jsonType } from '../../shaping/success.ts'
import { isEventStream } from '../../proxy/event-stream.ts'
import type { FastifyReply } from 'fastify'
import { GatewayError, toGatewayError } from '../../errors.ts'
import { liveOf } from '../hooks/session.ts'
import { CollectedBody, type UpstreamResponse } from '../../proxy/response.ts'
import { readJson, writeJson } from '../../json/body.ts'
import { bodyHeaders } from '../../proxy/headers.ts'
import { type PartResults, shapeMerged } from '../../proxy/merge-parts.ts'
import type { Parts } from '../../proxy/parts.ts'
import type { Live } from '../../session/evaluate.ts'
import { sendBody } from './send-body.ts'

export interface Shaping {
  /** Throws a GatewayError when the back-end's body reports an error. */
  readonly shape: (body: unknown, live: Live | undefined) => unknown
  /** The response where the back-end's has no content: neither its code nor a contract is asked. */
  readonly shapeNothing: (nothing: null, live: Live | undefined) => unknown
  /** Bytes of the body, as it comes and unpacked. */
  readonly maxShaped: number
  /** A larger one is refused with 502, or passes unshaped, byte for byte. */
  readonly tooLarge: 'refuse' | 'pass'
  /** Responses of other upstreams that are added before it is shaped. */
  readonly parts?: Parts
}

/** A shaped body's type; its length is known only once it is shaped. */
export function describeShaped(reply: FastifyReply): FastifyReply {
  return reply.header('content-type', jsonType)
}

/**
 * Reads, shapes and sends an upstream's response.
 * @throws GatewayError
 */
export function shapeResponse(
  reply: FastifyReply,
  response: UpstreamResponse,
  shaping: Shaping
): void {
  let value: unknown
  try {
    value = readResponse(reply, response, shaping)
  } catch (error) {
    const isTooLarge = error instanceof GatewayError && error.code === 'shape.too-large'
    if (shaping.tooLarge === 'refuse' || !isTooLarge) throw error
    return passUnshaped(reply, response)
  }
  sendShaped(reply, value, shaping)
}

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
  { maxShaped }: Shaping
): unknown {
  const { trail } = reply.request
  const startedAt = performance.now()
  trail.shapeAt = startedAt
  if (!(body instanceof CollectedBody)) throw new GatewayError('shape.too-large')
  const value = readJson(body.bytes, headers, maxShaped)
  trail.shapeMs += performance.now() - startedAt
  return value
}

function passUnshaped(
  reply: FastifyReply,
  { headers, body }: Pick<UpstreamResponse, 'headers' | 'body'>
): void {
  // The headers that describe the upstream's body were left out for the sake of a shaped one.
  for (const name of bodyHeaders) {
    if (headers[name] !== undefined && name !== 'accept-ranges') reply.header(name, headers[name])
  }
  reply.send(body instanceof CollectedBody ? body.bytes : body)
}

/** @throws GatewayError */
export function sendShaped(
  reply: FastifyReply,
  value: unknown,
  { shape, parts }: Shaping,
  results?: PartResults
): void {
  const { trail } = reply.request
  const startedAt = performance.now()
  if (trail.shapeMs === 0) trail.shapeAt = startedAt
  const shapeWhole = (whole: unknown) => shape(whole, liveOf(reply.request))
  const text = writeJson(
    parts === undefined || results === undefined
      ? shapeWhole(value)
      : shapeMerged(value, parts, results, shapeWhole)
  )
  trail.shapeMs += performance.now() - startedAt
  sendJson(reply, text, isCacheable(reply) ? entityTagOf(text) : undefined)
}

/** Sends once the parts are there. A required part that fails is answered by the caller. */
export function sendOnceGathered(
  reply: FastifyReply,
  value: unknown,
  shaping: Shaping,
  pendingParts: Promise<PartResults>
): void {
  void pendingParts.then(
    results => {
      try {
        sendShaped(reply, value, shaping, results)
      } catch (error) {
        reply.send(toGatewayError(error))
      }
    },
    () => {}
  )
}

/** A response that may be cached may be requested again with If-None-Match. */
function isCacheable(reply: FastifyReply): boolean {
  return (
    reply.request.method === 'GET' &&
    reply.statusCode === 200 &&
    !String(reply.getHeader('cache-control') ?? 'no-store').includes('no-store')
  )
}

/** @param tag of a response that may be cached */
function sendJson(reply: FastifyReply, body: string, tag: string | undefined): void {
  describeShaped(reply)
  if (tag !== undefined) {
    reply.header('etag', tag)
    if (namesTag(reply.request.headers['if-none-match'], tag)) {
      return void reply.code(304).removeHeader('content-type').send()
    }
  }
  sendBody(reply, body)
}

/** RFC 9110 §13.1.2: a proxy on the way may have marked the tag as weak. */
function namesTag(condition: string | undefined, tag: string): boolean {
  return (
    condition?.split(',').some(each => ['*', tag].includes(each.trim().replace(/^W\//, ''))) ===
    true
  )
}

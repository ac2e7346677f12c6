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
import { type GatheredParts, merge, type Parts, withMissing } from '../../proxy/parts.ts'
import type { Live } from '../../session/evaluate.ts'
import { sendBody } from './send-body.ts'

export interface Shaping {
  /** Throws a GatewayError when the back-end's body reports an error. */
  readonly shape: (body: unknown, live: Live | undefined) => unknown
  /** Bytes of the body, as it comes and unpacked. */
  readonly maxShaped: number
  /** A larger one is refused with 502, or passes unshaped, byte for byte. */
  readonly tooLarge: 'refuse' | 'pass'
  /** Responses of other upstreams that are added before it is shaped. */
  readonly parts?: Parts
  /**
   * Called with the milliseconds of each uninterrupted piece of this work.
   * @param bytes of the body, where the piece begins with them
   */
  readonly onStretch?: (ms: number, bytes?: number) => void
  /** Takes long bodies; absent where the work needs more than the body. */
  readonly apart?: ShapingApart
}

/** Shapes long bodies apart from the event loop. */
export interface ShapingApart {
  /** Whether a body of so many bytes takes long, and there is room for it. */
  readonly takes: (bytes: number) => boolean
  /**
   * @returns the upstream's bytes where they are too large to be shaped, and pass unshaped
   * @throws GatewayError
   */
  readonly shape: (
    bytes: Buffer,
    headers: UpstreamResponse['headers'],
    options: {
      /** Whether the response may be cached. */
      readonly isTagged: boolean
      /** Asked when its turn comes. */
      readonly isNeeded: () => boolean
    }
  ) => Promise<
    { readonly body: Buffer; readonly tag: string | undefined } | { readonly unshaped: Buffer }
  >
}

/** A shaped body's type; its length is known only once it is shaped. */
export function describeShaped(reply: FastifyReply): FastifyReply {
  return reply.header('content-type', jsonType)
}

/**
 * Reads, shapes and sends an upstream's response, with its parts where it has any.
 * @throws GatewayError
 */
export function shapeResponse(
  reply: FastifyReply,
  response: UpstreamResponse,
  shaping: Shaping,
  pendingParts: Promise<GatheredParts> | undefined
): void {
  const { status, headers } = response
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
  let value: unknown
  const startedAt = performance.now()
  reply.request.trail.shapeAt = startedAt
  try {
    value = readWhole(response, shaping.maxShaped)
    reply.request.trail.shapeMs += performance.now() - startedAt
  } catch (error) {
    const isTooLarge = error instanceof GatewayError && error.code === 'shape.too-large'
    if (shaping.tooLarge === 'refuse' || !isTooLarge) throw error
    return passUnshaped(reply, response)
  }
  if (pendingParts === undefined) sendShaped(reply, value, shaping)
  else sendOnceGathered(reply, value, shaping, pendingParts)
}

/** @throws GatewayError `shape.*` */
function readWhole({ headers, body }: UpstreamResponse, maxBytes: number): unknown {
  if (!(body instanceof CollectedBody)) throw new GatewayError('shape.too-large')
  return readJson(body.bytes, headers, maxBytes)
}

export function passUnshaped(reply: FastifyReply, { headers, body }: UpstreamResponse): void {
  // The headers that describe the upstream's body were left out for the sake of a shaped one.
  for (const name of bodyHeaders) {
    if (headers[name] !== undefined && name !== 'accept-ranges') reply.header(name, headers[name])
  }
  reply.send(body instanceof CollectedBody ? body.bytes : body)
}

/** Sends once the parts are there. A required part that fails is answered by the caller. */
export function sendOnceGathered(
  reply: FastifyReply,
  value: unknown,
  shaping: Shaping,
  pendingParts: Promise<GatheredParts>
): void {
  void pendingParts.then(
    gathered => {
      const startedAt = performance.now()
      try {
        sendShaped(reply, value, shaping, gathered)
        shaping.onStretch?.(performance.now() - startedAt)
      } catch (error) {
        reply.send(toGatewayError(error))
      }
    },
    () => {}
  )
}

/** @throws GatewayError */
export function sendShaped(
  reply: FastifyReply,
  value: unknown,
  { shape, parts, onStretch }: Shaping,
  gathered?: GatheredParts
): void {
  const merged =
    parts === undefined || gathered === undefined
      ? { value, missing: [] }
      : merge(value, parts, gathered)
  const startedAt = performance.now()
  if (reply.request.trail.shapeMs === 0) reply.request.trail.shapeAt = startedAt
  const send = (result: unknown) => {
    const text = writeJson(
      parts === undefined ? result : withMissing(result, parts, merged.missing)
    )
    reply.request.trail.shapeMs += performance.now() - startedAt
    sendJson(reply, text, isCacheable(reply) ? entityTagOf(text) : undefined)
  }
  const shaped = shape(merged.value, liveOf(reply.request))
  if (shaped instanceof Promise) {
    const sendLater = (result: unknown) => {
      const resumedAt = performance.now()
      send(result)
      onStretch?.(performance.now() - resumedAt)
    }
    shaped.then(sendLater).catch((error: unknown) => reply.send(toGatewayError(error)))
  } else send(shaped)
}

/** A response that may be cached may be requested again with If-None-Match. */
export function isCacheable(reply: FastifyReply): boolean {
  return (
    reply.request.method === 'GET' &&
    reply.statusCode === 200 &&
    !String(reply.getHeader('cache-control') ?? 'no-store').includes('no-store')
  )
}

/** @param tag of a response that may be cached */
export function sendJson(
  reply: FastifyReply,
  body: string | Buffer,
  tag: string | undefined
): void {
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
export function namesTag(condition: string | undefined, tag: string): boolean {
  return (
    condition?.split(',').some(each => ['*', tag].includes(each.trim().replace(/^W\//, ''))) ===
    true
  )
}

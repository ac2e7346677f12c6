/** The response of an upstream, from its headers to its last byte, as the client gets it. */
import type { OutgoingHttpHeaders } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { isEventStream } from '../../proxy/event-stream.ts'
import { isJson, responseError, upstreamError } from '../../proxy/failures.ts'
import {
  bodyHeaders,
  joinedVary,
  privateCaching,
  responseHeaders
} from '../../proxy/response-headers.ts'
import { hasNoContent } from '../../proxy/no-content.ts'
import { discard, type UpstreamResponse } from '../../proxy/receiver.ts'
import { isBodyPending } from '../../proxy/request-body.ts'
import { jsonType } from '../../shaping/envelope.ts'
import { createBinding } from './bind-response.ts'
import type { Merge } from './parts.ts'
import { createPlaces, isRedirect } from './places.ts'
import type { ForwardedRoute, Shaping, Target } from './route.ts'
import type { RouteServices } from './services.ts'
import { readResponse, refuseOthers, sendShaped } from './shaped.ts'

/** @throws GatewayError that is to be sent in the place of the response */
type Respond = (
  request: FastifyRequest,
  reply: FastifyReply,
  response: UpstreamResponse,
  parts?: Promise<Merge>
) => Promise<void>

export function createRespond(route: ForwardedRoute, services: RouteServices): Respond {
  const { target, shaping } = route
  const { upstream } = target
  const describe = createDescribing(route, services)
  const bind = createBinding(route, services.bindStream)
  return async (request, reply, response, parts) => {
    try {
      const { status, headers, body } = response
      describe(request, reply, response)
      const isMapped = shaping !== undefined || upstream.config.errors !== undefined
      if (status >= 400 && (isMapped || !isJson(headers))) {
        const bytes = Buffer.isBuffer(body) ? body : undefined
        throw responseError({ status, headers, bytes }, upstream.config.errors)
      }
      if (body instanceof Readable) {
        bind(request, reply, headers, body)
        // The client has a part of it already: the log tells why it has no more.
        body.once('error', error => {
          if (!reply.raw.closed) request.trail.code ??= upstreamError(error).code
        })
      }
      if (shaping !== undefined) return await respondShaped(reply, response, shaping, parts)
      relay(reply, response, target.observe)
    } catch (error) {
      discard(response)
      throw error
    }
  }
}

/** Chooses the upstream's headers for the client, and those that follow from them. */
function createDescribing(route: ForwardedRoute, services: RouteServices) {
  const { target, shaping, access } = route
  const toClientHeaders = responseHeaders({
    setCookies: target.setCookies,
    mayCache: access === 'public' && shaping?.parts === undefined,
    shaped: shaping !== undefined
  })
  const sealed = services.sealedCookies.get(target.upstreamName)
  const mapPlaces = createPlaces(target, services.routes)
  const { set = [] } = target.sealedCookies ?? {}
  const notVaried = shaping && 'accept-encoding'

  return (request: FastifyRequest, reply: FastifyReply, response: UpstreamResponse): void => {
    const { status, headers } = response
    const sent = toClientHeaders(headers)
    mapPlaces(request, response, sent)
    reply.code(status).headers(sent)
    if (headers['vary'] !== undefined) {
      const names = joinedVary(varyOf(reply), headers['vary'], notVaried)
      if (names !== undefined) reply.header('vary', names)
    }
    const caching =
      target.cachesInBrowser === true ? privateCaching(headers['cache-control']) : undefined
    if (caching !== undefined) {
      reply.header('cache-control', caching).header('vary', joinedVary(varyOf(reply), 'Cookie'))
      if (headers['age'] !== undefined) reply.header('age', headers['age'])
    }
    const cookies = sealed === undefined ? [] : sealed.close(headers['set-cookie'], set)
    for (const each of cookies) reply.header('set-cookie', each)
    // No cache may hold them.
    if (cookies.length > 0) reply.header('cache-control', 'no-store')
    if (target.framedBy !== undefined) {
      reply.header('content-security-policy', `frame-ancestors ${target.framedBy.join(' ')}`)
    }
    // The unread rest of a request's body would be parsed as the next request.
    if (isBodyPending(request.raw)) reply.header('connection', 'close')
  }
}

function varyOf(reply: FastifyReply): string | string[] | undefined {
  return reply.getHeader('vary') as string | string[] | undefined
}

/** Sends the body byte for byte: in one write where it was collected, else as a stream. */
function relay(reply: FastifyReply, response: UpstreamResponse, observe: Target['observe']): void {
  const { status, headers, body } = response
  if (isEmpty(status)) {
    if (status !== 304) reply.removeHeader('content-length')
    return void reply.send()
  }
  if (reply.request.method === 'HEAD') return void reply.send()
  if (Buffer.isBuffer(body)) {
    const isWhole = status < 300 && status !== 206
    if (observe !== undefined && isWhole && isJson(headers)) {
      if (!hasNoContent({ status, headers, bytes: body })) observe(body, headers)
    }
    return void reply.send(body)
  }
  // The first event may take long, and the page must know before that the stream is open.
  if (isEventStream(headers)) body.once('resume', () => reply.raw.flushHeaders())
  if (headers['trailer'] !== undefined) body.once('end', () => passTrailers(reply, response))
  void reply.send(body)
}

const toTrailers = responseHeaders({ mayCache: true })

/** Headers that mean nothing, or may not be believed, in trailers (RFC 9110 §6.5.1). */
const notInTrailers =
  /^(?:content-|set-cookie|access-control-|cache-|expires$|age$|date$|vary$|location$|retry-|www-)/

/** Trailers that Node refuses are dropped, as any hop may do. */
function passTrailers({ raw }: FastifyReply, { trailers = {} }: UpstreamResponse): void {
  const kept = Object.entries(toTrailers(trailers)).filter(([name]) => !notInTrailers.test(name))
  try {
    raw.addTrailers(Object.fromEntries(kept) as OutgoingHttpHeaders)
  } catch {}
}

async function respondShaped(
  reply: FastifyReply,
  response: UpstreamResponse,
  shaping: Shaping,
  parts: Promise<Merge> | undefined
): Promise<void> {
  const { status, headers, body } = response
  const isHead = reply.request.method === 'HEAD'
  const bytes = Buffer.isBuffer(body) ? body : undefined
  const hasNone =
    !isHead && status < 300 && bytes !== undefined && hasNoContent({ status, headers, bytes })
  if (status === 304) {
    throw new GatewayError('upstream.invalid', {
      cause: new Error('304, although no condition was sent')
    })
  }
  if (isEmpty(status) || hasNone) return respondEmpty(reply, status, shaping, parts)
  if (isRedirect(status)) {
    discard(response)
    return void reply.removeHeader('content-type').send()
  }
  // The length of a shaped body is unknown before it is shaped, so HEAD does not name one.
  if (isHead) return void reply.header('content-type', jsonType).send()
  refuseOthers(response)
  let value: unknown
  try {
    value = readResponse(reply, response, shaping)
  } catch (error) {
    const isTooLarge = error instanceof GatewayError && error.code === 'shape.too-large'
    if (shaping.tooLarge === 'refuse' || !isTooLarge || parts !== undefined) throw error
    return passUnshaped(reply, response)
  }
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
    if (isEmpty(status)) reply.code(200)
    return sendShaped(reply, null, shaping.shape, await parts)
  }
  if (isEmpty(status)) return void reply.removeHeader('content-length').send()
  return sendShaped(reply, null, shaping.shapeNothing)
}

function passUnshaped(reply: FastifyReply, { headers, body }: UpstreamResponse): void {
  // The headers that describe the upstream's body were left out for the sake of a shaped one.
  for (const name of bodyHeaders) {
    if (headers[name] !== undefined && name !== 'accept-ranges') reply.header(name, headers[name])
  }
  void reply.send(body)
}

function isEmpty(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

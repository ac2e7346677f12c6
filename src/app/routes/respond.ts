/** The response of an upstream, from its headers to its last byte, as the client gets it. */
import { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sealedCookies } from '../../config/schema/route.ts'
import { GatewayError, toGatewayError, type ErrorCode } from '../../errors/errors.ts'
import { readJson, writeJson } from '../../json/body.ts'
import { isBodyPending } from '../../proxy/request-body.ts'
import { joinedVary, privateCaching, responseHeaders } from '../../proxy/response-headers.ts'
import {
  discard,
  hasNoContent,
  invalid,
  isPart,
  isBodiless,
  isEventStream,
  isJson,
  isRedirect,
  responseError,
  upstreamError,
  type UpstreamResponse
} from '../../proxy/response.ts'
import { jsonType } from '../../shaping/envelope.ts'
import type { Gateway } from '../gateway.ts'
import type { ForwardedRoute, Shaping } from './compile.ts'
import type { Merge } from './parts.ts'
import { createPlaces } from './places.ts'

export type Respond = ReturnType<typeof createRespond>

/** @returns throws a GatewayError that is to be sent in the place of the response */
export function createRespond(route: ForwardedRoute, gateway: Gateway) {
  const { target, shaping } = route
  const { errors } = target.upstream.config
  const isMapped = shaping !== undefined || errors !== undefined
  const describe = createDescribing(route, gateway)
  return async (
    request: FastifyRequest,
    reply: FastifyReply,
    response: UpstreamResponse,
    parts?: Promise<Merge>
  ): Promise<void> => {
    try {
      const { status, headers, body } = response
      describe(request, reply, response)
      if (status >= 400 && (isMapped || !isJson(headers))) throw responseError(response, errors)
      if (body instanceof Readable) {
        bindToSession(route, reply, headers, body)
        // The client has a part of it already: the log tells why it has no more.
        body.once('error', error => {
          if (!reply.raw.closed) request.trail.code ??= upstreamError(error).code
        })
      }
      if (shaping !== undefined) return await respondShaped(reply, response, shaping, parts)
      relay(reply, response, route.observe)
    } catch (error) {
      discard(response)
      throw error
    }
  }
}

/** A client that does not take the end of its stream is cut after this. */
const endMs = 250

/** A streamed response ends with the session that asked for it; on public routes there is none. */
function bindToSession(
  { name, access, target }: ForwardedRoute,
  { raw, request }: FastifyReply,
  headers: UpstreamResponse['headers'],
  body: Readable
): void {
  const { live, server } = request
  const hasEvents = isEventStream(headers)
  // The client of an unsafe request has to learn what became of it.
  if (live === undefined || (request.method !== 'GET' && !hasEvents)) return
  const end = (reason: ErrorCode) => {
    request.trail.code = reason
    // A length that was announced cannot be kept any more.
    if (!hasEvents || raw.hasHeader('content-length')) return void raw.destroy()
    body.unpipe(raw)
    raw.once('close', () => body.destroy())
    raw.end()
    setTimeout(() => raw.destroy(), endMs).unref()
  }
  // Most streamed responses are short: only those that go on are held against their session.
  setImmediate(() => {
    if (raw.closed || raw.writableEnded || body.destroyed) return
    const remove = server.gateway.bindStream({
      live,
      route: name,
      access,
      touch: target.written.touch === 'always',
      isFinite: !hasEvents,
      end
    })
    request.onResponseClose.push(remove)
  })
}

function createDescribing(
  { target, shaping, access }: ForwardedRoute,
  { config, sealedCookies: sealed }: Gateway
) {
  const { setCookies = [], framedByConsole, cache } = target.written
  const hasOneSource = shaping?.parts === undefined
  const sources = Object.values(config.gateway.login.sources)
  const renewed = sources.map(each => each.kind === 'upstream-login' && each.renewedToken)
  const toClientHeaders = responseHeaders({
    setCookies: setCookies.filter(each => typeof each === 'string'),
    credentials: renewed.filter(name => typeof name === 'string'),
    mayCache: access === 'public' && hasOneSource,
    shaped: shaping !== undefined
  })
  const mapPlaces = createPlaces(target)
  const setSealed = sealedCookies(setCookies)
  const { origins } = config.gateway.server
  const framing = framedByConsole && `frame-ancestors ${["'self'", ...origins].join(' ')}`
  const isKeptByBrowser = cache === 'browser' && access !== 'public' && hasOneSource
  const notVaried = shaping && 'accept-encoding'

  return (request: FastifyRequest, reply: FastifyReply, response: UpstreamResponse): void => {
    const { status, headers } = response
    const sent = toClientHeaders(headers)
    mapPlaces(request, response, sent)
    request.hasByteHeaders = Object.values(sent).some(each => /[^\0-\x7f]/.test(String(each)))
    reply.code(status).headers(sent)
    if (headers['vary'] !== undefined) {
      const names = joinedVary(varyOf(reply), headers['vary'], notVaried)
      if (names !== undefined) reply.header('vary', names)
    }
    const caching = isKeptByBrowser ? privateCaching(headers['cache-control']) : undefined
    if (caching !== undefined) {
      reply.header('cache-control', caching).header('vary', joinedVary(varyOf(reply), 'Cookie'))
      if (headers['age'] !== undefined) reply.header('age', headers['age'])
    }
    const setCookie = setSealed.length === 0 ? [] : (headers['set-cookie'] ?? [])
    const cookies = sealed.close(target.upstreamName, setCookie, setSealed)
    for (const each of cookies) reply.header('set-cookie', each)
    // No cache may hold them.
    if (cookies.length > 0) reply.header('cache-control', 'no-store')
    if (framing) reply.header('content-security-policy', framing)
    // The unread rest of a request's body would be parsed as the next request.
    if (isBodyPending(request.raw)) reply.header('connection', 'close')
  }
}

function varyOf(reply: FastifyReply): string | string[] | undefined {
  return reply.getHeader('vary') as string | string[] | undefined
}

function relay(
  reply: FastifyReply,
  response: UpstreamResponse,
  observe: ForwardedRoute['observe']
): void {
  const { status, headers, body } = response
  if (isBodiless(status)) {
    if (status !== 304) reply.removeHeader('content-length')
    return void reply.send()
  }
  if (reply.request.method === 'HEAD') return void reply.send()
  if (Buffer.isBuffer(body)) {
    const isWhole = status < 300 && !isPart(response)
    if (observe !== undefined && isWhole && isJson(headers) && !hasNoContent(response)) {
      observe(body, headers)
    }
    return void reply.send(body)
  }
  // The first event may take long, and the page must know before that the stream is open.
  if (isEventStream(headers)) body.once('resume', () => reply.raw.flushHeaders())
  void reply.send(body)
}

/** Reads, shapes and sends JSON. @throws GatewayError to be sent in the place of the response */
async function respondShaped(
  reply: FastifyReply,
  response: UpstreamResponse,
  shaping: Shaping,
  parts: Promise<Merge> | undefined
): Promise<void> {
  const { status } = response
  if (status === 304 || isPart(response)) {
    throw invalid(`${status}, although neither a condition nor a range was sent`)
  }
  if (isRedirect(status)) {
    discard(response)
    return void reply.removeHeader('content-type').send()
  }
  // The console reads its envelope, also of a 204 (DELETE of Directus, JSON:API and others).
  if (isBodiless(status) || status === 206) reply.code(200)
  // The length of a shaped body is unknown before it is shaped, so HEAD does not name one.
  if (reply.request.method === 'HEAD') return void reply.header('content-type', jsonType).send()
  const merge = await parts
  reply.request.trail.shapeAt = performance.now()
  const value = hasNoContent(response) ? undefined : readResponse(response, shaping)
  return sendShaped(reply, value, shaping.shape, { merge, headers: response.headers })
}

function readResponse({ headers, body }: UpstreamResponse, shaping: Shaping): unknown {
  if (isEventStream(headers)) {
    const cause = 'the response is not valid JSON: it is a stream of events'
    throw new GatewayError('shape.not-json', { cause })
  }
  if (!Buffer.isBuffer(body)) throw new GatewayError('shape.too-large')
  return readJson(body, headers, shaping.maxShaped, shaping.onIgnored)
}

export async function sendShaped(
  reply: FastifyReply,
  value: unknown,
  shape: Shaping['shape'],
  { merge, headers }: { merge: Merge | undefined; headers?: UpstreamResponse['headers'] }
): Promise<void> {
  const { request } = reply
  const { trail } = request
  // A fixed answer of config is not timed: its shaping is no step that anyone looks for in a trace.
  if (trail.shapeAt === 0 && merge !== undefined) trail.shapeAt = performance.now()
  const use = { target: request.raw.url ?? '', body: request.clientBody, headers }
  const shapeWhole = (whole: unknown) => shape(whole, request.live, use)
  const shaped = await (merge === undefined ? shapeWhole(value) : merge(value, shapeWhole))
  const text = writeJson(shaped)
  if (trail.shapeAt > 0) trail.shapeMs = performance.now() - trail.shapeAt
  if (!reply.raw.closed) void reply.header('content-type', jsonType).send(text)
}

export function sendError(reply: FastifyReply, error: unknown): void {
  if (!reply.raw.closed && !reply.sent) void reply.send(toGatewayError(error))
}

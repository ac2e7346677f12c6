/**
 * The stages of a proxied response, from its headers to its last byte. A stage answers whether it
 * has sent the response, which ends the list; each may throw a GatewayError, which is then sent.
 */
import type { Live } from '../../session/evaluate.ts'
import { isEventStream } from '../../proxy/event-stream.ts'
import type { OutgoingHttpHeaders } from 'node:http'
import type { Readable } from 'node:stream'
import type { UpstreamConfig } from '../../config/schema/routes.ts'
import { GatewayError, toGatewayError } from '../../errors.ts'
import { responseError, isJson } from '../../proxy/failures.ts'
import { responseHeaders, joinedVary, privateCaching } from '../../proxy/headers.ts'
import { hasNoContent } from '../../proxy/no-content.ts'
import type { Rewrite } from '../../proxy/path.ts'
import { CollectedBody, type UpstreamResponse } from '../../proxy/response.ts'
import type { ProxiedExchange } from './exchange.ts'
import { sendBody } from './send-body.ts'
import type { BindResponse } from './streamed-response.ts'
import {
  describeShaped,
  readResponse,
  refuseOthers,
  sendOnceGathered,
  sendShaped,
  shapeResponse,
  type Shaping
} from './shaped.ts'

export type ResponseStage = (exchange: ProxiedExchange, response: UpstreamResponse) => boolean

/** Runs the stages of a response; an error is sent in its place. */
export function runResponseStages(
  stages: readonly ResponseStage[],
  exchange: ProxiedExchange,
  response: UpstreamResponse
): void {
  try {
    for (const stage of stages) if (stage(exchange, response)) return
  } catch (error) {
    response.body.destroy()
    exchange.reply.send(toGatewayError(error))
  }
}

/**
 * Chooses the upstream's headers for the client.
 * perf: what `relayStage` sends in one write takes them as they are; to put them into the reply one
 * by one costs as much as to send them.
 */
export function responseHeadersStage(
  toClientHeaders: ReturnType<typeof responseHeaders>,
  isRelayed: boolean
): ResponseStage {
  return function copyHeaders(exchange, { status, headers, body }) {
    // The proxy plugin has put them into the reply.
    if (exchange.areHeadersCopied) return false
    exchange.responseHeaders = toClientHeaders(headers)
    const isOneWrite =
      isRelayed && status === 200 && body instanceof CollectedBody && !exchange.isHead
    if (!isOneWrite) exchange.reply.headers(exchange.responseHeaders)
    return false
  }
}

/**
 * Joins the upstream's `Vary` with what CORS has set.
 * @param without a header that the response does not vary by any more
 */
export function varyStage(without?: string): ResponseStage {
  return function mergeVary({ reply }, { headers }) {
    if (headers['vary'] === undefined) return false
    const before = reply.getHeader('vary') as string | string[] | undefined
    const names = joinedVary(before, headers['vary'], without)
    if (names !== undefined) reply.header('vary', names)
    return false
  }
}

/** Lets the browser keep a response for its user, and no cache that users share. */
export const browserCacheStage: ResponseStage = ({ reply }, { headers }) => {
  const caching = privateCaching(headers['cache-control'])
  if (caching === undefined) return false
  const vary = reply.getHeader('vary') as string | string[] | undefined
  reply.header('cache-control', caching).header('vary', joinedVary(vary, 'Cookie'))
  if (headers['age'] !== undefined) reply.header('age', headers['age'])
  return false
}

interface RedirectOptions {
  readonly origin: string
  /** Of all addresses of the upstream. */
  readonly origins: ReadonlySet<string>
  readonly rewrite: Rewrite
  /** Whether a redirect to another origin passes. */
  readonly redirects: 'refuse' | 'pass'
}

/** A redirect within the upstream becomes one to the public path. */
export function redirectStage({
  origin,
  origins,
  rewrite,
  redirects
}: RedirectOptions): ResponseStage {
  return function rewriteRedirect({ request, reply }, { status, headers }) {
    if (!isRedirect(status)) return false
    const location = escaped(typeof headers['location'] === 'string' ? headers['location'] : '')
    const base = origin + rewrite.toUpstream(request.raw.url ?? '')
    if (location === '' || !URL.canParse(location, base)) {
      throw new GatewayError('upstream.redirect')
    }
    const target = new URL(location, base)
    if (origins.has(target.origin)) {
      const path = rewrite.toPublic(target.pathname)
      if (path === undefined) throw new GatewayError('upstream.redirect')
      reply.header('location', path + target.search + target.hash)
      return false
    }
    if (redirects !== 'pass' || (target.protocol !== 'https:' && target.protocol !== 'http:')) {
      throw new GatewayError('upstream.redirect')
    }
    reply.header('location', location)
    return false
  }
}

/**
 * Error pages become errors in the envelope; JSON of an unshaped route passes as it is.
 * @param format of the upstream's error bodies
 */
export function errorStage(passesJson: boolean, format?: UpstreamConfig['errors']): ResponseStage {
  return function refuseErrors(_exchange, { status, headers, body }) {
    if (status < 400 || (passesJson && isJson(headers))) return false
    throw responseError({ status, headers, bytes: bytesOf(body) }, format)
  }
}

export function sendEmpty({ reply }: ProxiedExchange, { status }: UpstreamResponse): boolean {
  if (!isEmpty(status)) return false
  if (status !== 304) reply.removeHeader('content-length')
  reply.send()
  return true
}

export function sendHead({ reply, isHead }: ProxiedExchange): boolean {
  if (isHead) reply.send()
  return isHead
}

/** Passes a whole JSON body to the contract; the response stays as it is. */
export function observeStage(
  observe: (bytes: Buffer, headers: UpstreamResponse['headers']) => void
): ResponseStage {
  return function observeJson(_exchange, { status, headers, body }) {
    if (!(body instanceof CollectedBody) || status >= 300 || status === 206) return false
    const { bytes } = body
    if (isJson(headers) && !hasNoContent({ status, headers, bytes })) observe(bytes, headers)
    return false
  }
}

/**
 * Sends the body byte for byte: in one write where it was collected, else as a stream.
 * @param bind holds a stream against its session
 */
export function relayStage(bind?: BindResponse): ResponseStage {
  return function relayBody(exchange, { headers, body }) {
    const { reply } = exchange
    if (body instanceof CollectedBody) {
      sendBody(reply, body.bytes, exchange.responseHeaders)
      return true
    }
    // The first event may take long, and the page must know before that the stream is open.
    if (isEventStream(headers)) body.once('resume', () => reply.raw.flushHeaders())
    if (headers['trailer'] !== undefined) body.once('end', () => passTrailers(exchange))
    bind?.(exchange, headers, body)
    reply.send(body)
    return true
  }
}

const toTrailers = responseHeaders({ setCookies: [], mayCache: true })

/** Headers that mean nothing, or may not be believed, in trailers (RFC 9110 §6.5.1). */
const notInTrailers =
  /^(?:content-|set-cookie|access-control-|cache-|expires$|age$|date$|vary$|location$|retry-|www-)/

/** Trailers that Node refuses are dropped, as any hop may do. */
function passTrailers({ reply, trailers = {} }: ProxiedExchange): void {
  const kept = Object.entries(toTrailers(trailers)).filter(([name]) => !notInTrailers.test(name))
  try {
    reply.raw.addTrailers(Object.fromEntries(kept) as OutgoingHttpHeaders)
  } catch {}
}

/** A response without content on a shaped route; its parts, if any, are shaped all the same. */
export function shapeEmptyStage(shaping: Shaping): ResponseStage {
  return function shapeEmpty({ reply, pendingParts, isHead }, { status, headers, body }) {
    const bytes = bytesOf(body)
    const hasNone =
      !isHead && status < 300 && bytes !== undefined && hasNoContent({ status, headers, bytes })
    if (!isEmpty(status) && !hasNone) return false
    if (status === 304) {
      throw new GatewayError('upstream.invalid', {
        cause: new Error('304, although no condition was sent')
      })
    }
    if (pendingParts !== undefined) {
      const described = isEmpty(status) ? reply.code(200) : reply
      sendOnceGathered(described, null, shaping, pendingParts)
    } else if (isEmpty(status)) reply.removeHeader('content-length').send()
    else {
      const shape = (_: unknown, live: Live | undefined) => shaping.shapeNothing(null, live)
      sendShaped(reply, null, { ...shaping, shape })
    }
    return true
  }
}

export function sendRedirect({ reply }: ProxiedExchange, response: UpstreamResponse): boolean {
  if (!isRedirect(response.status)) return false
  response.body.destroy()
  reply.removeHeader('content-type').send()
  return true
}

/** The length of a shaped body is unknown before it is shaped, so HEAD does not name one. */
export function sendShapedHead({ reply, isHead }: ProxiedExchange): boolean {
  if (isHead) describeShaped(reply).send()
  return isHead
}

/** @param bind holds a response that passes unshaped, as a stream, against its session */
export function shapeStage(shaping: Shaping, bind?: BindResponse): ResponseStage {
  const bindUnshaped = shaping.tooLarge === 'pass' ? bind : undefined
  return function shapeBody(exchange, response) {
    const { headers, body } = response
    const { reply, pendingParts } = exchange
    if (bindUnshaped !== undefined && !(body instanceof CollectedBody)) {
      bindUnshaped(exchange, headers, body)
    }
    refuseOthers(response)
    if (pendingParts === undefined) shapeResponse(reply, response, shaping)
    else {
      const value = readResponse(reply, response, shaping)
      sendOnceGathered(reply, value, shaping, pendingParts)
    }
    return true
  }
}

function bytesOf(body: CollectedBody | Readable): Buffer | undefined {
  return body instanceof CollectedBody ? body.bytes : undefined
}

function isEmpty(status: number): boolean {
  return status === 204 || status === 205 || status === 304
}

/**
 * Raw bytes as escapes of these bytes: header text has a character a byte, which `URL` would take
 * for that character, and escape UTF-8 twice.
 */
function escaped(location: string): string {
  return location.replace(
    /[\x80-\xff]/g,
    byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`
  )
}

function isRedirect(status: number): boolean {
  return status >= 300 && status < 400 && status !== 304
}

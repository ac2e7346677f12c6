import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { mapBody } from '../../proxy/body-mapping.ts'
import type { Call } from '../../proxy/receiver.ts'
import { requestHeaders } from '../../proxy/request-headers.ts'
import { compileQuery } from '../../proxy/query.ts'
import { announcesBody, maxCollectedBytes, readBody } from '../../proxy/request-body.ts'
import type { Gateway } from '../gateway.ts'
import { forwardedForOf } from '../hooks/address.ts'
import type { ForwardedRoute, Target } from './compile.ts'

export type Outgoing = Pick<Call, 'method' | 'path' | 'headers'>

/** @returns a function that throws a GatewayError `request.*` for a request that cannot go on */
export function compileOutgoing(
  { target, shaping }: ForwardedRoute,
  { config, tokenNames, sealedCookies, credentialFor }: Gateway
): (request: FastifyRequest) => Outgoing {
  const { passHeaders, passCookies = [] } = target.written
  const { upstreamName } = target
  const passSealed = passCookies.filter(name => sealedCookies.isSealed(upstreamName, name))
  const toHeaders = requestHeaders({
    identity: config.gateway.identity,
    tokenNames,
    upstream: target.upstream.config,
    credentialFor: credentialFor(upstreamName),
    passHeaders,
    passCookies: passCookies.filter(name => !passSealed.includes(name)),
    shaped: shaping !== undefined
  })
  const stripTokens = tokenNames.query?.strip
  const { reads, others } = target.query ?? {}
  const queryOfReads = reads && compileQuery(reads)
  const queryOfOthers = others && compileQuery(others)

  return request => {
    const { raw } = request
    const method = target.isReadOnly && raw.method === 'POST' ? 'GET' : request.method
    const isRead = method === 'GET' || method === 'HEAD'
    const url = raw.url ?? ''
    const mark = url.indexOf('?')
    let query = mark < 0 ? '' : url.slice(mark)
    if (stripTokens !== undefined) query = stripTokens(query)
    const toQuery = isRead ? queryOfReads : queryOfOthers
    if (toQuery !== undefined) query = toQuery(query)
    const caller = forwardedForOf(request)
    const headers = toHeaders(raw.headers, caller, bodyOf(request, target) !== undefined, isRead)
    if (passSealed.length > 0) {
      const opened = sealedCookies.open(upstreamName, raw.headers.cookie, passSealed)
      const all = [headers['cookie'] ?? [], opened].flat()
      if (all.length > 0) headers['cookie'] = all.join('; ')
    }
    return { method, path: target.rewrite.toUpstream(url) + query, headers }
  }
}

/** Where it goes to the upstream. The plugin's parsers hand on a stream, but none of reads. */
function bodyOf({ body, raw }: FastifyRequest, target: Target): Readable | undefined {
  if (target.isReadOnly) return undefined
  if (body instanceof Readable) return body
  return target.written.passGetBody === true && raw.method === 'GET' && announcesBody(raw)
    ? raw
    : undefined
}

/**
 * Mends the headers that describe a mapped body. A large body is not read but streamed.
 * @param collectBytes up to this size it is collected @throws GatewayError `request.*`
 */
export async function readOutgoingBody(
  request: FastifyRequest,
  target: Target,
  headers: Outgoing['headers'],
  collectBytes: number
): Promise<NonNullable<Call['body']> | null> {
  const stream = bodyOf(request, target)
  if (stream === undefined) {
    if (request.body instanceof Readable) request.body.resume()
    return null
  }
  const { body: mapping, maxBody: maxBytes } = target
  const announced = headers['content-length']
  const length = announced === undefined ? undefined : Number(announced)
  const usual = length === undefined ? maxCollectedBytes : collectBytes
  const collected = mapping === undefined ? usual : Math.min(mapping.maxBytes, maxBytes)
  const body = await readBody(stream, length, { collectBytes: collected, maxBytes })
  if (Buffer.isBuffer(body)) request.clientBody = body
  if (mapping === undefined) return body
  if (body instanceof Readable) {
    body.destroy()
    throw new GatewayError('request.too-large')
  }
  // An empty body has no type.
  return body.length === 0
    ? null
    : await mapBody(body, headers, mapping, request.live?.session.identity)
}

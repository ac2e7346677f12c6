/** The stages of a proxied request before its upstream is called; each may throw a GatewayError. */
import type { QueryMaps } from '../../config/schema/resolved.ts'
import { toGatewayError } from '../../errors.ts'
import { forwardedForOf, type ForwardedHost } from '../hooks/forwarded-for.ts'
import type { requestHeaders } from '../../proxy/headers.ts'
import type { Rewrite } from '../../proxy/path.ts'
import { compileQuery } from '../../proxy/query.ts'
import type { ProxiedExchange } from './exchange.ts'
import { type MergingShaping, type PartsOptions, fetchParts } from './pending-parts.ts'

export type RequestStage = (exchange: ProxiedExchange) => void

/** The public path becomes the upstream's; the query stays as it is. */
export function rewriteStage({ toUpstream }: Rewrite): RequestStage {
  return function rewriteTarget(exchange) {
    const target = exchange.request.raw.url ?? ''
    const mark = target.indexOf('?')
    exchange.path = toUpstream(target) + (mark < 0 ? '' : target.slice(mark))
  }
}

/** The query becomes the upstream's. */
export function queryStage(toUpstream: (query: string) => string): RequestStage {
  return function mapQuery(exchange) {
    const mark = exchange.path.indexOf('?')
    const path = mark < 0 ? exchange.path : exchange.path.slice(0, mark)
    exchange.path = path + toUpstream(mark < 0 ? '' : exchange.path.slice(mark))
  }
}

/**
 * The query maps of a route, of which one may be for reads only.
 * @throws GatewayError `request.malformed`
 */
export function queryMapsStage({ reads, others }: QueryMaps): RequestStage | undefined {
  const ofReads = reads && queryStage(compileQuery(reads))
  if (others === reads) return ofReads
  const ofOthers = others && queryStage(compileQuery(others))
  return function mapQueryByMethod(exchange) {
    const { method } = exchange.request
    const stage = method === 'GET' || method === 'HEAD' ? ofReads : ofOthers
    stage?.(exchange)
  }
}

/** The upstream's headers are built anew from the client's, the session and the connection. */
export function requestHeadersStage(
  toHeaders: ReturnType<typeof requestHeaders>,
  forwardedHost: ForwardedHost
): RequestStage {
  return function buildRequestHeaders(exchange) {
    const { request } = exchange
    exchange.headers = toHeaders(
      request.raw.headers,
      forwardedForOf(request, forwardedHost),
      request.body !== undefined && request.body !== null,
      exchange.method === 'GET' || exchange.isHead
    )
  }
}

/**
 * The parts of the response are asked while the upstream works; a required one that fails ends it.
 */
export function partsStage(
  route: string,
  shaping: MergingShaping,
  options: PartsOptions
): RequestStage {
  return function startParts(exchange) {
    if (exchange.method !== 'GET') return
    const { reply } = exchange
    const pendingParts = fetchParts(reply, route, shaping, options)
    exchange.pendingParts = pendingParts
    pendingParts.catch((error: unknown) => {
      if (exchange.isGone || reply.sent) return
      exchange.leave()
      reply.send(toGatewayError(error))
    })
  }
}

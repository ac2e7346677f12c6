/** CSRF: cookies alone prove nothing, since another port of the same host is the same site. */
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { safeMethods } from '../../observability/failures.ts'
import type { RequestHook } from './context.ts'

/** @param origins others whose pages may call */
export function sameOrigin(origins: readonly string[]): RequestHook {
  return function checkOrigin(request, _reply, done) {
    const isRefused = !safeMethods.has(request.method) && !mayCall(request, origins)
    done(isRefused ? new GatewayError('origin.refused') : undefined)
  }
}

/** Whether a page of another site sent the browser here: then it has no strict cookies with it. */
export function isCrossSite({ headers }: FastifyRequest): boolean {
  return headers['sec-fetch-site'] === 'cross-site'
}

/** For what does harm by GET as well: a prefetch is refused too. @throws GatewayError */
export function requireOrigin(request: FastifyRequest, origins: readonly string[]): void {
  if (isPrefetch(request) || !mayCall(request, origins)) throw new GatewayError('origin.refused')
}

/** A client that sends neither Fetch Metadata, `Origin` nor `Referer` is not a browser. */
function mayCall(request: FastifyRequest, origins: readonly string[]): boolean {
  // No page can make a browser send one.
  if (request.hasKey === true) return true
  const { 'sec-fetch-site': site, origin, referer } = request.headers
  if (site === 'same-origin' || site === 'none') return true
  if (origin !== undefined) return origins.includes(origin) || isOwn(origin, request)
  if (site !== undefined) return false
  return (
    referer === undefined ||
    isOwn(referer, request) ||
    origins.some(allowed => referer === allowed || referer.startsWith(`${allowed}/`))
  )
}

/** Behind an unknown load balancer our scheme is unknown: only https settles it. */
function isOwn(address: string, request: FastifyRequest): boolean {
  const page = URL.parse(address)
  if (page === null || !isAtHost(page, request.headers.host)) return false
  const { protocol } = page
  return protocol === 'https:' || (protocol === 'http:' && request.protocol === 'http')
}

/** @param field a `Host`, in which a proxy may have written the usual port: `Host: a.example:443` */
export function isAtHost({ protocol, host }: URL, field = ''): boolean {
  return host === URL.parse(`${protocol}//${field}`)?.host
}

function isPrefetch({ headers }: FastifyRequest) {
  return [headers['sec-purpose'], headers['purpose'], headers['x-purpose'], headers['x-moz']].some(
    value => typeof value === 'string' && /prefetch|prerender|preview/i.test(value)
  )
}

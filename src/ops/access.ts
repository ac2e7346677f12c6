/** Who may use the operators' listener: one hook, in the order in which it decides. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { canMeet, isHttp1, soleHost } from '../app/hooks/request-policy.ts'
import { isAtHost } from '../app/hooks/same-origin.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { GatewayError, malformed } from '../errors/errors.ts'
import { createQuiet } from '../observability/quiet.ts'
import { keepCookies } from '../session/cookie-header.ts'
import { localOperator, type Operator, secretOperator } from './operator.ts'
import { isLocal } from './server.ts'

interface Options {
  readonly ops: Pick<GatewayConfig['ops'], 'secret' | 'hosts'>
  /** `__Host-` where it goes over https alone. */
  readonly cookie: string
  readonly operatorOf: (value: string) => Promise<Operator | undefined>
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

/** Refuses requests without an operator, and sets `request.operator` of others. */
export function createAccess({ ops, cookie, operatorOf, log }: Options) {
  const ownNames = new Set(['localhost', ...ops.hosts.map(host => host.toLowerCase())])
  const isSecure = cookie.startsWith('__Host-')
  const onceAMinute = createQuiet()

  return async function access(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    refuseAmbiguous(request, reply)
    const { url, config } = request.routeOptions
    const { isOpen = false, isProbe = false } = config
    if (url === '/healthz') return
    if (isLocal(request)) {
      request.operator = localOperator
      request.address = 'local'
      return
    }
    // DNS rebinding: a page whose own name leads to our address must read nothing.
    const mayUseAnyName = isProbe && !isOfBrowser(request)
    if (!mayUseAnyName && !isOwnName(request.host, ownNames)) throw new GatewayError('ops.host')

    const { authorization = '' } = request.headers
    const [, token] = /^bearer (.*)/i.exec(authorization) ?? []
    if (token !== undefined && isSame(token, ops.secret)) {
      if (isForeign(request)) throw new GatewayError('ops.origin')
      request.operator = secretOperator
      return
    }
    if (token !== undefined) {
      const fields = { event: 'ops.refused', address: request.ip }
      onceAMinute(() => log.warn(fields, 'a wrong operators’ secret was sent'))
    }

    const value = cookieOf(request, cookie)
    if (value === undefined && !isOpen) {
      reply.header('www-authenticate', 'Bearer realm="operators"')
      throw new GatewayError('ops.secret')
    }
    // Pages may be linked from anywhere; no other site can read or frame them.
    const mayBeLinked = isOpen && isRead(request)
    if (!mayBeLinked && !isOfOwnPage(request, isSecure)) throw new GatewayError('ops.origin')
    if (value !== undefined) request.operator = await operatorOf(value)
    if (request.operator === undefined && !isOpen) throw new GatewayError('ops.session')
  }
}

/** Digests have one length, so the comparison takes the same time for every wrong secret. */
export function isSame(text: string, secret: string | undefined): boolean {
  return secret !== undefined && timingSafeEqual(digest(text), digest(secret))
}

export function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

/** @throws GatewayError for what a proxy on the way may have read in another way than Node */
function refuseAmbiguous({ raw, headers }: FastifyRequest, reply: FastifyReply): void {
  const hasSeveralHosts = headers.host !== undefined && soleHost(raw.rawHeaders) === undefined
  // A target that names a host wins over `Host` (RFC 9112 §3.2.2), which the checks read.
  const isClear = !hasSeveralHosts && isHttp1(raw) && raw.url?.startsWith('/') === true
  if (isClear && canMeet(raw)) return
  reply.header('connection', 'close')
  if (isClear) throw new GatewayError('request.expectation')
  if (hasSeveralHosts) throw malformed('The request has several Host headers. Send one.')
  throw new GatewayError('request.malformed')
}

function isOfBrowser({ headers }: FastifyRequest): boolean {
  return ['origin', 'referer', 'sec-fetch-site'].some(name => headers[name] !== undefined)
}

/** @param host a `Host` header; its name may have a port and brackets */
function isOwnName(host: string, ownNames: ReadonlySet<string>): boolean {
  const name = host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
  return isIP(name) !== 0 || ownNames.has(name.toLowerCase())
}

/** @throws GatewayError where there are two cookies of the name: one of them was planted */
function cookieOf({ headers }: FastifyRequest, name: string): string | undefined {
  const pairs = keepCookies(headers.cookie ?? '', [name])
  if (pairs.includes(';')) {
    throw malformed('Two session cookies were sent. Clear the cookies of this host.')
  }
  return pairs === '' ? undefined : pairs.slice(name.length + 1)
}

function isRead({ method }: FastifyRequest): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Whether a request with our cookie, or to sign in, comes from our own page, as it must. */
function isOfOwnPage(request: FastifyRequest, isSecure: boolean): boolean {
  const { headers, protocol } = request
  // Past the proxy that ends TLS, a password would cross the network in clear.
  if (isSecure && protocol !== 'https') return false
  return !isForeign(request) && (isRead(request) || headers.origin !== undefined)
}

/**
 * Cookies do not know ports: browsers send ours from pages on other ports of the host too. A proxy
 * that ends TLS changes the scheme of our origin, so its host and port alone are compared.
 */
function isForeign({ headers, host }: FastifyRequest): boolean {
  const { origin, 'sec-fetch-site': site = 'none' } = headers
  if (site !== 'same-origin' && site !== 'none') return true
  if (origin === undefined) return false
  const page = URL.parse(origin)
  return page === null || !isAtHost(page, host)
}

/** The first check of a request: it has one meaning, one host, and bounded headers. */
import type { IncomingMessage } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { splitPublicHost } from '../../config/schema/host-port.ts'
import { GatewayError } from '../../errors/errors.ts'
import { checkTarget } from '../../proxy/path.ts'
import type { Gateway } from '../gateway.ts'
import type { RequestHook } from './context.ts'
import { asksWebSocket, UpgradeResponse } from './upgrade.ts'

// A registered name, an IPv4 address or a bracketed IPv6 address, and a port (RFC 3986 §3.2.2).
const hostField = /^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/

/** How many lines the headers of a request may have. */
export const maxHeaders = 100

/**
 * @param hidesNearer whether escapes in a path hide a nearer known path
 * @returns a hook that refuses, and never repairs, what could be read in two ways
 */
export function requestPolicy(
  { config }: Gateway,
  hidesNearer: (path: string) => boolean
): RequestHook {
  const { sizes } = config.limits
  // Without any each name is served.
  const hosts = config.gateway.server.hosts.map(host => splitPublicHost(host).name.toLowerCase())

  function faultOf(request: FastifyRequest, reply: FastifyReply): GatewayError | undefined {
    const { raw, routeConfig } = request
    const target = raw.url ?? ''
    if (!isHttp1(raw)) return new GatewayError('request.malformed')
    if (!canMeet(raw)) return new GatewayError('request.expectation')
    if (raw.rawHeaders.length / 2 > maxHeaders) return new GatewayError('request.headers')
    if (target.length > sizes.url) return new GatewayError('request.uri-too-long')
    const host = soleHost(raw.rawHeaders)
    const name = host === undefined ? undefined : hostField.exec(host)?.[1]
    if (name === undefined || (hosts.length > 0 && !hosts.includes(name.toLowerCase()))) {
      return new GatewayError('request.malformed', {
        message: 'The Host of the request is not one that is served here.'
      })
    }
    if (isBrokenHandshake(request, reply)) return new GatewayError('request.malformed')
    const length = raw.headers['content-length']
    if (length !== undefined && Number(length) > (routeConfig.maxBody ?? sizes.body)) {
      return new GatewayError('request.too-large')
    }
    try {
      checkTarget(target, hidesNearer, routeConfig.passEncodedSlashes)
      return undefined
    } catch (cause) {
      return cause instanceof GatewayError ? cause : new GatewayError('request.path', { cause })
    }
  }

  return function checkRequest(request, reply, done) {
    const error = faultOf(request, reply)
    if (error === undefined) return done()
    reply.header('connection', 'close')
    done(error)
  }
}

/** Only `100-continue`, which Node finds also among others (RFC 9110 §10.1.1). */
export function canMeet({ headers: { expect } }: IncomingMessage): boolean {
  return expect === undefined || expect.toLowerCase() === '100-continue'
}

/**
 * HTTP/1.0 has no transfer codings: a proxy on the way may have seen another end of such a request
 * (RFC 9112 §6.1).
 */
export function isHttp1({ httpVersionMajor, httpVersionMinor, headers }: IncomingMessage): boolean {
  if (httpVersionMajor !== 1) return false
  return httpVersionMinor > 0 || headers['transfer-encoding'] === undefined
}

/** A handshake with a body, where a route takes handshakes. */
function isBrokenHandshake({ raw, routeConfig }: FastifyRequest, reply: FastifyReply): boolean {
  if (raw.headers.upgrade === undefined || routeConfig.takesUpgrades !== true) return false
  return !(reply.raw instanceof UpgradeResponse) && asksWebSocket(raw)
}

/**
 * The only `Host` header; undefined for none or several (RFC 9112 §3.2), of which Node keeps the
 * first.
 */
export function soleHost(rawHeaders: readonly string[]): string | undefined {
  let host: string | undefined
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]
    if (name?.length !== 4 || name.toLowerCase() !== 'host') continue
    if (host !== undefined) return undefined
    host = rawHeaders[index + 1]
  }
  return host
}

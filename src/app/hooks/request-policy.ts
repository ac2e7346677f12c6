/** A request has one meaning, one host, bounded headers and https; none while the loop is late. */
import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import underPressure from '@fastify/under-pressure'
import { splitPublicHost } from '../../config/schema/host-port.ts'
import { GatewayError, malformed } from '../../errors/errors.ts'
import { checkTarget } from '../../proxy/path.ts'
import type { Gateway } from '../gateway.ts'
import { originOf } from './address.ts'
import type { RequestHook } from './context.ts'
import { asksWebSocket, UpgradeResponse } from './upgrade.ts'

// A registered name, an IPv4 address or a bracketed IPv6 address, and a port (RFC 3986 §3.2.2).
const hostField = /^([A-Za-z0-9](?:[A-Za-z0-9._-]{0,252})|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?$/

export const maxHeaders = 100
/** Of a request, its target among them; Node's parser refuses more. */
export const maxHeaderSize = 16 * 1024

/** The router would answer what it cannot decode before any hook: the policy refuses `//`. */
export function readable(target: string): string {
  if (!target.startsWith('/')) return '//'
  if (!target.includes('%')) return target
  try {
    decodeURI(target.split('?', 1)[0] ?? '')
    return target
  } catch {
    return '//'
  }
}

/** @returns a hook that refuses, and never repairs, what could be read in two ways */
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
      return malformed('The Host of the request is not one that is served here.')
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

/** HTTP/1.0 has no transfer codings: a proxy may have seen another end (RFC 9112 §6.1). */
export function isHttp1({ httpVersionMajor, httpVersionMinor, headers }: IncomingMessage): boolean {
  if (httpVersionMajor !== 1) return false
  return httpVersionMinor > 0 || headers['transfer-encoding'] === undefined
}

function isBrokenHandshake({ raw, routeConfig }: FastifyRequest, reply: FastifyReply): boolean {
  if (raw.headers.upgrade === undefined || routeConfig.takesUpgrades !== true) return false
  return !(reply.raw instanceof UpgradeResponse) && asksWebSocket(raw)
}

/** Undefined for none or several `Host` (RFC 9112 §3.2), of which Node keeps the first. */
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

const plainSockets = new WeakSet<Socket>()

export function redirectAll(server: Server): void {
  server.on('connection', (socket: Socket) => plainSockets.add(socket))
}

export function isRedirected({ raw }: FastifyRequest): boolean {
  return plainSockets.has(raw.socket)
}

export function redirectToHttps({ config }: Gateway): RequestHook {
  const { hosts } = config.gateway.server
  const origins = new Map(
    hosts.map(host => [splitPublicHost(host.toLowerCase()).name, originOf('https', host)])
  )
  return function toHttps(request, reply, done) {
    if (!isRedirected(request)) return done()
    const { name } = splitPublicHost((request.headers.host ?? '').toLowerCase())
    // The body of any other request has been sent in the clear: repeating it would hide that.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return done(new GatewayError('route.method', { headers: { allow: 'GET, HEAD' } }))
    }
    reply.header('connection', 'close').redirect(`${origins.get(name)}${request.raw.url}`, 308)
  }
}

/** In the mean of a sample. */
const maxDelayMs = 1000
/** For users who are signed in; the signature of their cookie is enough. */
const maxSignedInDelayMs = 3000
/** A delay of more than that leaves nothing to measure in its sample, and counts as infinite. */
const sampleInterval = maxSignedInDelayMs

export async function refuseUnderPressure(app: FastifyInstance): Promise<void> {
  const { sessionKeyIn } = app.gateway
  // Without bounds it only measures: its own hook makes a copy of the route's options each time.
  await app.register(underPressure, { sampleInterval })
  let from = Infinity
  app.addHook('onReady', async () => {
    // Building the app delays the event loop; that is no load.
    from = performance.now() + sampleInterval
  })
  const isSignedIn = ({ headers: { cookie } }: FastifyRequest) =>
    cookie !== undefined && sessionKeyIn(cookie) !== undefined
  app.addHook('onRequest', function checkPressure(request, _reply, done) {
    const { eventLoopDelay } = app.memoryUsage()
    if (eventLoopDelay <= maxDelayMs || performance.now() < from) return done()
    if (eventLoopDelay <= maxSignedInDelayMs && isSignedIn(request)) return done()
    done(new GatewayError('overloaded', { retryAfter: 1, limit: 'eventLoop' }))
  })
}

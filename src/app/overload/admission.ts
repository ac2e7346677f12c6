/**
 * The admission of requests, before any route and hook: under overload some are refused at a
 * fraction of the cost of an answer. With few requests in flight it is one comparison.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { all } from '@fastify/proxy-addr'
import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config/schema/config.ts'
import { ownMethods, ownPaths } from '../../config/schema/own-endpoints.ts'
import { mountOf, pathsOf } from '../../config/schema/resolved.ts'
import { GatewayError } from '../../errors.ts'
import { isBodyPending } from '../../proxy/request-body.ts'
import type { Services } from '../../services/services.ts'
import { createEnvelope } from '../../shaping/envelope.ts'
import { createCountedAddress, createTrust } from '../hooks/address.ts'
import { countedErrors } from '../hooks/errors.ts'
import { sessionCookie } from '../hooks/session.ts'
import { createSessionCookieReader } from '../hooks/session-cookie.ts'
import { standardHeaders } from '../hooks/standard-headers.ts'
import { requestId } from '../fastify.ts'
import { Load, type LoadBounds } from './load.ts'
import { Refusals } from './refusals.ts'
import { ShedLog } from './shed-log.ts'

/** State of the process, which outlives generations. */
export interface Overload {
  readonly load: Load
  readonly refusals: Refusals
  readonly shed: ShedLog
  readonly close: () => void
}

export function createOverload({ metrics, log }: Pick<Services, 'metrics' | 'log'>): Overload {
  const [load, refusals, shed] = [new Load(), new Refusals(), new ShedLog(metrics, log)]
  const close = () => {
    load.close()
    refusals.close()
    shed.write()
  }
  return { load, refusals, shed, close }
}

type Handle = (request: IncomingMessage, response: ServerResponse) => void

interface Admission {
  /** @returns the handler behind the admission of its requests */
  readonly before: (handle: Handle) => Handle
  /** Counts a request that was admitted. @returns what to call once when it is over */
  readonly begin: (request: FastifyRequest) => () => void
  /** Requests in flight that one address or user may have now. */
  readonly share: () => number
}

export function createAdmission(
  config: Config,
  { load, refusals, shed }: Overload,
  services: Pick<Services, 'metrics' | 'secrets'>
): Admission {
  const { overload: bounds, trustedProxies } = config.gateway.server
  const trust = trustedProxies.length > 0 ? createTrust(trustedProxies) : undefined
  const countedAddress = createCountedAddress(config.limits.ipv6Prefix)
  const rankOf = createRanks(config, services.secrets)
  const refuse = createRefusal(config, requestId(trust))
  const errors = countedErrors(services.metrics).with('overloaded')

  /** @returns whether the request may go on; otherwise it is answered here */
  function isAdmitted(request: IncomingMessage, response: ServerResponse): boolean {
    if (load.total < bounds.inFlightPerAddress) return true
    load.watchTurn(bounds)
    const address = countedAddress(senderOf(request, trust))
    if (shedReason(load, bounds, address, 1) === undefined) return true
    const reason = shedReason(load, bounds, address, rankOf(request))
    if (reason === undefined) return true
    errors.inc()
    shed.count(reason, { address })
    // No browser pipelines: one that does would have thousands of refusals wait for their turn.
    if (response.socket === null) request.socket.destroy()
    else refusals.add(request, () => refuse(request, response))
    return false
  }

  return {
    before: handle => (request, response) => {
      if (isAdmitted(request, response)) handle(request, response)
    },
    begin: request => load.begin(countedAddress(request), bounds),
    share: () => Math.floor(load.share(bounds))
  }
}

/** @param rank by so much more than the others' is the request's share */
function shedReason(
  load: Load,
  bounds: LoadBounds,
  address: string,
  rank: number
): 'address' | 'load' | undefined {
  if (load.of(address) >= rank * load.share(bounds)) return 'address'
  return load.modest >= rank * load.capacity(bounds) ? 'load' : undefined
}

/** The client's address, found by the package that Fastify finds it with. */
function senderOf(request: IncomingMessage, trust?: (address: string) => boolean) {
  const ip = request.socket.remoteAddress ?? ''
  if (trust === undefined) return { ip, ips: [ip] }
  const ips = all(request, trust)
  return { ip: ips.at(-1) ?? '', ips }
}

const ranks = { other: 1, signedIn: 1.25, signOut: 2 }

/**
 * Users who are signed in come before others, and their sign-outs before all. The signature of
 * the cookie decides: to ask the store would cost more than what is refused.
 */
function createRanks(config: Config, secrets: readonly string[]) {
  const { name } = sessionCookie(config.gateway.session.cookie)
  const sessionKeyIn = createSessionCookieReader({ name, secrets })
  const { endpoints } = config.routes
  const mount = mountOf(config)
  const signOut = new Set(
    pathsOf(config.routes, ownPaths(endpoints).logout).map(path => mount + path)
  )
  const methods = ownMethods('logout', endpoints)

  return function rankOf({ headers, method = '', url = '' }: IncomingMessage): number {
    const { cookie } = headers
    if (cookie === undefined || sessionKeyIn(cookie) === undefined) return ranks.other
    const isSignOut = methods.includes(method) && signOut.has(url.split('?', 1)[0] ?? '')
    return isSignOut ? ranks.signOut : ranks.signedIn
  }
}

/** The seconds after which a client may try again. */
const retryAfter = 1

/** Writes the whole answer of a refused request. */
function createRefusal({ gateway }: Config, idOf: ReturnType<typeof requestId>) {
  const envelope = createEnvelope(gateway.envelope)
  const error = new GatewayError('overloaded', { retryAfter })
  const generalStatus = gateway.envelope.errorStatus === 'ok' ? 200 : error.status
  const status = envelope.statusOf(error.code) ?? generalStatus
  const headers = {
    ...standardHeaders(gateway.session.cookie.secure),
    'content-type': envelope.errorType,
    'retry-after': String(retryAfter)
  }

  return function refuse(request: IncomingMessage, response: ServerResponse): void {
    const id = idOf(request)
    const text = JSON.stringify(envelope.failure(error, id))
    const length = Buffer.byteLength(text)
    response
      .writeHead(status, {
        ...headers,
        'x-request-id': id,
        'content-length': length,
        // The unread rest of a request's body would be parsed as the next request.
        ...(isBodyPending(request) && { connection: 'close' })
      })
      .end(text)
  }
}

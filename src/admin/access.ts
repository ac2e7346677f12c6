/**
 * Access to the operators' listener: everybody may call a few paths; the operators' secret opens
 * all of them, and so does an operator's session on the listener's own page.
 */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ErrorCode, GatewayError } from '../errors/errors.ts'
import { refuseBrowsers } from './browser-guard.ts'
import { type Guard, refuseWithoutSecret } from './guard.ts'
import { isOwnName, probePaths } from './hosts.ts'
import { type FoundOperator, type Operator, secretOperator } from './operator.ts'
import { sessionIdOf } from './operator-cookie.ts'

interface Options {
  readonly guard: Guard
  /** `console_ops`, with its prefix. */
  readonly cookie: string
  /** `ops.hosts`. */
  readonly hosts: readonly string[]
  /** The operator of the session with this secret id. */
  readonly findOperator: (secretId: string) => Promise<FoundOperator>
  readonly log: { readonly warn: (fields: object, message: string) => void }
}

/** Guesses of the secret are told once in this time, so that they do not fill the log. */
const quietMs = 60_000

type Check = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>

/** A hook that refuses requests without an operator, and sets `request.operator` of others. */
export function createAccess({ guard, cookie, hosts, findOperator, log }: Options): Check {
  const listed = new Set(hosts.map(host => host.toLowerCase()))
  const isSecure = cookie.startsWith('__Host-')
  const tellRefused = createRefusalLog(log)

  return async function checkAccess(request, reply) {
    const { url = '', config } = request.routeOptions
    if (url === '/healthz') return
    const isOwn = isOwnName(request.host, listed)
    if (guard.isOperator(request.headers)) {
      request.operator = secretOperator
      // Scrapers and probes may call by any name: see the check of hosts.
      if (!probePaths.has(url) && config.isOpen !== true) refuseBrowsers(request, isOwn)
      return
    }
    // Before the cookie and open paths are looked at: neither may hide that somebody guesses.
    if (isGuess(request.headers.authorization)) tellRefused(request.ip)
    const fault = faultOfPage(request, isOwn, isSecure)
    const secretId = sessionIdOf(request.headers.cookie, cookie)
    const isOpen = config.isOpen === true || guard.isOpen(url)
    if (config.isOpen === true && fault !== undefined) throw new GatewayError(fault)
    request.operatorSession = fault === undefined ? secretId : undefined
    if (secretId === undefined) {
      if (isOpen) return
      return await refuseWithoutSecret(reply)
    }
    if (fault === undefined) {
      request.operator = await operatorOf(secretId, findOperator, isOpen, config.isPage)
    } else if (!isOpen) throw new GatewayError(fault)
  }
}

/** Other schemes, such as the Basic of a proxy in front, are not meant for the gateway. */
function isGuess(authorization = ''): boolean {
  return /^bearer /i.test(authorization)
}

/** One line a minute, with the number of wrong secrets since the last one. */
function createRefusalLog(log: Options['log']): (address: string) => void {
  let quietUntil = -Infinity
  let refused = 0
  return address => {
    refused++
    if (performance.now() < quietUntil) return
    quietUntil = performance.now() + quietMs
    log.warn({ event: 'ops.refused', address, refused }, 'a wrong operators’ secret was sent')
    refused = 0
  }
}

/** @throws GatewayError unless the path is open: there the operator only sees more */
async function operatorOf(
  secretId: string,
  find: Options['findOperator'],
  isOpen: boolean,
  isPage = false
): Promise<Operator | undefined> {
  const operator = await find(secretId)
  if (operator !== 'none' && operator !== 'unavailable') return operator
  // A page does not ask for a password because Redis is away.
  if (isOpen && !(isPage && operator === 'unavailable')) return undefined
  throw new GatewayError(operator === 'none' ? 'ops.session' : 'session.unavailable')
}

/**
 * Why a request by the cookie is not taken as one of the listener's own page. Cookies do not know
 * ports: browsers send this one from pages on other ports of the host too.
 */
function faultOfPage(
  request: FastifyRequest,
  isOwn: boolean,
  isSecure: boolean
): ErrorCode | undefined {
  const { origin, 'sec-fetch-site': site, 'content-type': type = '' } = request.headers
  const { isOpen, isPage } = request.routeOptions.config
  if (!isOwn) return 'ops.host'
  // Past the proxy that ends TLS, a password would cross the network in clear.
  const isEncrypted = !isSecure || request.protocol === 'https'
  const isSameOrigin = origin === `${request.protocol}://${request.host}`
  if (request.method === 'GET' || request.method === 'HEAD') {
    // Pages may be linked from anywhere; no other site can read or frame them.
    if (isOpen === true) return undefined
    if (!isEncrypted) return 'ops.origin'
    const isForeign = site !== undefined && site !== 'same-origin' && site !== 'none'
    return isForeign || (origin !== undefined && !isSameOrigin) ? 'ops.origin' : undefined
  }
  if (!isSameOrigin || !isEncrypted) return 'ops.origin'
  const wanted =
    isPage === true ? /^application\/x-www-form-urlencoded(?:;|$)/i : /^application\/json(?:;|$)/i
  return wanted.test(type) ? undefined : 'request.type'
}

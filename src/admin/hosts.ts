/**
 * The host names of the operators' listener, against DNS rebinding: a page whose own name leads to
 * our address must read nothing.
 */
import { isIP } from 'node:net'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { canMeet, isHttp1, soleHost } from '../app/hooks/request-policy.ts'
import { GatewayError } from '../errors/errors.ts'

interface Options {
  /** `ops.hosts`. */
  readonly hosts: readonly string[]
  readonly log: { readonly warn: (fields: object, message: string) => void }
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number
}

/** Paths of scrapers and probes. All others have stricter rules, but `/healthz` reveals nothing. */
export const probePaths: ReadonlySet<string> = new Set(['/readyz', '/metrics', '/openapi.json'])
const dayMs = 86_400_000
const maxShownName = 100

/**
 * A hook for the operators' listener. An IP address, `localhost`, a single-label name (`gateway`)
 * and `ops.hosts` are allowed. A browser that uses another name gets 421. Other clients are
 * answered, with one warning a day, since scrapers and probes use names that config need not list.
 */
export function createHostCheck({ hosts, log, now = () => performance.now() }: Options) {
  const listed = new Set(hosts.map(host => host.toLowerCase()))
  let quietUntil = -Infinity
  return async function checkHost({ headers, routeOptions }: FastifyRequest): Promise<void> {
    if (!probePaths.has(routeOptions.url ?? '')) return
    const name = hostName(headers.host).toLowerCase()
    if (isIP(name) !== 0 || !name.includes('.') || listed.has(name)) return
    const isFromPage = [headers.origin, headers.referer, headers['sec-fetch-site']].some(
      field => field !== undefined
    )
    if (isFromPage) throw new GatewayError('ops.host')
    if (now() < quietUntil) return
    quietUntil = now() + dayMs
    log.warn(
      { event: 'ops.host', host: name.slice(0, maxShownName) },
      'the operators’ listener was called by a name that ops.hosts does not list; ' +
        'it answered, since no browser sent the request. Add the name to ops.hosts'
    )
  }
}

/** An onRequest hook: a proxy on the way may have read these requests in another way than Node. */
export async function refuseAmbiguous(
  { raw, headers }: FastifyRequest,
  reply: FastifyReply
): Promise<void> {
  const hasSeveralHosts = headers.host !== undefined && soleHost(raw.rawHeaders) === undefined
  // A target that names a host wins over `Host` (RFC 9112 §3.2.2), which the checks read.
  const isClear = !hasSeveralHosts && isHttp1(raw) && raw.url?.startsWith('/') === true
  if (isClear && canMeet(raw)) return
  reply.header('connection', 'close')
  if (isClear) throw new GatewayError('request.expectation')
  const message = 'The request has several Host headers. Send one.'
  throw new GatewayError('request.malformed', hasSeveralHosts ? { message } : {})
}

/** Whether a page of another site cannot have the name of this `Host`. */
export function isOwnName(host: string | undefined, listed: ReadonlySet<string>): boolean {
  const name = hostName(host).toLowerCase()
  return isIP(name) !== 0 || name === 'localhost' || listed.has(name)
}

/** The name in a `Host` header, without port and brackets. */
function hostName(host = '') {
  return host.replace(/:\d+$/, '').replace(/^\[|\]$/g, '')
}

/** The data of a client that upstreams get in headers. */
import type { FastifyRequest } from 'fastify'
import type { ForwardedFor } from '../../proxy/headers.ts'
import { clientAddress } from './address.ts'
import { liveSession } from './session.ts'

/** The value of `X-Forwarded-Host` for upstreams; undefined sends none. */
export type ForwardedHost = (request: FastifyRequest) => string | undefined

/**
 * @param hosts `server.hosts`: without any, no name was vetted and none is passed on
 * @param ports `server.ports`: a port that is neither one of them nor the listener's own is
 * dropped,
 *   since the client chose it and back-ends put it into links
 */
export function createForwardedHost(
  hosts: readonly string[],
  ports: readonly number[]
): ForwardedHost {
  if (hosts.length === 0) return () => undefined
  const allowedPorts = new Set(ports)
  return ({
    raw: {
      headers: { host = '' },
      socket
    }
  }) => {
    const [whole = '', port] = /:(\d+)$/.exec(host) ?? []
    if (port === undefined) return host
    const isKnown = allowedPorts.has(Number(port)) || Number(port) === socket.localPort
    return isKnown ? host : host.slice(0, -whole.length)
  }
}

export function forwardedForOf(
  request: FastifyRequest,
  forwardedHost: ForwardedHost
): ForwardedFor {
  return {
    address: clientAddress(request),
    // Behind a trusted proxy it is the text of a header, and may be anything.
    protocol: request.protocol === 'https' ? 'https' : 'http',
    host: forwardedHost(request),
    requestId: request.id,
    session: liveSession(request)
  }
}

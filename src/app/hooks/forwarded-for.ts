/** The data of a client that upstreams get in headers. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ForwardedFor } from '../../proxy/request-headers.ts'
import { clientAddress } from './address.ts'

/**
 * The value of `X-Forwarded-Host` for upstreams; undefined sends none.
 * @param hosts `server.hosts`: without any, no name was vetted and none is passed on
 *   A port that is neither listed with the name nor the listener's own is dropped, since the client
 *   chose it and back-ends put it into links.
 */
export function createForwardedHost(hosts: readonly string[]) {
  const listed = new Set(hosts.map(host => host.toLowerCase()))
  return ({ raw: { headers, socket } }: FastifyRequest): string | undefined => {
    if (hosts.length === 0) return undefined
    const { host = '' } = headers
    const [whole = '', port = 0] = /:(\d+)$/.exec(host) ?? []
    if (whole === '' || Number(port) === socket.localPort) return host
    return listed.has(host.toLowerCase()) ? host : host.slice(0, -whole.length)
  }
}

/**
 * Proxies write `HTTPS`, or `wss` for a WebSocket. The header itself is made one of two, because
 * `request.protocol` gives it as it is, also to plugins.
 */
export function readForwardedProto(app: FastifyInstance): void {
  app.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const sent = headers['x-forwarded-proto']
    if (typeof sent === 'string') headers['x-forwarded-proto'] = protocolIn(sent)
    done()
  })
}

/** The last one is that of the proxy next to the gateway. */
function protocolIn(list: string): 'https' | 'http' {
  const protocol = list.slice(list.lastIndexOf(',') + 1).trim()
  return /^(?:https|wss)$/i.test(protocol) ? 'https' : 'http'
}

export function forwardedForOf(request: FastifyRequest): ForwardedFor {
  return {
    address: clientAddress(request),
    protocol: request.protocol === 'https' ? 'https' : 'http',
    host: request.server.gateway.forwardedHost(request),
    requestId: request.id,
    session: request.live?.session
  }
}

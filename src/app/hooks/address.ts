/** The client's address: as proxies send it, as limits count it, and as upstreams get it. */
import { BlockList, isIP } from 'node:net'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { memoized } from '../../bounded-map.ts'
import { isLoopback, splitPublicHost } from '../../config/schema/host-port.ts'
import type { ForwardedFor } from '../../proxy/request-headers.ts'

type Request = Pick<FastifyRequest, 'ip' | 'ips'> & { address?: string | undefined }

/**
 * Without the port that some load balancers append. Where a proxy sends no address, such as
 * `unknown`, that of the nearest proxy counts: clients must not choose what limits count by.
 */
export function clientAddress(request: Request): string {
  const { ip, ips } = request
  request.address ??= addressIn(ip) ?? ips?.map(addressIn).findLast(Boolean) ?? ''
  return request.address
}

function addressIn(text = ''): string | undefined {
  if (isIP(text) !== 0) return text
  const address = splitPublicHost(text).name.replace(/^\[|\]$/g, '')
  return isIP(address) === 0 ? undefined : address
}

export function createTrust(blocks: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList()
  for (const block of blocks) {
    const [address = '', bits] = block.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) trusted.addAddress(address, family)
    else trusted.addSubnet(address, Number(bits), family)
  }
  return memoized(text => {
    const version = isIP(text)
    // A block list ignores the zone that link-local addresses may have.
    return version !== 0 && trusted.check(text, version === 6 ? 'ipv6' : 'ipv4')
  })
}

/** perf: an IPv6 address takes 6 µs. */
const toCounted = memoized(address => normalizeIP(address, 64))

/** IPv4, also mapped to IPv6, as it is; of IPv6 the network: a customer usually has a /64. */
export function countedAddress(request: Request): string {
  const address = clientAddress(request)
  // It is empty once the socket is closed.
  return address === '' ? 'gone' : toCounted(address)
}

/**
 * `X-Forwarded-Host` for upstreams, of vetted names only. A port that is neither listed nor the
 * listener's is dropped: the client chose it, and back-ends put it into links.
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

/** The origin that the browser called: https where the cookie needs it, also if no proxy tells. */
export function publicOrigin({ headers, protocol, server }: FastifyRequest): string {
  const { host = '' } = headers
  const isHttps = server.gateway.cookie.options.secure && !isLoopback(splitPublicHost(host).name)
  return originOf(isHttps ? 'https' : protocol, host)
}

/** As browsers and providers write it: a proxy may name the usual port. */
export function originOf(protocol: string, host: string): string {
  return URL.parse(`${protocol}://${host}`)?.origin ?? ''
}

/** Proxies write `HTTPS`, or `wss`; `request.protocol` gives the header as it is. */
export function readForwardedProto(app: FastifyInstance): void {
  app.addHook('onRequest', ({ raw: { headers } }, _reply, done) => {
    const sent = headers['x-forwarded-proto']
    // The last one is that of the proxy next to the gateway.
    if (sent === undefined) return done()
    const protocol = String(sent).split(',').at(-1)?.trim() ?? ''
    headers['x-forwarded-proto'] = /^(?:https|wss)$/i.test(protocol) ? 'https' : 'http'
    done()
  })
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

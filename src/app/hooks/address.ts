/** The address of a client, and its form that limits count by. */
import { BlockList, isIP } from 'node:net'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { memoized, ownText, recentlyUsed } from '../../bounded-map.ts'

const withPort = /^(?:\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5})$/

type Request = Pick<FastifyRequest, 'ip' | 'ips'> & { address?: string | undefined }

/**
 * The client's address as trusted proxies send it, else the socket's; without the port that some
 * load balancers append. A proxy may send a text that is not an address, such as `unknown`: then
 * the address of the proxy nearest to the client counts, since clients must not choose the text
 * that limits count by. Empty when the socket is closed, so it is computed once for each request.
 */
export function clientAddress(request: Request): string {
  request.address ??= addressIn(request.ip) ?? nearestProxy(request.ips)
  return request.address
}

/** `ips` begins with the socket's address; the client's is the last. */
function nearestProxy(ips: readonly string[] | null | undefined) {
  return (ips ?? []).map(addressIn).findLast(address => address !== undefined) ?? ''
}

function addressIn(text: string | undefined): string | undefined {
  if (text === undefined) return undefined
  if (isIP(text) !== 0) return text
  const [, six, four] = withPort.exec(text) ?? []
  const address = six ?? four ?? ''
  return isIP(address) === 0 ? undefined : address
}

const maxCached = 5000

/** Tells whether an address is in `server.trustedProxies`. */
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

/** A customer usually has a /64. */
const ipv6Prefix = 64
/** perf: an IPv6 address takes 6 µs. */
const countedAddresses = recentlyUsed<string>(maxCached)

/**
 * Limits count an IPv4 address as it is, also when it is mapped to IPv6. Of an IPv6 address they
 * count the leading bits, since a customer has a whole network.
 */
export function countedAddress(request: Request): string {
  const address = clientAddress(request)
  // It is empty once the socket is closed.
  if (address === '') return 'gone'
  const cached = countedAddresses.get(address)
  if (cached !== undefined) return cached
  // Limits keep their keys for as long as they count: a copy does not hold on to the header.
  const counted = normalizeIP(ownText(address), ipv6Prefix)
  countedAddresses.set(address, counted)
  return counted
}

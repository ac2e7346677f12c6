/** The address of a client, and what of it limits count. */
import { BlockList, isIP } from 'node:net'
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import { ownText } from '../../session/recently-used.ts'

const withPort = /^(?:\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5})$/

type Request = Pick<FastifyRequest, 'ip' | 'ips'> & { address?: string | undefined }

/**
 * As trusted proxies tell it, else the socket's; without the port that some load balancers append.
 * Where a proxy names something that is no address, such as `unknown`, the nearest proxy that has
 * one: nobody may choose a text to be counted by. Empty where the socket is gone. Found out once
 * for each request: a socket loses its address when it closes.
 */
export function clientAddress(request: Request): string {
  request.address ??= addressIn(request.ip) ?? nearestProxy(request.ips)
  return request.address
}

/** `ips` begins at the socket and goes away from us. */
function nearestProxy(ips: readonly string[] | null | undefined) {
  return (ips ?? []).map(addressIn).findLast(address => address !== undefined) ?? ''
}

function addressIn(given: string | undefined): string | undefined {
  if (given === undefined) return undefined
  if (isIP(given) !== 0) return given
  const [, six, four] = withPort.exec(given) ?? []
  const address = six ?? four ?? ''
  return isIP(address) === 0 ? undefined : address
}

const maxKnown = 10_000
/** The longest that an address can be, so that nobody makes us keep more. */
const maxLength = 45

/**
 * Whether an address is a load balancer's that config names; Fastify asks for each on the way.
 * Known ones are not looked at again.
 */
export function createTrust(blocks: readonly string[]): (address: string) => boolean {
  const trusted = new BlockList()
  for (const block of blocks) {
    const [address = '', bits] = block.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) trusted.addAddress(address, family)
    else trusted.addSubnet(address, Number(bits), family)
  }
  const known = new Map<string, boolean>()
  return given => {
    let found = known.get(given)
    if (found === undefined) {
      // Without the zone that link-local addresses may have.
      const [address = ''] = given.split('%', 1)
      const version = isIP(address)
      found = version !== 0 && trusted.check(address, version === 6 ? 'ipv6' : 'ipv4')
      if (given.length > maxLength) return found
      if (known.size >= maxKnown) known.clear()
      known.set(ownText(given), found)
    }
    return found
  }
}

/**
 * What limits count: IPv4 as it is, also in its IPv6 dress; of an IPv6 address so many leading
 * bits, since a customer has a whole network of them.
 */
export function createCountedAddress(ipv6Prefix: number): (request: Request) => string {
  const known = new Map<string, string>()
  return request => {
    const given = clientAddress(request)
    let found = known.get(given)
    if (found === undefined) {
      // Keys of limits hold it for as long as they are counted.
      const address = ownText(given)
      // A socket that is gone has no address any more.
      found = address === '' ? 'gone' : normalizeIP(address, ipv6Prefix)
      if (known.size >= maxKnown) known.clear()
      known.set(address, found)
    }
    return found
  }
}

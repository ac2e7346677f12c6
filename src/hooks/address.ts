/** The address of a client, and what of it limits count. */
import { normalizeIP } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'

const withPort = /^(?:\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5})$/

/** As trusted proxies tell it, else the socket's; without the port that some load balancers append. Empty where the socket is gone. */
export function clientAddress ({ ip }: Pick<FastifyRequest, 'ip'>): string {
  const given = ip as string | undefined
  if (given === undefined) return ''
  const [, six, four] = withPort.exec(given) ?? []
  return six ?? four ?? given
}

const maxKnown = 10_000

/** What limits count: IPv4 as it is, also in its IPv6 dress; of an IPv6 address so many leading bits, since a customer has a whole network of them. */
export function createCountedAddress (ipv6Prefix: number): (request: Pick<FastifyRequest, 'ip'>) => string {
  const known = new Map<string, string>()
  return request => {
    const { ip } = request
    let found = known.get(ip)
    if (found === undefined) {
      const address = clientAddress(request)
      // A socket that is gone has no address any more.
      found = address === '' ? 'gone' : normalizeIP(address, ipv6Prefix)
      if (known.size >= maxKnown) known.clear()
      known.set(ip, found)
    }
    return found
  }
}

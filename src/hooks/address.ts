/** The address of a client. */
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
const known = new Map<string, string>()

/** What limits count: IPv4 as it is, also in its IPv6 dress; of an IPv6 address the /64, which is what one customer has. */
export function addressKey (request: Pick<FastifyRequest, 'ip'>): string {
  const { ip } = request
  let key = known.get(ip)
  if (key === undefined) {
    const address = clientAddress(request)
    // A socket that is gone has no address any more.
    key = address === '' ? 'gone' : normalizeIP(address, 64)
    if (known.size >= maxKnown) known.clear()
    known.set(ip, key)
  }
  return key
}

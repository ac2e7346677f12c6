/** The address of a client. */
import type { FastifyRequest } from 'fastify'

const withPort = /^(?:\[([0-9A-Fa-f:.]+)\](?::\d{1,5})?|(\d{1,3}(?:\.\d{1,3}){3}):\d{1,5})$/

/** As trusted proxies tell it, else the socket's; without the port that some load balancers append. Empty where the socket is gone. */
export function clientAddress ({ ip }: Pick<FastifyRequest, 'ip'>): string {
  const given = ip as string | undefined
  if (given === undefined) return ''
  const [, six, four] = withPort.exec(given) ?? []
  return six ?? four ?? given
}

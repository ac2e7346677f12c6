/** Requests to the listener for plain http are only redirected to https. */
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyRequest } from 'fastify'
import { splitPublicHost } from '../../config/schema/host-port.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Gateway } from '../gateway.ts'
import type { RequestHook } from './context.ts'

const plainSockets = new WeakSet<Socket>()

/** From now on what comes to this listener is redirected. */
export function redirectAll(server: Server): void {
  server.on('connection', (socket: Socket) => plainSockets.add(socket))
}

export function isRedirected({ raw }: FastifyRequest): boolean {
  return plainSockets.has(raw.socket)
}

/** A hook after the request policy, which lets only names of the config pass. */
export function redirectToHttps({ config }: Gateway): RequestHook {
  const origins = new Map(config.gateway.server.hosts.map(originOf))
  return function toHttps(request, reply, done) {
    if (!isRedirected(request)) return done()
    const { name } = splitPublicHost((request.headers.host ?? '').toLowerCase())
    // The body of any other request has been sent in the clear: repeating it would hide that.
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return done(new GatewayError('route.method', { headers: { allow: 'GET, HEAD' } }))
    }
    reply.header('connection', 'close').redirect(`${origins.get(name)}${request.raw.url}`, 308)
  }
}

function originOf(host: string): [name: string, origin: string] {
  const { name, port = 443 } = splitPublicHost(host.toLowerCase())
  return [name, `https://${name}${port === 443 ? '' : `:${port}`}`]
}

/** The Fastify instance of one generation, and the one way in which it answers errors. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import Fastify, { LogController, type FastifyInstance } from 'fastify'
import { createTrust, readForwardedProto } from './hooks/address.ts'
import { createErrorHandler } from './hooks/errors.ts'
import { schemaController } from './hooks/validation.ts'
import type { Gateway } from './gateway.ts'

/** Of a request, its target among them; Node's parser refuses more. */
export const maxHeaderSize = 16 * 1024
const unreadable = '//'

export function createFastify(gateway: Gateway): FastifyInstance {
  const { config, log } = gateway
  const { trustedProxies } = config.gateway.server
  const trust = trustedProxies.length > 0 ? createTrust(trustedProxies) : undefined
  const app = Fastify({
    // Without a logger of its own, Fastify listens to responses only where an onResponse hook is.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId'
    }),
    trustProxy: trust ?? false,
    childLoggerFactory: (_none, bindings) => log.child(bindings),
    requestIdHeader: false,
    genReqId: requestId(trust),
    exposeHeadRoutes: false,
    bodyLimit: config.limits.sizes.body,
    schemaController,
    // The router would answer what it cannot read by itself, before any hook.
    rewriteUrl: ({ url = '' }) => (isReadable(url) ? url : unreadable),
    routerOptions: { maxParamLength: maxHeaderSize },
    // A build yields to requests, so plugins may take their time.
    pluginTimeout: 0
  })
  app.log = log
  app.decorate('gateway', gateway)
  if (trust !== undefined) readForwardedProto(app)
  app.setErrorHandler(createErrorHandler(gateway))
  return app
}

function isReadable(target: string): boolean {
  if (!target.startsWith('/')) return false
  if (!target.includes('%')) return true
  try {
    decodeURI(target.split('?', 1)[0] ?? '')
    return true
  } catch {
    return false
  }
}

/** A client that bypasses the load balancer must not choose the id that stands in the log. */
function requestId(
  trust?: (address: string) => boolean
): (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string {
  return ({ headers, socket }) => {
    const id = headers['x-request-id']
    if (typeof id !== 'string' || trust?.(socket.remoteAddress ?? '') !== true) return randomUUID()
    return /^[A-Za-z0-9_.-]{8,64}$/.test(id) ? id : randomUUID()
  }
}

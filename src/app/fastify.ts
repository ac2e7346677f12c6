/** The Fastify instance of one generation, and the one way in which it answers errors. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import Fastify, {
  LogController,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest
} from 'fastify'
import { toGatewayError } from '../errors/errors.ts'
import { createTrust } from './hooks/address.ts'
import { setCorsHeaders } from './hooks/cors.ts'
import { createErrorHandler, recordUnrouted } from './hooks/errors.ts'
import { readForwardedProto } from './hooks/address.ts'
import { Trail } from '../observability/trail.ts'
import { schemaController } from './hooks/validation.ts'
import { setStandardHeaders } from './hooks/sending.ts'
import type { Gateway } from './gateway.ts'

export function createFastify(gateway: Gateway): FastifyInstance {
  const { config, log } = gateway
  const { trustedProxies } = config.gateway.server
  const trust = trustedProxies.length > 0 ? createTrust(trustedProxies) : undefined
  const answerError = createErrorHandler(gateway)
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
    // The router cannot decode the path, so no hook runs: headers and log line are set here.
    frameworkErrors: (error, request: FastifyRequest, reply: FastifyReply) => {
      request.trail = new Trail(request.id, request.method, request.raw.url ?? '', request.ip)
      setStandardHeaders(reply)
      setCorsHeaders(reply)
      answerError(error, request, reply)
      recordUnrouted(gateway, request.trail, toGatewayError(error).code)
    },
    routerOptions: { maxParamLength: config.limits.sizes.url },
    // A build yields to requests, so plugins may take their time.
    pluginTimeout: 0
  })
  app.log = log
  app.decorate('gateway', gateway)
  if (trust !== undefined) readForwardedProto(app)
  app.setErrorHandler(answerError)
  return app
}

/**
 * An id from outside is taken only from a trusted load balancer, and only if it is well-formed: a
 * client that bypasses the load balancer must not choose what stands in the log.
 */
function requestId(
  trust?: (address: string) => boolean
): (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string {
  return ({ headers, socket }) => {
    const id = headers['x-request-id']
    if (typeof id !== 'string' || trust?.(socket.remoteAddress ?? '') !== true) return randomUUID()
    return /^[A-Za-z0-9_.-]{8,64}$/.test(id) ? id : randomUUID()
  }
}

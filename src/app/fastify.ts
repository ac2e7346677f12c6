/** The Fastify instance of one generation, and the one way in which it answers errors. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import Fastify, {
  LogController,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest
} from 'fastify'
import { ownRoutes } from '../config/schema/own-endpoints.ts'
import { toGatewayError } from '../errors.ts'
import { createTrust } from './hooks/address.ts'
import { setCorsHeaders } from './hooks/cors.ts'
import { errorHandler } from './hooks/errors.ts'
import { readForwardedProto } from './hooks/forwarded-for.ts'
import { requestLog } from './hooks/request-log.ts'
import { recordUnrouted } from './hooks/unrouted.ts'
import { schemaController } from './hooks/validation.ts'
import { type StandardHeaders, setStandardHeaders } from './hooks/sending.ts'
import type { AppContext } from './context.ts'

/** @param headers the standard headers of every response */
export function createFastify(
  { config, services, metrics, envelope }: AppContext,
  headers: StandardHeaders
): FastifyInstance {
  const { gateway, limits } = config
  const { log } = services
  const trustedProxies = gateway.server.trustedProxies
  const trust = trustedProxies.length > 0 ? createTrust(trustedProxies) : undefined
  const answerError = errorHandler({
    envelope,
    errorStatus: gateway.envelope.errorStatus,
    extraOf: (request, error) =>
      request.routeOptions.config.route === ownRoutes.profile.name && error.status === 401
        ? envelope.notSignedIn
        : undefined,
    onError: metrics.onError,
    shed: services.shed
  })
  const app = Fastify({
    // Without a logger of its own, Fastify listens to responses only where an onResponse hook is.
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId'
    }),
    trustProxy: trust ?? false,
    childLoggerFactory: (_none, bindings) => requestLog(log, String(bindings.requestId)),
    requestIdHeader: false,
    genReqId: requestId(trust),
    exposeHeadRoutes: false,
    bodyLimit: limits.sizes.body,
    schemaController,
    // The router cannot decode the path, so no hook runs: headers and log line are set here.
    frameworkErrors: (error, request, reply) => {
      setStandardHeaders(request, reply, headers)
      setCorsHeaders(request, reply, gateway.server)
      answerError(error, request as FastifyRequest, reply as FastifyReply)
      recordUnrouted(services, {
        requestId: request.id,
        code: toGatewayError(error).code,
        address: request.ip,
        method: request.raw.method,
        target: request.raw.url
      })
    },
    routerOptions: { maxParamLength: limits.sizes.url },
    // A build yields to requests, so plugins may take their time.
    pluginTimeout: 0
  })
  app.log = log
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

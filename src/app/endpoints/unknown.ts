/**
 * Requests that no route takes: 405 for another method of a known path, the page for an address of
 * the console, otherwise 404.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import type { RequestHook } from '../hooks/context.ts'
import { opensPage, sendPage } from './console.ts'
import type { KnownPaths } from './known-paths.ts'

const doubledBase =
  'There is nothing at this address. The console’s base URL ends in /api, and its paths begin with ' +
  '/api too: leave it out of the base URL.'

/** To be added after all routes. */
export function addUnknown(
  app: FastifyInstance,
  knownPaths: KnownPaths,
  checkLimits: RequestHook
): void {
  const { config, mount } = app.gateway
  const hasConsole = config.gateway.console !== undefined
  // The nearest path decides alone: a method that it does not take must not reach a wider `/*`.
  app.register(async scope => {
    for (const [url, method] of knownPaths.lostMethods()) {
      scope.route({ url, method, handler: (_request, reply) => reply.callNotFound() })
    }
  })
  const isPage = (request: FastifyRequest) => hasConsole && opensPage(request, mount)
  app.setNotFoundHandler(
    {
      preHandler: (request, reply, done) =>
        isPage(request) ? done() : checkLimits(request, reply, done)
    },
    (request, reply) => {
      const target = request.raw.url ?? ''
      const allowed = knownPaths.methodsAt(target)
      if (allowed !== undefined) {
        // RFC 9110 §15.5.6
        throw new GatewayError('route.method', { headers: { allow: [...allowed].join(', ') } })
      }
      if (isPage(request)) return sendPage(reply)
      const isDoubled = target.startsWith(`${mount}/api/api/`)
      throw new GatewayError('route.unknown', isDoubled ? { message: doubledBase } : {})
    }
  )
}

/** What no route takes: another method of a known path is 405, the console's own address its page, anything else 404. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors.ts'
import type { LimitsHook } from '../hooks/limits.ts'
import { opensPage, sendPage } from './console.ts'
import { collectMethods } from './known-paths.ts'

interface Options {
  readonly checkLimits: LimitsHook
  /** What stands before every public path. */
  readonly mount: string
  readonly hasConsole: boolean
}

/** After all routes. */
export function addUnknown(
  app: FastifyInstance,
  { checkLimits, mount, hasConsole }: Options
): void {
  const knownPaths = collectMethods(app)
  // The nearer path decides alone: what it does not take must not fall to a `/*` around it.
  app.register(async scope => {
    scope.addHook('onRequest', checkLimits)
    for (const [url, methods] of knownPaths.lostMethods()) {
      scope.route({
        url,
        method: methods,
        handler: request => {
          throw refused(knownPaths.methodsAt(request.raw.url ?? ''))
        }
      })
    }
  })
  const isPage = (request: FastifyRequest) => hasConsole && opensPage(request, mount)
  app.setNotFoundHandler(
    {
      preHandler: (
        request: FastifyRequest,
        reply: FastifyReply,
        done: (error?: Error) => void
      ): void => (isPage(request) ? done() : checkLimits(request, reply, done))
    },
    (request, reply) => {
      const target = request.raw.url ?? ''
      const allowed = knownPaths.methodsAt(target)
      if (allowed !== undefined) throw refused(allowed)
      if (isPage(request)) return sendPage(reply)
      const message = target.startsWith(`${mount}/api/api/`)
        ? 'There is nothing at this address. The console’s base URL ends in /api, and its paths begin with /api too: leave it out of the base URL.'
        : undefined
      throw new GatewayError('route.unknown', message === undefined ? {} : { message })
    }
  )
}

/** RFC 9110 §15.5.6 */
function refused(allowed: ReadonlySet<string> = new Set()) {
  return new GatewayError('route.method', { headers: { allow: [...allowed].join(', ') } })
}

/** Routes that are closed for a while, for most. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { MaintenanceConfig } from '../../config/schema/maintenance.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { GatewayError } from '../../errors.ts'
import { liveSession } from './session.ts'
import { gate } from './gate.ts'

interface Options {
  readonly config: MaintenanceConfig
  /** What is closed where config names nothing. */
  readonly routes: readonly string[]
  readonly now?: () => number
}

/** A hook behind the guard: who may not pass anyway is told that, and not to come back later. */
export function createMaintenance({ config, routes, now = Date.now }: Options) {
  const closed = new Set(config.routes.length > 0 ? config.routes : routes)
  const methods = new Set(withHead(config.methods))
  const end = config.until === undefined ? Infinity : Date.parse(config.until)
  const { message, until } = config

  function refuseClosed(
    request: FastifyRequest,
    _reply: FastifyReply,
    done: (error?: Error) => void
  ): void {
    const { route } = request.routeOptions.config
    if (
      route === undefined ||
      !closed.has(route) ||
      (methods.size > 0 && !methods.has(request.method))
    ) {
      return done()
    }
    const left = end - now()
    if (left <= 0) return done()
    if (
      config.allowRoles.length > 0 &&
      liveSession(request)?.identity.roles.some(role => config.allowRoles.includes(role)) === true
    ) {
      return done()
    }
    done(
      new GatewayError('maintenance', {
        retryAfter: (left === Infinity ? config.retryAfter : left) / 1000,
        ...(message !== undefined && { message }),
        ...(until !== undefined && { extra: { until } })
      })
    )
  }
  return gate('maintenance', refuseClosed)
}

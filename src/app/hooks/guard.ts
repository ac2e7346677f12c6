/** Checks a route's access and whether it is closed, and marks the session as used. */
import type { FastifyReply } from 'fastify'
import type { Config } from '../../config/schema/config.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Closing } from '../../services/maintenance.ts'
import { secondsLeft } from '../../session/describe.ts'
import type { Live, Session } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import type { Access, RequestHook } from './context.ts'
import { sessionError } from './session.ts'

/** By the route's `access`; marks the session as used unless the route's `touch` is false. */
export function createGuard({ sessions }: Gateway): RequestHook {
  return function guard(request, reply, done) {
    const { access = 'session', touch = true, credentialFrom } = request.routeConfig
    if (access === 'public') return done()
    const live = request.live
    if (live === undefined) return done(sessionError(request))
    if (typeof access !== 'string' && !mayUse(access, live.session)) {
      request.trail.needsRoles = access.roles
      return done(new GatewayError('route.forbidden'))
    }
    if (credentialFrom !== undefined && live.session.source !== credentialFrom) {
      return done(new GatewayError('route.credential'))
    }
    // Lists tell of the last use of a key, whatever it was for.
    if (touch || live.session.key !== undefined) sessions.use(live)
    setTimeLeft(reply, live)
    done()
  }
}

export function mayUse(access: Access, { identity: { roles } }: Session): boolean {
  return typeof access === 'string' || access.roles.some(role => roles.includes(role))
}

export function setTimeLeft(reply: FastifyReply, live: Live): void {
  reply
    .header('x-session-idle-in', secondsLeft(Math.min(live.idleEnd, live.absoluteEnd)))
    .header('x-session-absolute-in', secondsLeft(live.absoluteEnd))
}

/**
 * @param routes of config: a closing that names none closes them all
 * @returns what closes a route; of several the one that ends last
 */
export function closingOf(
  closings: readonly Closing[],
  routes: Config['routes']['routes'],
  { route, method }: Readonly<Record<'route' | 'method', string>>,
  session: Session | undefined
): Closing | undefined {
  if (closings.length === 0) return undefined
  // Nobody's roles are known on public routes.
  const roles = session?.identity.roles ?? []
  const isClosedBy = ({ routes: named, methods, from, until, allowRoles }: Closing): boolean =>
    (named.length > 0 ? named.includes(route) : Object.hasOwn(routes, route)) &&
    (methods.length === 0 || withHead(methods).includes(method)) &&
    (from === undefined || Date.now() >= Date.parse(from)) &&
    Date.now() < Date.parse(until) &&
    !allowRoles.some(role => roles.includes(role))
  const inForce = closings.filter(isClosedBy)
  return inForce.toSorted((a, b) => Date.parse(a.until) - Date.parse(b.until)).at(-1)
}

/** A hook after the guard: a request without access is refused as such, without `Retry-After`. */
export function createMaintenance({ config, maintenance }: Gateway): RequestHook {
  return function refuseClosed(request, _reply, done) {
    const { trail, live } = request
    const closing = closingOf(maintenance.current, config.routes.routes, trail, live?.session)
    if (closing === undefined) return done()
    const { message, until } = closing
    const retryAfter = (Date.parse(until) - Date.now()) / 1000
    const detail = { retryAfter, extra: { until }, ...(message !== undefined && { message }) }
    done(new GatewayError('maintenance', detail))
  }
}

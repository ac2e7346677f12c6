/**
 * Checks a route's access and whether operators closed it, marks the session as used, and sends its
 * remaining time.
 */
import type { FastifyReply } from 'fastify'
import type { Config } from '../../config/schema/config.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Closing } from '../../services/maintenance.ts'
import { secondsLeft } from '../../session/describe.ts'
import type { Live, Session } from '../../session/types.ts'
import type { Gateway, OperatorsMaintenance } from '../gateway.ts'
import { type Access, type RequestHook, unknownRoute } from './context.ts'
import { sessionError } from './session.ts'

/**
 * A hook that lets requests pass by the route's `access`, and marks their session as used unless
 * the route's `touch` is false.
 */
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
    setTimeLeft(reply, live, sessions.now())
    done()
  }
}

/** Whether the user of a session may call a route. */
export function mayUse(access: Access, { identity: { roles } }: Session): boolean {
  return typeof access === 'string' || access.roles.some(role => roles.includes(role))
}

/** @param now by the clock of the sessions */
export function setTimeLeft(
  reply: FastifyReply,
  { absoluteEnd, idleEnd }: Live,
  now: number
): void {
  reply
    .header('x-session-idle-in', secondsLeft(Math.min(idleEnd, absoluteEnd), now))
    .header('x-session-absolute-in', secondsLeft(absoluteEnd, now))
}

/** @returns what closes a route; of several the one that ends last */
export type ClosingOf = (
  route: string,
  method: string,
  session: Session | undefined
) => Closing | undefined

export function createClosings(
  { routes: { routes } }: Pick<Config, 'routes'>,
  operators?: OperatorsMaintenance
): ClosingOf {
  return (route, method, session) => {
    const closings = operators?.current ?? []
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
}

/** A hook after the guard: a request without access is refused as such, without `Retry-After`. */
export function createMaintenance({ config, maintenance: operators }: Gateway): RequestHook {
  const closingOf = createClosings(config, operators)
  return function refuseClosed(request, _reply, done) {
    const { route = unknownRoute } = request.routeConfig
    const closing = closingOf(route, request.method, request.live?.session)
    done(closing && errorOf(closing))
  }
}

function errorOf({ message, until }: Closing): GatewayError {
  return new GatewayError('maintenance', {
    retryAfter: (Date.parse(until) - Date.now()) / 1000,
    ...(message !== undefined && { message }),
    extra: { until }
  })
}

/** Closes routes for a time, except for roles that the operator names. */
import { withHead } from '../../config/schema/public-path.ts'
import type { Config } from '../../config/schema/config.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Closing } from '../../services/maintenance.ts'
import type { Session } from '../../session/types.ts'
import type { Gateway, OperatorsMaintenance } from '../gateway.ts'
import { type RequestHook, unknownRoute } from './context.ts'

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

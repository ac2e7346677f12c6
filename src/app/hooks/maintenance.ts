/** Closes routes for a time, except for roles that the operator names. */
import { withHead } from '../../config/schema/public-path.ts'
import type { Config } from '../../config/schema/config.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Closing } from '../../services/closing.ts'
import type { Session } from '../../session/types.ts'
import type { Gateway, OperatorsMaintenance } from '../gateway.ts'
import { type RequestHook, unknownRoute } from './context.ts'

/** The reason why a route is closed, and for how long. */
interface Refusal {
  readonly closing: Closing
  readonly msLeft: number
}

/** @returns the refusal of a request; undefined where the route is open */
export type RefusalOf = (
  route: string,
  method: string,
  session: Session | undefined
) => Refusal | undefined

export function createClosings(
  { routes: { routes } }: Pick<Config, 'routes'>,
  operators?: OperatorsMaintenance
): RefusalOf {
  const isRoute = (name: string) => Object.hasOwn(routes, name)

  function msLeft(closing: Closing, route: string, method: string): number {
    const { methods, from, until } = closing
    const isNamed = closing.routes.length > 0 ? closing.routes.includes(route) : isRoute(route)
    if (!isNamed || (methods.length > 0 && !withHead(methods).includes(method))) return 0
    if (from !== undefined && Date.now() < Date.parse(from)) return 0
    return Math.max(0, Date.parse(until) - Date.now())
  }

  return (route, method, session) => {
    // Nobody's roles are known on public routes.
    const roles = session?.identity.roles ?? []
    let longest: Refusal | undefined
    for (const closing of operators?.current ?? []) {
      if (closing.allowRoles.some(role => roles.includes(role))) continue
      const ms = msLeft(closing, route, method)
      if (ms > (longest?.msLeft ?? 0)) longest = { closing, msLeft: ms }
    }
    return longest
  }
}

/** A hook after the guard: a request without access is refused as such, without `Retry-After`. */
export function createMaintenance({ config, maintenance: operators }: Gateway): RequestHook {
  const refusalOf = createClosings(config, operators)
  return function refuseClosed(request, _reply, done) {
    const { route = unknownRoute } = request.routeConfig
    const refusal = refusalOf(route, request.method, request.live?.session)
    done(refusal && errorOf(refusal))
  }
}

function errorOf({ closing: { message, until }, msLeft }: Refusal): GatewayError {
  return new GatewayError('maintenance', {
    retryAfter: msLeft / 1000,
    ...(message !== undefined && { message }),
    extra: { until }
  })
}

/** Closes routes for a time, except for roles that config or the operator names. */
import type { Closing } from '../../config/schema/maintenance.ts'
import { withHead } from '../../config/schema/public-path.ts'
import type { RoutesConfig } from '../../config/schema/routes.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Session } from '../../session/types.ts'
import type { Gateway, OperatorsMaintenance } from '../gateway.ts'
import { type RequestHook, unknownRoute } from './context.ts'

/** The reason why a route is closed, and for how long. */
interface Refusal {
  readonly config: Closing
  readonly msLeft: number
}

/** @returns the refusal of a request; undefined where the route is open */
export type RefusalOf = (
  route: string,
  method: string,
  session: Session | undefined
) => Refusal | undefined

/** By the maintenance of config and that of operators, which may be in force together. */
export function createClosings(
  { routes, maintenance }: Pick<RoutesConfig, 'routes' | 'maintenance'>,
  operators?: OperatorsMaintenance
): RefusalOf {
  const ofConfig = maintenance === undefined ? [] : [maintenance]
  const isRoute = (name: string) => Object.hasOwn(routes, name)

  function msLeft(closing: Closing, route: string, method: string): number {
    const { methods, from, until } = closing
    const isNamed = closing.routes.length > 0 ? closing.routes.includes(route) : isRoute(route)
    if (!isNamed || (methods.length > 0 && !withHead(methods).includes(method))) return 0
    if (from !== undefined && Date.now() < Date.parse(from)) return 0
    return until === undefined ? Infinity : Math.max(0, Date.parse(until) - Date.now())
  }

  return (route, method, session) => {
    // Nobody's roles are known on public routes.
    const roles = session?.identity.roles ?? []
    let longest: Refusal | undefined
    for (const config of [...ofConfig, ...(operators?.current ?? [])]) {
      if (config.allowRoles.some(role => roles.includes(role))) continue
      const ms = msLeft(config, route, method)
      if (ms > (longest?.msLeft ?? 0)) longest = { config, msLeft: ms }
    }
    return longest
  }
}

/** A hook after the guard: a request without access is refused as such, without `Retry-After`. */
export function createMaintenance({ config, maintenance: operators }: Gateway): RequestHook {
  const refusalOf = createClosings(config.routes, operators)
  return function refuseClosed(request, _reply, done) {
    const { route = unknownRoute } = request.routeConfig
    const refusal = refusalOf(route, request.method, request.live?.session)
    done(refusal && errorOf(refusal))
  }
}

/** Of a closing without an end. */
const retryAfterMs = 60_000

function errorOf({ config: { message, until }, msLeft }: Refusal): GatewayError {
  return new GatewayError('maintenance', {
    retryAfter: (msLeft === Infinity ? retryAfterMs : msLeft) / 1000,
    ...(message !== undefined && { message }),
    ...(until !== undefined && { extra: { until } })
  })
}

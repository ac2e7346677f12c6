/** Closes routes for a time, except for roles that config or the operator names. */
import type { Closing, MaintenanceConfig } from '../../config/schema/maintenance.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Session } from '../../session/record.ts'
import type { Gateway, OperatorsMaintenance } from '../gateway.ts'
import type { RequestHook } from './context.ts'
import { liveSession } from './session.ts'

interface ClosureOptions {
  readonly config: Closing
  /** The routes that are closed when config names none. */
  readonly routes: readonly string[]
  readonly now?: (() => number) | undefined
}

/** The closed routes, the end of their closing, and the roles that may use them meanwhile. */
class Closure {
  readonly config: MaintenanceConfig
  readonly #routes: ReadonlySet<string>
  readonly #methods: ReadonlySet<string>
  readonly #start: number
  readonly #end: number
  readonly #now: () => number

  constructor({ config, routes, now = Date.now }: ClosureOptions) {
    this.config = config
    this.#routes = new Set(config.routes.length > 0 ? config.routes : routes)
    this.#methods = new Set(withHead(config.methods))
    this.#start = config.from === undefined ? 0 : Date.parse(config.from)
    this.#end = config.until === undefined ? Infinity : Date.parse(config.until)
    this.#now = now
  }

  /** @returns the milliseconds that the route stays closed; 0 for an open one */
  msLeft(route: string | undefined, method: string): number {
    if (route === undefined || !this.#routes.has(route)) return 0
    if (this.#methods.size > 0 && !this.#methods.has(method)) return 0
    const now = this.#now()
    return now < this.#start ? 0 : Math.max(0, this.#end - now)
  }

  /** Whether somebody goes on working all the same; nobody's roles are known on public routes. */
  isOpenTo(session: Session | undefined): boolean {
    const { allowRoles } = this.config
    return (
      allowRoles.length > 0 &&
      session?.identity.roles.some(role => allowRoles.includes(role)) === true
    )
  }
}

interface Options {
  /** `maintenance` of routes.yaml. */
  readonly config: MaintenanceConfig | undefined
  /** The names of all routes. */
  readonly routes: readonly string[]
  readonly operators?: OperatorsMaintenance | undefined
  readonly now?: () => number
}

interface Refusal {
  readonly config: MaintenanceConfig
  readonly msLeft: number
}

/** The maintenance of config and that of operators, which may be in force together. */
export class Closures {
  readonly #byConfig: Closure | undefined
  readonly #routes: readonly string[]
  readonly #operators: OperatorsMaintenance | undefined
  /** The operators' maintenance that `#byOperators` was made of. */
  #compiled: readonly MaintenanceConfig[] = []
  #byOperators: readonly Closure[] = []

  constructor({ config, routes, operators, now }: Options) {
    this.#byConfig = config && new Closure({ config, routes, now })
    this.#routes = routes
    this.#operators = operators
  }

  get areNone(): boolean {
    return this.#byConfig === undefined && (this.#operators?.current.length ?? 0) === 0
  }

  /** Of several that refuse, the one that stays longest. */
  refusalOf(
    route: string | undefined,
    method: string,
    session: Session | undefined
  ): Refusal | undefined {
    let refusal: Refusal | undefined
    for (const closure of [this.#byConfig, ...this.#operatorsClosures()]) {
      const msLeft = closure?.msLeft(route, method) ?? 0
      if (closure === undefined || msLeft <= (refusal?.msLeft ?? 0)) continue
      if (!closure.isOpenTo(session)) refusal = { config: closure.config, msLeft }
    }
    return refusal
  }

  #operatorsClosures(): readonly Closure[] {
    const { current = this.#compiled, now } = this.#operators ?? {}
    if (current !== this.#compiled) {
      this.#compiled = current
      this.#byOperators = current.map(config => new Closure({ config, routes: this.#routes, now }))
    }
    return this.#byOperators
  }
}

/** A hook after the guard: a request without access is refused as such, without `Retry-After`. */
export function createMaintenance({
  config,
  maintenance: operators
}: Gateway): RequestHook | undefined {
  const { maintenance, routes } = config.routes
  // In a dry run nobody can close a route.
  if (maintenance === undefined && operators === undefined) return undefined
  const closures = new Closures({ config: maintenance, routes: Object.keys(routes), operators })

  return function refuseClosed(request, _reply, done) {
    if (closures.areNone) return done()
    const { route } = request.routeConfig
    const refusal = closures.refusalOf(route, request.method, liveSession(request))
    done(refusal && errorOf(refusal))
  }
}

function errorOf({ config: { message, until, retryAfter }, msLeft }: Refusal): GatewayError {
  return new GatewayError('maintenance', {
    retryAfter: (msLeft === Infinity ? retryAfter : msLeft) / 1000,
    ...(message !== undefined && { message }),
    ...(until !== undefined && { extra: { until } })
  })
}

/** Closes routes for a time, except for roles that config names. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { MaintenanceConfig } from '../../config/schema/maintenance.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { GatewayError } from '../../errors.ts'
import type { Session } from '../../session/record.ts'
import { liveSession } from './session.ts'
import { gate } from './gate.ts'

interface Options {
  readonly config: MaintenanceConfig
  /** The routes that are closed when config names none. */
  readonly routes: readonly string[]
  readonly now?: () => number
}

/** The closed routes, the end of their closing, and the roles that may use them meanwhile. */
export class Closure {
  readonly #routes: ReadonlySet<string>
  readonly #methods: ReadonlySet<string>
  readonly #allowRoles: readonly string[]
  readonly #end: number
  readonly #now: () => number

  constructor({ config, routes, now = Date.now }: Options) {
    this.#routes = new Set(config.routes.length > 0 ? config.routes : routes)
    this.#methods = new Set(withHead(config.methods))
    this.#allowRoles = config.allowRoles
    this.#end = config.until === undefined ? Infinity : Date.parse(config.until)
    this.#now = now
  }

  /** @returns the milliseconds that the route stays closed; 0 for an open one */
  msLeft(route: string | undefined, method: string): number {
    if (route === undefined || !this.#routes.has(route)) return 0
    if (this.#methods.size > 0 && !this.#methods.has(method)) return 0
    return Math.max(0, this.#end - this.#now())
  }

  /** Whether somebody goes on working all the same; nobody's roles are known on public routes. */
  isOpenTo(session: Session | undefined): boolean {
    return (
      this.#allowRoles.length > 0 &&
      session?.identity.roles.some(role => this.#allowRoles.includes(role)) === true
    )
  }
}

/** A hook after the guard: a request without access is refused as such, without `Retry-After`. */
export function createMaintenance(options: Options) {
  const { message, until, retryAfter } = options.config
  const closure = new Closure(options)

  function refuseClosed(
    request: FastifyRequest,
    _reply: FastifyReply,
    done: (error?: Error) => void
  ): void {
    const left = closure.msLeft(request.routeOptions.config.route, request.method)
    if (left === 0 || closure.isOpenTo(liveSession(request))) return done()
    done(
      new GatewayError('maintenance', {
        retryAfter: (left === Infinity ? retryAfter : left) / 1000,
        ...(message !== undefined && { message }),
        ...(until !== undefined && { extra: { until } })
      })
    )
  }
  return gate('maintenance', refuseClosed)
}

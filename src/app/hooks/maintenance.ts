/** Routes that are closed for a while, for most. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { MaintenanceConfig } from '../../config/schema/maintenance.ts'
import { withHead } from '../../config/schema/public-path.ts'
import { GatewayError } from '../../errors.ts'
import type { Session } from '../../session/record.ts'
import { liveSession } from './session.ts'
import { gate } from './gate.ts'

interface Options {
  readonly config: MaintenanceConfig
  /** What is closed where config names nothing. */
  readonly routes: readonly string[]
  readonly now?: () => number
}

/** Which routes are closed, for how long, and for whom they stay open. */
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

  /** @returns for how long the route is closed for most; 0 where it is open */
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

/** A hook behind the guard: who may not pass anyway is told that, and not to come back later. */
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

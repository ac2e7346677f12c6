/**
 * The hooks that may refuse a request, made from one generation's config. `app.ts` puts them in
 * order.
 */
import type { FastifyInstance } from 'fastify'
import { createGuard } from './hooks/guard.ts'
import { createKnownBrowsers } from './hooks/known-browser.ts'
import { registerRateLimit } from './hooks/limiters.ts'
import { createLimits, type LimitsHook } from './hooks/limits.ts'
import { createMaintenance } from './hooks/maintenance.ts'
import { sameOrigin } from './hooks/same-origin.ts'
import { createSignInGuard, type SignInGuard } from './hooks/sign-in-guard.ts'
import type { AppContext } from './context.ts'

export interface Checks {
  readonly checkOrigin: ReturnType<typeof sameOrigin>
  readonly checkLimits: LimitsHook
  readonly guard: ReturnType<typeof createGuard>
  /** Undefined where no route can be closed. */
  readonly refuseClosed: ReturnType<typeof createMaintenance> | undefined
  readonly signInGuard: SignInGuard
}

/** @param app gets the rate-limit plugin, which counts requests */
export async function createChecks(
  app: FastifyInstance,
  { config, services, metrics, cookie }: AppContext
): Promise<Checks> {
  const { gateway, limits, routes } = config
  const { onRefused, onLocked } = metrics
  const { maintenance } = routes
  const operators = services.maintenance
  await registerRateLimit(app, services.counts)
  return {
    checkOrigin: sameOrigin(gateway.server.origins),
    checkLimits: createLimits(app, {
      config: limits,
      counts: services.counts,
      highestUse: services.highestUse,
      inFlight: services.inFlight,
      onRefused
    }),
    guard: createGuard({ sessions: services.sessions, sendsTimeLeft: gateway.session.headers }),
    refuseClosed:
      maintenance === undefined && operators === undefined
        ? undefined
        : createMaintenance({
            config: maintenance,
            routes: Object.keys(routes.routes),
            operators
          }),
    signInGuard: createSignInGuard({
      config: limits,
      lockouts: services.lockouts,
      knownBrowsers: limits.lockout.knownBrowser
        ? createKnownBrowsers({ cookie, secrets: services.secrets })
        : undefined,
      onRefused,
      onLocked
    })
  }
}

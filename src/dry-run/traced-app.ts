/** A request rehearsed: the real app without sockets answers it, and every hook on its way tells what it decided. */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import type { Config } from '../config/schema/config.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import type { Access } from '../app/hooks/context.ts'
import type { Counters } from '../limits/counting/counters.ts'
import type { Leases } from '../limits/counting/leases.ts'
import { createMemoryLockouts } from '../limits/lockout/memory-lockouts.ts'
import type { Rule, Verdict } from '../limits/counting/rules.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import {
  type OfflineResponse,
  type UpstreamRequest,
  createOfflineApp,
  type OfflineApp,
  type OfflineRequest
} from './offline-app.ts'

/** What is counted already, as far as it is known. */
export interface CurrentCounts {
  readonly verdictOf: (rule: Rule) => Verdict | undefined
  readonly inFlight: Readonly<Record<string, number>>
}

export interface Traced {
  readonly answer: OfflineResponse
  /** The error that was answered; undefined for none, and where the request never reached the app. */
  readonly error: GatewayError | undefined
  /** The hooks that were asked, in order, by their functions' names. */
  readonly trace: ReadonlyArray<{ readonly hook: string; readonly error: GatewayError | undefined }>
  /** Where the router led; undefined for a request that never reached a hook. */
  readonly at:
    | {
        readonly url: string | undefined
        readonly route: string | undefined
        readonly upstream: string | undefined
        readonly access: Access | undefined
        readonly maxBody: number | undefined
        readonly touch: boolean
      }
    | undefined
  /** The limits that were asked, sign-in attempts apart. */
  readonly rules: readonly Rule[]
  /** Keys of the counters of sign-in attempts that were asked. */
  readonly attempts: readonly string[]
  readonly asked: readonly UpstreamRequest[]
}

export interface PublicPath {
  readonly method: string
  /** With what stands before every path. */
  readonly url: string
  readonly route: string
}

export interface TracedApp {
  readonly signIn: OfflineApp['signIn']
  /** One at a time. */
  readonly run: (request: OfflineRequest, present?: CurrentCounts) => Promise<Traced>
  /** All that the router knows. */
  readonly paths: readonly PublicPath[]
  readonly close: () => Promise<void>
}

const nothing: CurrentCounts = { verdictOf: () => undefined, inFlight: {} }

/** @param source vouches for sign-ins */
export async function createTracedApp(
  config: Config,
  source: CredentialSource
): Promise<TracedApp> {
  let present = nothing
  let seen: {
    request?: FastifyRequest
    error?: GatewayError
    rules: readonly Rule[]
    trace: Array<Traced['trace'][number]>
    asked: UpstreamRequest[]
    attempts: string[]
  } = { rules: [], trace: [], asked: [], attempts: [] }
  const paths: PublicPath[] = []
  const inFlight = new Map<string, number>()

  const leases: Leases = {
    tryLocally: rules => {
      seen.rules = rules
      return rules.map(
        rule =>
          present.verdictOf(rule) ?? {
            exceeded: false,
            remaining: rule.burst - 1,
            resetMs: rule.windowMs,
            retryMs: 0
          }
      )
    },
    acquire: async () => [],
    inspect: async () => [],
    forget: () => {},
    close: async () => {}
  }
  const counters: Counters = {
    hit: async (key, windowMs) => {
      seen.attempts.push(key)
      return { current: 1, ttl: windowMs }
    },
    refund: async () => {},
    look: async () => ({ current: 0, ttl: 0 }),
    forget: async () => {},
    close: () => {}
  }

  /** Every hook that is added from now on tells its name and what it says; what it does stays as it is. */
  function watch(app: FastifyInstance): void {
    const { addHook } = app as unknown as {
      readonly addHook: (this: FastifyInstance, name: string, hook: unknown) => FastifyInstance
    }
    app.addHook('onRequest', (request, _reply, done) => {
      seen.request = request
      done()
    })
    app.addHook('onError', (_request, _reply, error, done) => {
      seen.error = toGatewayError(error)
      done()
    })
    app.addHook('onRoute', ({ method, url, config: { route } = {} }) => {
      if (route !== undefined)
        for (const each of [method].flat()) paths.push({ method: each, url, route })
    })
    app.addHook = function (this: FastifyInstance, name: string, hook: onRequestHookHandler) {
      return addHook.call(this, name, name === 'onRequest' && hook.length === 3 ? told(hook) : hook)
    } as never
  }

  function told(hook: onRequestHookHandler): onRequestHookHandler {
    return function (request, reply, done) {
      hook.call(this, request, reply, error => {
        seen.trace.push({
          hook: hook.name,
          error: error === undefined ? undefined : toGatewayError(error)
        })
        if (error === undefined) done()
        else done(error)
      })
    }
  }

  const lockouts = createMemoryLockouts()
  const app = await createOfflineApp(config, {
    counters,
    leases,
    lockouts,
    source,
    inFlight,
    watch,
    onUpstreamRequest: asked => {
      seen.asked.push(asked)
    }
  })
  return {
    signIn: app.signIn,
    paths,
    close: async () => {
      await app.close()
      lockouts.close()
    },
    run: async (request, given = nothing) => {
      present = given
      inFlight.clear()
      for (const [name, count] of Object.entries(given.inFlight)) inFlight.set(name, count)
      seen = { rules: [], trace: [], asked: [], attempts: [] }
      const answer = await app.ask(request)
      const { config: at, url } = seen.request?.routeOptions ?? {}
      return {
        answer,
        error: seen.error,
        trace: seen.trace,
        at: at && {
          url,
          route: at.route,
          upstream: at.upstream,
          access: at.access,
          maxBody: at.maxBody,
          touch: at.touch ?? true
        },
        rules: seen.rules,
        attempts: seen.attempts,
        asked: seen.asked
      }
    }
  }
}

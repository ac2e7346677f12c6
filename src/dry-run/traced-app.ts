/** The real app without sockets, with a trace of each request: gates, limits and upstream calls. */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { fromRouterPath } from '../config/schema/public-path.ts'
import type { Config } from '../config/schema/config.ts'
import type { MaintenanceConfig } from '../config/schema/maintenance.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { clientAddress } from '../app/hooks/address.ts'
import type { Access } from '../app/hooks/context.ts'
import type { OperatorsMaintenance } from '../app/hooks/maintenance.ts'
import { type GateStep, stepOfGate } from '../app/hooks/gate.ts'
import type { Counters } from '../limits/counting/counters.ts'
import type { Leases } from '../limits/counting/leases.ts'
import { createMemoryLockouts } from '../limits/lockout/memory-lockouts.ts'
import type { Rule, Verdict } from '../limits/counting/rules.ts'
import type { CredentialSource } from '../login/credential-source.ts'
import {
  type OfflineResponse,
  type RecordedRequest,
  createOfflineApp,
  type OfflineApp,
  type OfflineRequest
} from './offline-app.ts'

/** The state of a running gateway, as far as it is known. */
export interface CurrentState {
  readonly verdictOf: (rule: Rule) => Verdict | undefined
  readonly inFlight: Readonly<Record<string, number>>
  /** That operators began. */
  readonly maintenance: readonly MaintenanceConfig[]
}

export interface Traced {
  readonly answer: OfflineResponse
  /** The error of the response; undefined without one, and if the request never reached the app. */
  readonly error: GatewayError | undefined
  /** The gates that decided, in order. */
  readonly trace: ReadonlyArray<{
    readonly step: GateStep
    readonly error: GatewayError | undefined
  }>
  /** The client's, which is not the socket's behind a trusted proxy; undefined as `at`. */
  readonly address: string | undefined
  /** The router's choice; undefined for a request that never reached a hook. */
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
  /** The limits that were checked, without those of sign-in attempts. */
  readonly rules: readonly Rule[]
  /** Keys of the counters of sign-in attempts that were checked. */
  readonly attempts: readonly string[]
  readonly asked: readonly RecordedRequest[]
}

export interface PublicPath {
  readonly method: string
  /** With the mount. */
  readonly url: string
  readonly route: string
}

export interface TracedApp {
  readonly signIn: OfflineApp['signIn']
  /** One at a time. */
  readonly run: (request: OfflineRequest, current?: CurrentState) => Promise<Traced>
  /** All paths of the router. */
  readonly paths: readonly PublicPath[]
  readonly close: () => Promise<void>
}

const nothing: CurrentState = {
  verdictOf: () => undefined,
  inFlight: {},
  maintenance: []
}

/** The observations of one request. */
interface Observed {
  request?: FastifyRequest
  address?: string
  error?: GatewayError
  rules: readonly Rule[]
  readonly trace: Array<Traced['trace'][number]>
  readonly asked: RecordedRequest[]
  readonly attempts: string[]
}

const noneObserved = (): Observed => ({ rules: [], trace: [], asked: [], attempts: [] })

/** The request that runs, shared by the app's stand-ins. */
interface Run {
  observed: Observed
  current: CurrentState
}

/** @param source verifies sign-ins */
export async function createTracedApp(
  config: Config,
  source: CredentialSource
): Promise<TracedApp> {
  const run: Run = { observed: noneObserved(), current: nothing }
  const paths: PublicPath[] = []
  const inFlight = new Map<string, number>()
  const lockouts = createMemoryLockouts()
  const maintenance: OperatorsMaintenance = { current: [], now: Date.now }
  const app = await createOfflineApp(config, {
    counters: tracedCounters(run),
    leases: tracedLeases(run),
    lockouts,
    source,
    inFlight,
    maintenance,
    watch: instance => {
      observeRequests(instance, run)
      collectPaths(instance, paths)
      traceGates(instance, run)
    },
    onUpstreamRequest: asked => {
      run.observed.asked.push(asked)
    }
  })
  return {
    signIn: app.signIn,
    paths,
    close: async () => {
      await app.close()
      lockouts.close()
    },
    run: async (request, current = nothing) => {
      run.current = current
      run.observed = noneObserved()
      inFlight.clear()
      for (const [name, count] of Object.entries(current.inFlight)) inFlight.set(name, count)
      maintenance.current = current.maintenance
      const answer = await app.ask(request)
      return tracedFrom(run.observed, answer)
    }
  }
}

function tracedFrom(
  { request, address, error, trace, rules, attempts, asked }: Observed,
  answer: OfflineResponse
): Traced {
  const { config: at, url } = request?.routeOptions ?? {}
  return {
    answer,
    error,
    trace,
    address,
    at: at && {
      url,
      route: at.route,
      upstream: at.upstream,
      access: at.access,
      maxBody: at.maxBody,
      touch: at.touch ?? true
    },
    rules,
    attempts,
    asked
  }
}

/** Leases that record the rules and return the verdicts of the running gateway. */
function tracedLeases(run: Run): Leases {
  return {
    tryLocally: rules => {
      run.observed.rules = rules
      return rules.map(
        rule =>
          run.current.verdictOf(rule) ?? {
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
}

/** Counters that record the keys of sign-in attempts and count nothing. */
function tracedCounters(run: Run): Counters {
  return {
    hit: async (key, windowMs) => {
      run.observed.attempts.push(key)
      return { current: 1, ttl: windowMs }
    },
    refund: async () => {},
    look: async () => ({ current: 0, ttl: 0 }),
    forget: async () => {},
    close: () => {}
  }
}

function observeRequests(app: FastifyInstance, run: Run): void {
  app.addHook('onRequest', (request, _reply, done) => {
    run.observed.request = request
    run.observed.address = clientAddress(request)
    done()
  })
  app.addHook('onError', (_request, _reply, error, done) => {
    run.observed.error = toGatewayError(error)
    done()
  })
}

function collectPaths(app: FastifyInstance, paths: PublicPath[]): void {
  app.addHook('onRoute', ({ method, url, config: { route } = {} }) => {
    if (route === undefined) return
    for (const each of [method].flat()) {
      paths.push({ method: each, url: fromRouterPath(url), route })
    }
  })
}

/** Each gate added from now on records its step and its error in the trace. */
function traceGates(app: FastifyInstance, run: Run): void {
  const { addHook } = app as unknown as {
    readonly addHook: (this: FastifyInstance, name: string, hook: object) => FastifyInstance
  }
  app.addHook = function (this: FastifyInstance, name: string, hook: onRequestHookHandler) {
    const step = name === 'onRequest' ? stepOfGate(hook) : undefined
    return addHook.call(this, name, step === undefined ? hook : tracedGate(hook, step, run))
  } as never
}

function tracedGate(hook: onRequestHookHandler, step: GateStep, run: Run): onRequestHookHandler {
  return function (request, reply, done) {
    hook.call(this, request, reply, error => {
      const thrown = error === undefined ? undefined : toGatewayError(error)
      run.observed.trace.push({ step, error: thrown })
      if (error === undefined) done()
      else done(error)
    })
  }
}

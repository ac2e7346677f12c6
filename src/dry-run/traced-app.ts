/** The real app without sockets, with a trace of each request: gates, limits and upstream calls. */
import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify'
import { fromRouterPath } from '../config/schema/public-path.ts'
import type { Config } from '../config/schema/config.ts'
import type { MaintenanceConfig } from '../config/schema/maintenance.ts'
import { type GatewayError, toGatewayError } from '../errors.ts'
import { clientAddress } from '../app/hooks/address.ts'
import type { Access } from '../app/hooks/context.ts'
import { type GateStep, stepOfGate } from '../app/hooks/gate.ts'
import { createMemoryLockouts } from '../limits/lockouts.ts'
import { SharedCounts } from '../limits/shared-counts.ts'
import type { TrailRule } from '../observability/trail.ts'
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
  /** The limits that were checked. */
  readonly rules: readonly TrailRule[]
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

const nothing: CurrentState = { maintenance: [] }

/** The observations of one request. */
interface Observed {
  request?: FastifyRequest
  address?: string
  error?: GatewayError
  readonly trace: Array<Traced['trace'][number]>
  readonly asked: RecordedRequest[]
}

const noneObserved = (): Observed => ({ trace: [], asked: [] })

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
  const counts = new SharedCounts(undefined)
  const maintenance = { current: nothing.maintenance, now: Date.now }
  const app = await createOfflineApp(config, {
    counts,
    lockouts: createMemoryLockouts(),
    source,
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
      await counts.close()
    },
    run: async (request, current = nothing) => {
      run.current = current
      run.observed = noneObserved()
      counts.clear()
      maintenance.current = current.maintenance
      const answer = await app.ask(request)
      return tracedFrom(run.observed, answer)
    }
  }
}

function tracedFrom(
  { request, address, error, trace, asked }: Observed,
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
    rules: request?.trail.rules ?? [],
    asked
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

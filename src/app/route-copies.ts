/**
 * A route's upstream where one call may serve several requests. Each is a layer around `dispatch`,
 * left out where the route does not ask for it.
 */
import type { Metrics } from '../observability/metrics.ts'
import type { Upstream } from '../proxy/upstream.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import { copyKey, readsWithout } from './copy-key.ts'
import { ProxiedExchange } from './endpoints/exchange.ts'
import { liveOf } from './hooks/session.ts'
import { type Dispatch, SharedCalls } from './shared-calls.ts'

type CopyConfig = Pick<RouteConfig, 'upstream' | 'coalesce' | 'doubleClicks'>

export interface Copies {
  readonly calls: SharedCalls
  readonly onUsed: (route: string, use: CopyUse) => void
}

/** Outlives generations. */
export function createCopies(metrics: Metrics): Copies {
  const used = metrics.counter(
    'console_gateway_copies_used_total',
    'Requests that were answered without a call of their own to the upstream, by route and why.',
    ['route', 'use']
  )
  return {
    calls: new SharedCalls(),
    onUsed: (route, use) => used.with(route, use).inc()
  }
}

/** How a request was answered without a call of its own. */
export type CopyUse = 'shared'

interface Target {
  readonly upstream: Upstream
  readonly upstreamName: string
}

/** The routes of one config, each with the upstream as it calls it. */
export class CopyingRoutes {
  readonly #copies: Copies
  /** Upstreams with routes whose reads may be answered from others'. */
  readonly #readShared: ReadonlySet<string | undefined>
  /** One for all routes of an upstream: each upstream object is registered by itself. */
  readonly #withChanges = new Map<string, Upstream>()

  constructor(routes: Readonly<Record<string, CopyConfig>>, copies: Copies) {
    this.#copies = copies
    const shared = Object.values(routes).filter(({ coalesce }) => coalesce)
    this.#readShared = new Set(shared.map(({ upstream }) => upstream))
  }

  /** Wraps the upstream of a route, where it or another route of that upstream asks for it. */
  apply<T extends Target>(
    route: string,
    { coalesce, doubleClicks }: CopyConfig,
    target: T
  ): T & { readonly isCopied: boolean } {
    const { upstream, upstreamName } = target
    const isCopied = coalesce || doubleClicks === 'share'
    const areReadsShared = this.#readShared.has(upstreamName)
    if (isCopied) {
      const options = { route, upstreamName, coalesce, doubleClicks }
      const sharing = {
        ...upstream,
        dispatch: shareCalls(upstream.dispatch, options, this.#copies)
      }
      return {
        ...target,
        isCopied,
        upstream: areReadsShared ? this.#noteChanges(sharing) : sharing
      }
    }
    if (!areReadsShared) return { ...target, isCopied }
    const noting = this.#withChanges.get(upstreamName) ?? this.#noteChanges(upstream)
    this.#withChanges.set(upstreamName, noting)
    return { ...target, isCopied, upstream: noting }
  }

  /** A change separates the reads before it from those after it. */
  #noteChanges(upstream: Upstream): Upstream {
    const { calls } = this.#copies
    const dispatch: Dispatch = (request, exchange, done) => {
      const live = exchange instanceof ProxiedExchange ? liveOf(exchange.request) : undefined
      if (live === undefined || isSafe(request.method)) {
        return upstream.dispatch(request, exchange, done)
      }
      const { key } = live
      calls.separateReads(key)
      upstream.dispatch(request, exchange, (error, response) => {
        calls.separateReads(key)
        done(error, response)
      })
    }
    return { ...upstream, dispatch }
  }
}

interface SharingOptions {
  readonly route: string
  readonly upstreamName: string
  readonly coalesce: boolean
  readonly doubleClicks: 'run' | 'share'
}

function shareCalls(
  dispatch: Dispatch,
  { route, upstreamName, coalesce, doubleClicks }: SharingOptions,
  { calls, onUsed }: Copies
): Dispatch {
  const scope = `${upstreamName} ${route}`
  return function dispatchShared(request, exchange, done) {
    const isRead = request.method === 'GET'
    const isShared = isRead ? coalesce : doubleClicks === 'share' && !isSafe(request.method)
    if (!isShared || !(exchange instanceof ProxiedExchange)) {
      return dispatch(request, exchange, done)
    }
    const live = liveOf(exchange.request)
    const { body } = exchange
    // Without a session, or with a body that is streamed, nothing is shared.
    const isWhole = body === null || typeof body === 'string' || Buffer.isBuffer(body)
    if (live === undefined || !isWhole || (isRead && body !== null)) {
      return dispatch(request, exchange, done)
    }
    const key = copyKey(scope, live, exchange, isRead ? readsWithout : undefined)
    const shared = { dispatch, key, session: live.key, request, exchange, done }
    if (calls.send(shared)) onUsed(route, 'shared')
  }
}

function isSafe(method: string): boolean {
  return method === 'GET' || method === 'HEAD' || method === 'OPTIONS'
}

/**
 * A route's upstream where one call may serve several requests. Each is a layer around `dispatch`,
 * left out where the route does not ask for it.
 */
import { createHash } from 'node:crypto'
import { isSafe } from '../proxy/call.ts'
import type { Upstream } from '../proxy/upstream.ts'
import { firstUrlOf } from '../config/schema/upstream-addresses.ts'
import type { RouteConfig } from '../config/schema/routes.ts'
import { copyKey, readsWithout } from './copy-key.ts'
import type { GatewayError } from '../errors.ts'
import type { UpstreamResponse } from '../proxy/response.ts'
import { type KeepOptions, keepReads, targetOf } from './kept-reads.ts'
import { ResponseCopies } from './response-copies.ts'
import { ProxiedExchange } from './endpoints/exchange.ts'
import { liveOf } from './hooks/session.ts'
import { type Dispatch, SharedCalls } from './shared-calls.ts'

type CopyConfig = Pick<
  RouteConfig,
  | 'upstream'
  | 'shape'
  | 'parts'
  | 'coalesce'
  | 'doubleClicks'
  | 'cache'
  | 'cacheMaxAge'
  | 'fallback'
>

export interface Copies {
  readonly calls: SharedCalls
  readonly store: ResponseCopies
  readonly onUsed: (route: string, use: CopyUse) => void
}

/** Outlives generations. */
export function createCopies(options: ConstructorParameters<typeof ResponseCopies>[0]): Copies {
  const { metrics } = options
  const used = metrics.counter(
    'console_gateway_copies_used_total',
    'Requests that were answered without a call of their own to the upstream, by route and why.',
    ['route', 'use']
  )
  return {
    calls: new SharedCalls(),
    store: new ResponseCopies(options),
    onUsed: (route, use) => used.with(route, use).inc()
  }
}

/** The ways in which a request is answered without a call of its own. */
export type CopyUse = 'shared' | 'fresh' | 'validated' | 'stale' | 'fixed'

interface Target {
  readonly upstream: Upstream
  readonly upstreamName: string
}

/** The routes of one config, each with the upstream as it calls it. */
export class CopyingRoutes {
  readonly #copies: Copies
  /** Upstreams with reads that may be answered without asking them each time. */
  readonly #copied: ReadonlySet<string | undefined>
  /** One for all routes of an upstream: each upstream object is registered by itself. */
  readonly #withChanges = new Map<string, Upstream>()

  constructor(routes: Readonly<Record<string, CopyConfig>>, copies: Copies) {
    this.#copies = copies
    const copied = Object.values(routes).filter(
      ({ coalesce, cache, fallback }) =>
        coalesce || cache === 'private' || fallback?.lastGood === true
    )
    this.#copied = new Set(copied.map(({ upstream }) => upstream))
  }

  /** Wraps the upstream of a route, where it or another route of that upstream asks for it. */
  apply<T extends Target>(
    route: string,
    config: CopyConfig,
    target: T
  ): T & { readonly isCopied: boolean } {
    const { upstream, upstreamName } = target
    const { coalesce, doubleClicks, cache, fallback } = config
    const isShared = coalesce || doubleClicks === 'share'
    const isKept = cache === 'private' || fallback !== undefined
    const isCopied = isShared || cache === 'private' || fallback?.lastGood === true
    if (!isShared && !isKept) {
      if (!this.#copied.has(upstreamName)) return { ...target, isCopied }
      const noting = this.#withChanges.get(upstreamName) ?? this.#noteChanges(target)
      this.#withChanges.set(upstreamName, noting)
      return { ...target, isCopied, upstream: noting }
    }
    const readScope = readScopeOf(route, target)
    let { dispatch } = upstream
    if (isShared) {
      const scope = `${upstreamName} ${route}`
      const options = { scope, readScope, route, coalesce, doubleClicks }
      dispatch = shareCalls(dispatch, options, this.#copies)
    }
    if (isKept) dispatch = keepReads(dispatch, this.#keepOptions(route, target, config))
    const copying = { ...upstream, dispatch }
    return {
      ...target,
      isCopied,
      upstream: this.#copied.has(upstreamName)
        ? this.#noteChanges({ upstream: copying, upstreamName })
        : copying
    }
  }

  #keepOptions(
    route: string,
    target: Target,
    { shape, parts, cache, cacheMaxAge, fallback }: CopyConfig
  ): KeepOptions {
    const { store, onUsed } = this.#copies
    return {
      scope: readScopeOf(route, target),
      upstreamName: target.upstreamName,
      cacheMs: cache === 'private' ? cacheMaxAge : undefined,
      fallback,
      isShaped: shape !== undefined || Object.keys(parts).length > 0,
      store,
      onUsed: use => onUsed(route, use)
    }
  }

  /** A change separates the reads before it from those after it. */
  #noteChanges({ upstream, upstreamName }: Target): Upstream {
    const { calls, store } = this.#copies
    const dispatch: Dispatch = (request, exchange, done) => {
      const live = exchange instanceof ProxiedExchange ? liveOf(exchange.request) : undefined
      if (live === undefined || isSafe(request.method)) {
        return upstream.dispatch(request, exchange, done)
      }
      const { key } = live
      calls.separateReads(key)
      upstream.dispatch(request, exchange, (error, response) => {
        calls.separateReads(key)
        if (mayHaveChanged(error, response)) {
          store.dropTarget(key, targetOf(upstreamName, request.path))
        }
        done(error, response)
      })
    }
    return { ...upstream, dispatch }
  }
}

/** Whether the upstream may have carried a request out (RFC 9111 §4.4). */
function mayHaveChanged(
  error: GatewayError | null,
  response: UpstreamResponse | undefined
): boolean {
  if (response !== undefined) return response.status < 400
  return error?.code !== 'upstream.refused' && error?.code !== 'upstream.unavailable'
}

/**
 * The part of a read's key that stands for the back-end: after a reload with another URL or other
 * fixed headers, reads get no earlier response. A digest, since such headers may be secrets.
 */
function readScopeOf(route: string, { upstream: { config }, upstreamName }: Target): string {
  const { headers, secretHeaders } = config
  return createHash('sha256')
    .update(JSON.stringify([upstreamName, route, firstUrlOf(config), headers, secretHeaders]))
    .digest('base64url')
}

interface SharingOptions {
  /** Of changes: a second click after a reload must not run, whatever config says now. */
  readonly scope: string
  readonly readScope: string
  readonly route: string
  readonly coalesce: boolean
  readonly doubleClicks: 'run' | 'share'
}

function shareCalls(
  dispatch: Dispatch,
  { scope, readScope, route, coalesce, doubleClicks }: SharingOptions,
  { calls, onUsed }: Copies
): Dispatch {
  return function dispatchShared(request, exchange, done) {
    const isRead = request.method === 'GET'
    const isShared = isRead ? coalesce : doubleClicks === 'share' && !isSafe(request.method)
    if (!isShared || !(exchange instanceof ProxiedExchange)) {
      return dispatch(request, exchange, done)
    }
    const live = liveOf(exchange.request)
    const { body = null } = request
    // Without a session, or with a body that is streamed, nothing is shared.
    const isWhole = body === null || typeof body === 'string' || Buffer.isBuffer(body)
    if (live === undefined || !isWhole || (isRead && body !== null)) {
      return dispatch(request, exchange, done)
    }
    const key = isRead
      ? copyKey(readScope, live, request, readsWithout)
      : copyKey(scope, live, request)
    const shared = { dispatch, key, session: live.key, request, exchange, done }
    if (calls.send(shared)) onUsed(route, 'shared')
  }
}

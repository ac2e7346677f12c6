/**
 * A route's real back-ends, for commands: requested as the gateway requests them for a client
 * without a session.
 */
import type { Config } from '../config/schema/config.ts'
import { queryMapsOf, routeSettings, timeoutOf, upstreamPathOf } from '../config/schema/resolved.ts'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { readJson } from '../json/body.ts'
import type { Json } from '../json/values.ts'
import { requestHeaders } from '../proxy/request-headers.ts'
import { sourceOf } from '../proxy/parts.ts'
import { compileQuery } from '../proxy/query.ts'
import { tokenNamesOf } from '../proxy/token-names.ts'
import type { Upstream } from '../proxy/upstream.ts'
import {
  createLiveParts,
  type LiveOptions,
  type LiveTarget,
  type MergedResponse
} from './live-parts.ts'
import { clientHeaders, clientOf, LiveUpstreams, reporting } from './live-upstreams.ts'

export { type LiveTarget, NoTarget } from './live-parts.ts'
export { describeFailure } from './live-upstreams.ts'

export interface LiveResponse extends MergedResponse {
  /** Of the route's upstream: null without a body, an empty object without an upstream. */
  readonly main: Json
}

export interface LiveRoute {
  /**
   * @returns undefined for a response without a body, which passes as it is
   * @throws GatewayError for an error, a redirect, and what is not JSON
   */
  readonly ask: () => Promise<LiveResponse | undefined>
  readonly close: () => Promise<void>
}

const withoutParts = { parts: [], missing: [], complete: (shaped: Json) => shaped }

/** @throws NoTarget */
export function openLiveRoute(
  config: Config,
  { name, route }: { readonly name: string; readonly route: LiveTarget },
  options: LiveOptions
): LiveRoute {
  const upstreams = new LiveUpstreams(config)
  const { maxShaped } = routeSettings(config, name, route)
  const askMain =
    route.upstream === undefined
      ? () => Promise.resolve({ value: {}, isEmpty: false })
      : createMain(config, upstreams.open(route.upstream, route), { route, maxShaped, options })
  const addParts = createLiveParts(config, { name, route, upstreams, options })
  return {
    ask: async () => {
      const { value: main, isEmpty } = await askMain()
      if (addParts !== undefined) return { main, ...(await addParts(main)) }
      return isEmpty ? undefined : { ...withoutParts, main, whole: main }
    },
    close: () => upstreams.close()
  }
}

interface Main {
  readonly route: LiveTarget
  readonly maxShaped: number
  readonly options: LiveOptions
}

/** Asks the route's own upstream. */
function createMain(
  config: Config,
  pool: Upstream,
  { route, maxShaped, options }: Main
): () => Promise<{ readonly value: Json; readonly isEmpty: boolean }> {
  const { headers, path, report } = options
  const upstream = reporting(pool, report)
  const toHeaders = requestHeadersOf(config, route, upstream.config)
  const changeQuery = compileQuery(queryMapsOf(config.routes, route)?.reads ?? {})
  return async () => {
    const response = await upstream.fetchWhole({
      method: 'GET',
      path: path ?? upstreamPathOf(route) + changeQuery(''),
      headers: { ...toHeaders(clientHeaders(headers), clientOf(config), false, true), ...headers },
      timeoutMs: timeoutOf(route, upstream.config),
      maxBytes: maxShaped,
      tooLarge: 'shape.too-large'
    })
    const source = sourceOf(response, upstream.config.errors)
    return source === 'empty'
      ? { value: null, isEmpty: true }
      : { value: readJson(source.bytes, source.headers, maxShaped), isEmpty: false }
  }
}

/** As of a route with a shape, so that the response comes without a coding, and whole. */
function requestHeadersOf({ gateway }: Config, route: LiveTarget, upstream: UpstreamConfig) {
  return requestHeaders({
    identity: gateway.identity,
    tokenNames: tokenNamesOf(gateway.envelope),
    upstream,
    passRefusedHeaders: route.passRefusedHeaders ?? [],
    passAuthorization: false,
    passCookies: [],
    shaped: true
  })
}

/** Puts the routes that go to upstreams into the app, by the proxy plugin. */
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { Upstream } from '../proxy/upstream.ts'
import { type Compiled, compileProxied, type ProxiedOptions, type ProxiedRoute } from './proxied.ts'

/** So many are registered at once: the plugin costs more than a route. */
const groupSize = 16

/**
 * Adds routes to a scope whose hooks have let the request pass by then.
 * @param othersTurn is waited for between some of them and the next
 */
export async function addProxied (scope: FastifyInstance, routes: readonly ProxiedRoute[], options: ProxiedOptions, othersTurn: () => Promise<void>): Promise<void> {
  for (const [upstream, ofUpstream] of Map.groupBy(routes, route => route.upstream)) {
    for (let first = 0; first < ofUpstream.length; first += groupSize) {
      const group = ofUpstream.slice(first, first + groupSize)
      const compiled = new Map(group.flatMap(route => {
        const own = compileProxied(route, options)
        return route.paths.map(path => [path, own] as const)
      }))
      await scope.register(addGroup, { upstream, compiled })
      await othersTurn()
    }
  }
}

/** The plugin has one set of options for all its paths: what each route does by itself is put in on the way. */
async function addGroup (scope: FastifyInstance, { upstream, compiled }: { readonly upstream: Upstream, readonly compiled: ReadonlyMap<string, Compiled> }): Promise<void> {
  const add = scope.route as (this: FastifyInstance, options: RouteOptions) => FastifyInstance
  scope.route = function (this: FastifyInstance, given: RouteOptions) {
    return add.call(this, { ...given, ...compiled.get(given.url) })
  } as typeof scope.route
  await scope.register(httpProxy, {
    upstream: upstream.origin,
    routes: [...compiled.keys()],
    undici: { request: upstream.request } as never,
    disableRequestLogging: true,
    retryMethods: [],
    cacheURLs: 1000,
    internalRewriteLocationHeader: false
  })
}

/** Puts the routes that go to upstreams into the app, by the proxy plugin. */
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, RouteOptions } from 'fastify'
import type { Upstream } from '../../proxy/upstream.ts'
import { type Compiled, compileProxied, type ProxiedOptions, type ProxiedRoute } from './proxied.ts'

/** So many are registered at once: the plugin costs more than a route. */
const groupSize = 16

/**
 * Adds routes to a scope whose hooks have let the request pass by then.
 * @param othersTurn is waited for between some of them and the next
 */
export async function addProxied(
  scope: FastifyInstance,
  routes: readonly ProxiedRoute[],
  options: ProxiedOptions,
  othersTurn: () => Promise<void>
): Promise<void> {
  for (const [upstream, ofUpstream] of Map.groupBy(routes, route => route.upstream)) {
    let compiled = new Map<string, Compiled>()
    const register = async () => {
      await scope.register(addGroup, { upstream, compiled })
      compiled = new Map()
      await othersTurn()
    }
    for (const route of ofUpstream) {
      // A path may have several routes, of other methods each.
      if (compiled.size >= groupSize || route.paths.some(path => compiled.has(path)))
        await register()
      const own = compileProxied(route, options)
      for (const path of route.paths) compiled.set(path, own)
    }
    await register()
  }
}

/** The plugin has one set of options for all its paths: what each route does by itself is put in on the way. */
async function addGroup(
  scope: FastifyInstance,
  {
    upstream,
    compiled
  }: { readonly upstream: Upstream; readonly compiled: ReadonlyMap<string, Compiled> }
): Promise<void> {
  // By whichever scope below it is called.
  const { route: add } = scope as {
    readonly route: (this: FastifyInstance, options: RouteOptions) => FastifyInstance
  }
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

/** Adds the routes of config to the app, behind the hooks of their scope (`app.ts`). */
import { setImmediate as requestsInBetween } from 'node:timers/promises'
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { toRouterPath, withHead } from '../../config/schema/public-path.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import { createJudges } from './ended-sessions.ts'
import { compileWay, createHandler, createOwnHandler } from './handler.ts'
import type { ForwardedRoute, OwnRoute, Route } from './route.ts'
import { takeUpgrades } from './websocket.ts'

/** Adds those of `routes` that go to an upstream. @param all routes of the app */
export async function addForwarded(
  scope: FastifyInstance,
  routes: readonly Route[],
  all: readonly Route[]
): Promise<void> {
  const { gateway } = scope
  const judgeOf = createJudges(gateway.sessions)
  for (const route of routes) {
    if (route.target === undefined) continue
    const way = compileWay(route, gateway, all)
    const handler = createHandler(route, way, gateway, judgeOf(route.target))
    await scope.register(httpProxy, {
      upstream: route.target.upstream.origin,
      routes: route.paths.map(toRouterPath),
      httpMethods: withHead(route.methods),
      config: { ...configOf(route), ...configOfTarget(route) },
      // A reply sent by it ends the request, so the plugin's own handler never runs.
      preHandler: takeUpgrades(route, way, gateway, handler),
      // That one gets no connections of its own.
      http: {},
      globalAgent: true,
      disableRequestLogging: true,
      disableCache: true
    })
    await requestsInBetween()
  }
}

/** Adds one without an upstream. @param scope ignores bodies */
export function addOwnRoute(scope: FastifyInstance, route: OwnRoute): void {
  const handler = createOwnHandler(route)
  const method = withHead(route.methods)
  for (const path of route.paths) {
    scope.route({ method, url: toRouterPath(path), config: configOf(route), handler })
  }
}

type Config = NonNullable<RouteOptions['config']>

function configOf({ name, access, touch, errorStatus }: Route): Config {
  return { route: name, access, touch, errorStatus }
}

function configOfTarget({ target }: ForwardedRoute): Config {
  const { passEncodedSlashes, websocket } = target.written
  const { from } = credentialOf(target.upstream.config.credential)
  return {
    upstream: target.upstreamName,
    ...(from !== undefined && { credentialFrom: from }),
    maxBody: target.maxBody,
    ...(passEncodedSlashes === true && { passEncodedSlashes: true }),
    ...(websocket !== undefined && { takesUpgrades: true })
  }
}

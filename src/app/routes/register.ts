/** Adds the routes of config to the app, behind the hooks of their scope (`app.ts`). */
import httpProxy from '@fastify/http-proxy'
import type { FastifyInstance, RouteOptions } from 'fastify'
import { toRouterPath, withHead } from '../../config/schema/public-path.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import { takeUpgrades, type WebSocketServices } from './websocket.ts'
import { ignoreBodies } from '../endpoints/ignored-bodies.ts'
import { compileWay, createHandler, createOwnHandler, type HandlerOptions } from './handler.ts'
import type { ForwardedRoute, OwnRoute, Route } from './route.ts'

export interface RoutesOptions extends HandlerOptions {
  readonly webSockets: WebSocketServices
}

/** Longer than the upstream's own timeout: that one logs a stalled reader, so it must end first. */
const afterUpstreamMs = 1000

/** @param yieldToRequests is awaited after each registration */
export async function addRoutes(
  scope: FastifyInstance,
  routes: readonly Route[],
  options: RoutesOptions,
  yieldToRequests: () => Promise<void>
): Promise<void> {
  scope.register(async inner => {
    ignoreBodies(inner)
    for (const route of routes) if (route.target === undefined) addOwn(inner, route, options)
  })
  for (const route of routes) {
    if (route.target === undefined) continue
    await addForwarded(scope, route, options)
    await yieldToRequests()
  }
}

/** A reply sent by `preHandler` ends the request, so the plugin's own handler never runs. */
async function addForwarded(
  scope: FastifyInstance,
  route: ForwardedRoute,
  options: RoutesOptions
): Promise<void> {
  const way = compileWay(route, options)
  const handler = createHandler(route, way, options)
  await scope.register(httpProxy, {
    upstream: route.target.upstream.origin,
    routes: route.paths.map(toRouterPath),
    httpMethods: withHead(route.methods),
    config: { ...configOf(route), ...configOfTarget(route) },
    preHandler: takeUpgrades(route, way, options.webSockets, handler),
    // Its own handler is never reached, so it gets no connections of its own.
    http: {},
    globalAgent: true,
    disableRequestLogging: true,
    disableCache: true
  })
}

function addOwn(scope: FastifyInstance, route: OwnRoute, options: HandlerOptions): void {
  const handler = createOwnHandler(route, options)
  for (const path of route.paths) {
    scope.route({
      method: withHead(route.methods),
      url: toRouterPath(path),
      config: configOf(route),
      handler
    })
  }
}

type Config = NonNullable<RouteOptions['config']>

function configOf({ name, access, touch, envelope, errorStatus }: Route): Config {
  return { route: name, access, touch, ...(envelope && { envelope }), errorStatus }
}

function configOfTarget({ target }: ForwardedRoute): Config {
  const { from } = credentialOf(target.upstream.config.credential)
  return {
    upstream: target.upstreamName,
    ...(from !== undefined && { credentialFrom: from }),
    maxBody: target.maxBody,
    ...(target.passEncodedSlashes === true && { passEncodedSlashes: true }),
    ...(target.webSocket !== undefined && { takesUpgrades: true }),
    stallMs: target.timeOuts.idleMs + afterUpstreamMs
  }
}

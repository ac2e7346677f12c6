/** The route of a public path, for logs that do not name it. */
import type { Config } from '../../config/schema/config.ts'
import { ownEndpoints } from '../../config/schema/own-endpoints.ts'
import { mountOf, pathsOf } from '../../config/schema/resolved.ts'
import { hasParameters, nearerFirst, takes } from '../../config/schema/public-path.ts'
import { unknownRoute } from '../../app/hooks/context.ts'

export interface PublicPaths {
  /** @param target path with or without a query */
  readonly routeOf: (target: string) => string
  /** Whether only signed-in callers get a response. */
  readonly needsSession: (route: string) => boolean
  /** Whether no session is looked up. */
  readonly isPublic: (route: string) => boolean
}

export function createPublicPaths(config: Config): PublicPaths {
  const { endpoints, routes } = config.routes
  const mount = mountOf(config)
  const endpointPaths = ownEndpoints(endpoints)
  const withSession = new Set(
    endpointPaths.filter(each => each.needsSession).map(({ name }) => name)
  )
  const exact = new Map<string, string>()
  const templates: Array<readonly [path: string, route: string]> = []
  const add = (path: string, route: string) =>
    path.endsWith('/*') || hasParameters(path)
      ? templates.push([mount + path, route])
      : exact.set(mount + path, route)
  for (const [route, path] of [
    ...endpointPaths.map(each => [each.name, each.path] as const),
    ...Object.entries(routes).map(([name, each]) => [name, each.path] as const)
  ]) {
    for (const each of pathsOf(config.routes, path)) add(each, route)
  }
  templates.sort(([a], [b]) => nearerFirst(a, b))
  return {
    routeOf: target => {
      const [path = ''] = target.split('?', 1)
      const route = exact.get(path) ?? templates.find(([template]) => takes(template, path))?.[1]
      return route ?? unknownRoute
    },
    needsSession: route =>
      withSession.has(route) ||
      (Object.hasOwn(routes, route) && routes[route]?.access !== 'public'),
    isPublic: route => routes[route]?.access === 'public'
  }
}

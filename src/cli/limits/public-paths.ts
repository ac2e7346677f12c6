/** Which route a public path belongs to, for logs that do not name it. */
import type { Config } from '../../config/schema/config.ts'
import { unknownRoute } from '../../app/hooks/context.ts'

export interface PublicPaths {
  /** @param target path, maybe with a query */
  readonly routeOf: (target: string) => string
  /** Whether who is answered is signed in. */
  readonly needsSession: (route: string) => boolean
  /** Whether nobody looks for a session. */
  readonly isPublic: (route: string) => boolean
}

const withSession = new Set(['profile', 'session', 'logout'])

export function createPublicPaths({
  gateway: {
    server: { mount = '' }
  },
  routes: { endpoints, aliases, routes }
}: Config): PublicPaths {
  const { login, logout, profile, session } = endpoints
  const own: ReadonlyArray<readonly [string, string]> = [
    ['login', login.path],
    ['logout', logout.path],
    ['profile', profile.path],
    ...['', '/extend', '/list', '/close'].map(end => ['session', session.path + end] as const)
  ]
  const exact = new Map<string, string>()
  const open: Array<readonly [stem: string, route: string]> = []
  const add = (path: string, route: string) =>
    path.endsWith('/*')
      ? open.push([mount + path.slice(0, -1), route])
      : exact.set(mount + path, route)
  for (const [route, path] of [
    ...own,
    ...Object.entries(routes).map(([name, each]) => [name, each.path] as const)
  ]) {
    add(path, route)
    for (const [alias, target] of Object.entries(aliases)) if (target === path) add(alias, route)
  }
  // Of `/api/*` and `/api/v1/*` the nearer one.
  open.sort(([a], [b]) => b.length - a.length)
  return {
    routeOf: target => {
      const [path = ''] = target.split('?', 1)
      return exact.get(path) ?? open.find(([stem]) => path.startsWith(stem))?.[1] ?? unknownRoute
    },
    needsSession: route =>
      withSession.has(route) ||
      (Object.hasOwn(routes, route) && routes[route]?.access !== 'public'),
    isPublic: route => routes[route]?.access === 'public'
  }
}

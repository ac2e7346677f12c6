/** The gateway's own endpoints: the one table of their paths, methods and names. */
import { withHead } from './public-path.ts'
import type { RoutesConfig } from './routes.ts'

/** Names of endpoints in config, limits and logs. No route can have one of these names. */
export const endpointNames = ['login', 'logout', 'profile', 'session'] as const

export type EndpointName = (typeof endpointNames)[number]

interface OwnRoute {
  readonly name: EndpointName
  readonly methods: ReadonlyArray<'GET' | 'HEAD' | 'POST'>
  /** Whether it answers 401, or does nothing, without a session. */
  readonly needsSession: boolean
}

/** All but what config names: the paths, and the methods of `logout` and `profile`. */
export const ownRoutes = {
  login: { name: 'login', methods: ['POST'], needsSession: false },
  logout: { name: 'logout', methods: ['GET', 'POST'], needsSession: true },
  profile: { name: 'profile', methods: ['GET', 'HEAD'], needsSession: true },
  refresh: { name: 'session', methods: ['POST'], needsSession: true },
  check: { name: 'session', methods: ['GET', 'HEAD'], needsSession: true },
  session: { name: 'session', methods: ['GET'], needsSession: true },
  extend: { name: 'session', methods: ['POST'], needsSession: true },
  list: { name: 'session', methods: ['GET'], needsSession: true },
  close: { name: 'session', methods: ['POST'], needsSession: true }
} as const satisfies Record<string, OwnRoute>

export type OwnKey = keyof typeof ownRoutes

/** The methods of an endpoint, with HEAD where it takes GET for reading. */
export function ownMethods(
  key: OwnKey,
  { logout, profile }: RoutesConfig['endpoints']
): readonly string[] {
  if (key === 'logout') return logout.methods
  return key === 'profile' ? withHead(profile.methods) : ownRoutes[key].methods
}

/** Without a path an endpoint is not there. */
type Optional = 'refresh' | 'check'
type OwnPaths = Readonly<
  Record<Exclude<OwnKey, Optional>, string> & Partial<Record<Optional, string>>
>

export function ownPaths(endpoints: RoutesConfig['endpoints']): OwnPaths {
  const { login, logout, profile, refresh, check, session } = endpoints
  return {
    login: login.path,
    logout: logout.path,
    profile: profile.path,
    ...(refresh && { refresh: refresh.path }),
    ...(check && { check: check.path }),
    session: session.path,
    extend: `${session.path}/extend`,
    list: `${session.path}/list`,
    close: `${session.path}/close`
  }
}

interface OwnEndpoint extends Omit<OwnRoute, 'name' | 'methods'> {
  readonly key: OwnKey
  readonly name: string
  readonly methods: readonly string[]
  readonly path: string
  /** The member of `endpoints` that has its path. */
  readonly section: string
}

/** One row for each path. */
export function ownEndpoints(endpoints: RoutesConfig['endpoints']): OwnEndpoint[] {
  const paths = ownPaths(endpoints)
  const keys = Object.keys(ownRoutes) as OwnKey[]
  return keys.flatMap(key => {
    const path = paths[key]
    const route = ownRoutes[key]
    const section = key === 'refresh' || key === 'check' ? key : route.name
    return path === undefined
      ? []
      : [{ ...route, key, methods: ownMethods(key, endpoints), path, section }]
  })
}

/** Whether a route's name is that of an endpoint. */
export function isEndpoint(name: string): name is EndpointName {
  return (endpointNames as readonly string[]).includes(name)
}

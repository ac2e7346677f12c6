/** The gateway's own endpoints: the one table of their paths, methods and names. */
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

/** All but the paths, which config names. */
export const ownRoutes = {
  login: { name: 'login', methods: ['POST'], needsSession: false },
  logout: { name: 'logout', methods: ['GET', 'POST'], needsSession: true },
  profile: { name: 'profile', methods: ['GET', 'HEAD'], needsSession: true },
  session: { name: 'session', methods: ['GET'], needsSession: true },
  extend: { name: 'session', methods: ['POST'], needsSession: true },
  list: { name: 'session', methods: ['GET'], needsSession: true },
  close: { name: 'session', methods: ['POST'], needsSession: true }
} as const satisfies Record<string, OwnRoute>

type OwnPaths = Readonly<Record<keyof typeof ownRoutes, string>>

export function ownPaths({ login, logout, profile, session }: RoutesConfig['endpoints']): OwnPaths {
  return {
    login: login.path,
    logout: logout.path,
    profile: profile.path,
    session: session.path,
    extend: `${session.path}/extend`,
    list: `${session.path}/list`,
    close: `${session.path}/close`
  }
}

interface OwnEndpoint extends Omit<OwnRoute, 'name'> {
  readonly name: string
  readonly path: string
}

/** One row for each path. */
export function ownEndpoints(endpoints: RoutesConfig['endpoints']): OwnEndpoint[] {
  const paths = ownPaths(endpoints)
  const keys = Object.keys(ownRoutes) as Array<keyof typeof ownRoutes>
  return keys.map(key => ({ ...ownRoutes[key], path: paths[key] }))
}

/** Whether a route's name is that of an endpoint. */
export function isEndpoint(name: string): name is EndpointName {
  return (endpointNames as readonly string[]).includes(name)
}

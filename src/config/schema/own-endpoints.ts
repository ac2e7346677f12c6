/** The gateway's own endpoints: the one table of their paths, methods and names. */
import type { RoutesConfig } from './routes.ts'

/** Names of endpoints in config, limits and logs. No route can have one of these names. */
export const endpointNames: readonly string[] = ['login', 'logout', 'profile', 'session']

interface OwnEndpoint {
  readonly name: string
  readonly path: string
  readonly methods: readonly string[]
  /** Whether it answers 401, or does nothing, without a session. */
  readonly needsSession: boolean
}

type Endpoints = RoutesConfig['endpoints']

/** The paths of the session endpoint. */
export function sessionPaths({ session: { path } }: Pick<Endpoints, 'session'>) {
  return {
    session: path,
    extend: `${path}/extend`,
    list: `${path}/list`,
    close: `${path}/close`
  }
}

/** One row for each path. */
export function ownEndpoints(endpoints: Endpoints): OwnEndpoint[] {
  const { login, logout, profile } = endpoints
  const { session, extend, list, close } = sessionPaths(endpoints)
  return [
    { name: 'login', path: login.path, methods: ['POST'], needsSession: false },
    { name: 'logout', path: logout.path, methods: ['GET', 'POST'], needsSession: true },
    { name: 'profile', path: profile.path, methods: ['GET', 'HEAD'], needsSession: true },
    { name: 'session', path: session, methods: ['GET'], needsSession: true },
    { name: 'session', path: extend, methods: ['POST'], needsSession: true },
    { name: 'session', path: list, methods: ['GET'], needsSession: true },
    { name: 'session', path: close, methods: ['POST'], needsSession: true }
  ]
}

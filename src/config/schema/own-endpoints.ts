import type { JsonSchema } from '../../contract/schema.ts'
import type { GatewayConfig } from './gateway.ts'
import { withHead } from './public-path.ts'
import type { RoutesConfig } from './routes.ts'

/** In config, limits and logs. No route can have one of these names. */
export const endpointNames: ReadonlySet<string> = new Set([
  'login',
  'logout',
  'profile',
  'session',
  'jwks',
  'backchannel-logout'
])

type Endpoints = RoutesConfig['endpoints']

interface OwnRoute {
  readonly name: keyof Endpoints
  readonly section?: keyof Endpoints
  readonly below?: string
  /** Where config does not say them. */
  readonly methods: ReadonlyArray<'GET' | 'HEAD' | 'POST'>
  /** Whether it answers 401, or does nothing, without a session. */
  readonly needsSession: boolean
}

export const ownRoutes = {
  login: { name: 'login', methods: ['POST'], needsSession: false },
  logout: { name: 'logout', methods: ['GET', 'POST'], needsSession: true },
  profile: { name: 'profile', methods: ['GET', 'HEAD'], needsSession: true },
  refresh: { name: 'session', section: 'refresh', methods: ['POST'], needsSession: true },
  jwks: { name: 'jwks', methods: ['GET', 'HEAD'], needsSession: false },
  check: { name: 'session', section: 'check', methods: ['GET', 'HEAD'], needsSession: true },
  session: { name: 'session', methods: ['GET'], needsSession: true },
  extend: { name: 'session', below: '/extend', methods: ['POST'], needsSession: true },
  list: { name: 'session', below: '/list', methods: ['GET'], needsSession: true },
  close: { name: 'session', below: '/close', methods: ['POST'], needsSession: true }
} as const satisfies Record<string, OwnRoute>

export type OwnKey = keyof typeof ownRoutes

/** One row for each path; GET for reading brings HEAD. */
export function ownEndpoints(endpoints: Endpoints) {
  const { logout, profile } = endpoints
  const ofConfig: Partial<Record<OwnKey, readonly string[]>> = {
    logout: logout.methods,
    profile: withHead(profile.methods)
  }
  return (Object.keys(ownRoutes) as OwnKey[]).flatMap(key => {
    const route: OwnRoute = ownRoutes[key]
    const { name, section = name, below = '', needsSession } = route
    const path = endpoints[section]?.path
    const methods = ofConfig[key] ?? route.methods
    if (path === undefined) return []
    return [{ key, name, section, path: path + below, methods, needsSession }]
  })
}

type LoginFields = GatewayConfig['login']['fields']

/** Sign-in. Other members are passed to the credential sources as they are. */
export function loginBody({ username, password, remember }: LoginFields): JsonSchema {
  const texts = {
    [username]: { type: 'string', minLength: 1, maxLength: 255 },
    [password]: { type: 'string', minLength: 1, maxLength: 1024 }
  }
  const flag = {
    type: ['boolean', 'null'],
    description: 'Whether the cookie outlives the browser.'
  }
  return {
    type: 'object',
    // Should config give two members one name, the texts stay texts.
    properties: { ...texts, [remember]: flag, ...texts },
    required: [username, password]
  }
}

/** Closing sessions: one of the three is needed; the first that is set counts. */
export const closeBody: JsonSchema = {
  anyOf: [
    {
      type: 'object',
      properties: { id: { type: 'string', minLength: 1, maxLength: 64 } },
      required: ['id']
    },
    { type: 'object', properties: { others: { const: true } }, required: ['others'] },
    { type: 'object', properties: { all: { const: true } }, required: ['all'] }
  ]
}

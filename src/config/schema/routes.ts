import { Type, type Static } from 'typebox'
import { endpoints } from './endpoints.ts'
import { expectSchema } from './expectations.ts'
import { route, type RouteConfig } from './route.ts'
import { shapesSchema } from './shapes.ts'
import { type CredentialConfig, upstream } from './upstreams.ts'
import * as s from './primitives.ts'
import { consolePaging } from './request-mapping.ts'

export const routesSchema = Type.Object(
  {
    upstreams: s.named(upstream, 'The back-ends, by name.'),
    endpoints,
    aliases: Type.Record(
      Type.String({ pattern: '^/' }),
      s.pathTemplate('The path of a route or endpoint.'),
      {
        default: {},
        description:
          'More public paths of a route or endpoint, with the same access, limits and name.',
        examples: [{ '/api/currentUser': '/api/account/profile' }]
      }
    ),
    routes: s.named(route, 'The routes, by name. Logs, metrics and limits use the name.'),
    permissions: s.pairs(
      s.list(s.anyText, 'The permissions of the role.'),
      'The permissions of each role, for `{permissions}` in answers. Consoles show by them; ' +
        '`access` of a route decides.',
      { default: {}, examples: [{ admin: ['*:*:*'], user: ['order:read'] }] }
    ),
    paging: consolePaging,
    shapes: shapesSchema,
    expect: expectSchema
  },
  {
    additionalProperties: false,
    default: {},
    title: 'routes.yaml',
    description: 'Upstreams, routes and shapes. A change takes effect without a restart.'
  }
)

/** The form of a credential, and its source; without `from` the only source that has one. */
export function credentialOf(
  written: CredentialConfig
): Exclude<CredentialConfig, string> & { readonly hasOwnToken: boolean } {
  if (typeof written === 'string') return { as: written, hasOwnToken: false }
  return { ...written, hasOwnToken: (written.exchange ?? written.jwt) !== undefined }
}

/** The header that carries a token in this form; undefined where none does. */
export function tokenHeaderOf(as: string): string | undefined {
  if (as === 'bearer') return 'authorization'
  return as.startsWith('header:') ? as.slice('header:'.length) : undefined
}

export type RoutesConfig = Static<typeof routesSchema>
export type UpstreamConfig = RoutesConfig['upstreams'][string]
export type { RouteConfig }

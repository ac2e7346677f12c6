/** Live config, `routes.yaml`: upstreams, endpoints, aliases, routes and shapes. */
import { Type, type Static } from 'typebox'
import { endpoints } from './endpoints.ts'
import { expectSchema } from './expectations.ts'
import { maintenanceSchema } from './maintenance.ts'
import { route } from './route.ts'
import { examplesSchema, shapesSchema } from './shapes.ts'
import { type CredentialConfig, upstream } from './upstreams.ts'
import { named, path } from './primitives.ts'

export const routesSchema = Type.Object(
  {
    upstreams: named(upstream, { description: 'The back-ends, by name.' }),
    endpoints,
    aliases: Type.Record(
      Type.String({ pattern: '^/' }),
      path({ description: 'The path of a route or endpoint.' }),
      {
        default: {},
        description:
          'Other public paths for a route or endpoint: same access, limits and name in logs.',
        examples: [{ '/api/currentUser': '/api/account/profile' }]
      }
    ),
    routes: named(route, {
      description: 'What is proxied, by name. The name stands in logs and is what limits refer to.'
    }),
    shapes: shapesSchema,
    examples: examplesSchema,
    maintenance: maintenanceSchema,
    expect: expectSchema
  },
  {
    additionalProperties: false,
    default: {},
    title: 'routes.yaml',
    description: 'Live config: what is served, and from where.'
  }
)

interface Credential {
  readonly as: string
  readonly from?: string
}

/** How a credential is sent, and of which source; of the only one that gives any without `from`. */
export function credentialOf(written: CredentialConfig): Credential {
  return typeof written === 'string' ? { as: written } : written
}

export type RoutesConfig = Static<typeof routesSchema>
export type UpstreamConfig = RoutesConfig['upstreams'][string]
export type RouteConfig = RoutesConfig['routes'][string]

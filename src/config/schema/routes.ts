/** Live config, `routes.yaml`: upstreams, endpoints, aliases, routes and shapes. */
import { Type, type Static, type TProperties } from 'typebox'
import { contractSchema } from './contracts.ts'
import { dialects, errorStatuses } from './gateway.ts'
import { missingSchema, partsSchema } from './parts.ts'
import {
  dotted,
  duration,
  flag,
  header,
  list,
  maxShaped,
  name,
  named,
  oneOf,
  path,
  size,
  text,
  url,
  whole
} from './primitives.ts'
import { expectSchema } from './expectations.ts'
import { maintenanceSchema } from './maintenance.ts'
import { examplesSchema, shapesSchema } from './shapes.ts'

const closed = <T extends TProperties>(
  properties: T,
  meta: {
    description: string
    default?: unknown
    title?: string
    minProperties?: number
    maxProperties?: number
  }
) => Type.Object(properties, { additionalProperties: false, ...meta })

/** Names of the gateway's own endpoints, which no route can have. */
export const endpointNames = ['login', 'logout', 'profile', 'session']

const styles = 'bearer, cookies or header:NAME'

const credential = Type.Unsafe<CredentialConfig>(
  Type.Union(
    [
      Type.String({ pattern: '^(none|bearer|cookies|header:[a-z0-9-]+)$' }),
      Type.Object(
        {
          from: Type.String({ minLength: 1 }),
          as: Type.String({ pattern: '^(bearer|cookies|header:[a-z0-9-]+)$', expected: styles })
        },
        { additionalProperties: false }
      )
    ],
    {
      default: 'none',
      expected: `none, ${styles}, or { from: SOURCE, as: ${styles} }`,
      description:
        'How the credential of an `upstream-login` session is sent: `bearer` ' +
        '(`Authorization: Bearer …`), `cookies`, or `header:x-token`. Where several credential ' +
        'sources give one, `{ from: SOURCE, as: bearer }` names the source whose sessions send ' +
        'theirs; a session of another source is refused (403 `route.credential`).',
      examples: [{ from: 'upstream-login:orders', as: 'bearer' }]
    }
  )
)

const upstream = closed(
  {
    url: url({
      description: 'The back-end’s address; a path in it stands before every upstream path.',
      examples: ['http://orders.internal:8080']
    }),
    connectTimeout: duration({ default: '2s', description: 'How long a connection may take.' }),
    responseTimeout: duration({
      default: '15s',
      description: 'How long the first byte of the answer may take; a route may say otherwise.'
    }),
    idleTimeout: duration({
      default: '30s',
      description: 'How long an answer’s body may stall, on either side.'
    }),
    connections: whole({
      minimum: 1,
      maximum: 10_000,
      default: 200,
      description:
        'Requests in flight at once. Uploads that are streamed (above 64 KiB) get at most half of them.'
    }),
    queue: whole({
      maximum: 100_000,
      default: 100,
      description: 'Requests that wait for one of those; more are answered 503.'
    }),
    queueBytes: size({
      default: '16MiB',
      description:
        'The most that the bodies of waiting requests may be in all; more are answered 503.'
    }),
    queueTimeout: duration({
      default: '10s',
      description:
        'How long a request may wait for a connection before it is answered 503. It is ' +
        'no part of `responseTimeout`, which begins when the request has one.'
    }),
    credential,
    identity: flag({ default: true, description: 'Whether the identity header fields are sent.' }),
    passHeaders: Type.Optional(
      list(header({ description: 'A request header.' }), {
        description:
          'Header fields of the client that this upstream gets, and no others (the gateway’s ' +
          'own are added as ever). Without it all pass but those that back-ends take as the word of a proxy.',
        examples: [['accept', 'accept-language', 'content-type', 'user-agent']]
      })
    ),
    ca: Type.Optional(
      text({
        description:
          'A PEM file with the authority of an https upstream, where the system does not know it. Certificates are always verified.'
      })
    )
  },
  { description: 'A back-end.' }
)

const access = Type.Unsafe<'public' | 'session' | { roles: string[] }>(
  Type.Union(
    [
      Type.String({ enum: ['public', 'session'] }),
      Type.Object(
        { roles: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }) },
        { additionalProperties: false }
      )
    ],
    {
      default: 'session',
      expected: 'public, session, or roles: [NAME, …]',
      instead: '{ roles: [VALUE] }',
      description:
        'Who may call: anyone (`public`), whoever is signed in (`session`), or whoever has one of the roles (`roles: [admin]`).'
    }
  )
)

const proxied = {
  upstream: name({ description: 'An upstream of this file.' }),
  rewrite: Type.Optional(
    path({
      description:
        'The path at the upstream; with `/*` at its end it keeps what the `*` of `path` stands for. Without it the public path is kept.',
      examples: ['/internal/notices']
    })
  ),
  timeout: Type.Optional(
    duration({
      description:
        'How long the first byte of the answer may take; the upstream’s `responseTimeout` without it.'
    })
  ),
  shape: Type.Optional(
    name({ description: 'A shape of this file. Without it the answer passes as it is.' })
  ),
  contract: Type.Optional(contractSchema)
}

const route = closed(
  {
    path: path({
      description: 'The public path; `/*` at its end takes everything below.',
      examples: ['/api/notices', '/api/orders/*']
    }),
    methods: list(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { description: 'A method.' }), {
      default: ['GET'],
      minItems: 1,
      uniqueItems: true,
      description: 'The methods; GET brings HEAD.'
    }),
    access,
    parts: partsSchema,
    missing: missingSchema,
    into: Type.Optional(
      dotted({
        description:
          'With `parts`: where the answer of the route’s own upstream stands among them; without it, the parts are added to that answer.',
        examples: ['items']
      })
    ),
    touch: Type.Optional(
      oneOf(['always', 'never'], {
        description:
          'Whether a call keeps the session from going idle. `never` suits what a page polls by itself. Without it: never for a route named `notices`, always for others.'
      })
    ),
    ...proxied,
    upstream: Type.Optional(
      name({ description: 'An upstream of this file. A route with `parts` may do without.' })
    ),
    dialect: Type.Optional(
      oneOf([...dialects], {
        description:
          'The envelope of this route’s answers; `envelope.dialect` of `gateway.yaml` without it.'
      })
    ),
    errorStatus: Type.Optional(
      oneOf([...errorStatuses], {
        description:
          'The HTTP status of this route’s errors; `envelope.errorStatus` of `gateway.yaml` without it.'
      })
    ),
    maxBody: Type.Optional(
      size({ description: 'The largest request body; `sizes.body` of `limits.yaml` without it.' })
    ),
    maxShaped: Type.Optional(
      size({
        maximum: maxShaped,
        description:
          'The largest answer that is shaped, as it comes and unpacked; `sizes.shape` of `limits.yaml` without it.'
      })
    ),
    tooLarge: oneOf(['refuse', 'pass'], {
      default: 'refuse',
      description:
        'What becomes of an answer that is too large to be shaped: 502 `shape.too-large`, or it passes unshaped, byte for byte. It is never cut.'
    }),
    passAuthorization: flag({
      default: false,
      description: 'Whether the client’s own `Authorization` goes to the upstream.'
    }),
    passCookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description: 'Cookies of the client that go to the upstream. No other does.'
    }),
    passRefusedHeaders: list(header({ description: 'A request header, in full.' }), {
      default: [],
      description:
        'Header fields of the client that go to the upstream although back-ends take them as ' +
        'the word of a proxy (`X-Forwarded-*`, `X-User-*`, `X-Scope-OrgID`, …). `check` warns of each.',
      examples: [['x-scope-orgid']]
    }),
    setCookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description: 'Cookies that this upstream may set in the browser. No other does.'
    }),
    redirects: oneOf(['refuse', 'pass'], {
      default: 'refuse',
      description:
        'What becomes of an upstream’s redirect elsewhere: 502, or passed on. One to the upstream itself is translated to its public path.'
    })
  },
  { description: 'A public path that is proxied.' }
)

const endpoints = closed(
  {
    login: closed(
      { path: path({ default: '/api/auth/admin/login', description: 'Sign-in (POST).' }) },
      { default: {}, description: 'Sign-in.' }
    ),
    logout: closed(
      { path: path({ default: '/api/account/logout', description: 'Sign-out (GET and POST).' }) },
      { default: {}, description: 'Sign-out.' }
    ),
    profile: closed(
      {
        path: path({ default: '/api/account/profile', description: 'The current user (GET).' }),
        from: oneOf(['session', 'upstream'], {
          default: 'session',
          description: 'Whether the session answers, or an upstream does.'
        }),
        upstream: Type.Optional(proxied.upstream),
        rewrite: proxied.rewrite,
        timeout: proxied.timeout,
        shape: Type.Optional(
          name({
            description:
              'A shape of this file, which makes the user’s members. The gateway puts its envelope around ' +
              'them: an answer that is enveloped already needs `unwrap: data`, or the user’s members stand under `data.data`.'
          })
        ),
        contract: proxied.contract,
        parts: partsSchema,
        missing: missingSchema
      },
      { default: {}, description: 'The current user.' }
    ),
    session: closed(
      {
        path: path({
          default: '/api/session',
          description:
            'What is left of the session (GET, which does not extend it); below it `/extend` (POST), `/list` (GET) and `/close` (POST).'
        })
      },
      { default: {}, description: 'The session itself.' }
    )
  },
  { default: {}, description: 'The paths that the gateway answers itself.' }
)

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

type CredentialConfig = string | { readonly from: string; readonly as: string }

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

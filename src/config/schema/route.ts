/** `routes` of `routes.yaml`: a public path, which an upstream, config or parts answer. */
import { bodySchema, querySchema } from './request-mapping.ts'
import { type Static, Type } from 'typebox'
import { routeAnswerSchema } from './answer.ts'
import { errorStatuses } from './envelope.ts'
import { neededParts, partsSchema } from './parts.ts'
import { proxied } from './proxied.ts'
import { setCookiesSchema } from './set-cookies.ts'
import {
  closed,
  dotted,
  flag,
  header,
  list,
  maxShaped,
  maxStreamedBytes,
  maybe,
  oneOf,
  pathTemplate,
  size,
  text,
  whole
} from './primitives.ts'
import { websocketSchema } from './websocket.ts'

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
        'Who may call the route. `public`: anyone. `session`: every signed-in user. `roles: ' +
        '[admin]`: users with one of these roles.',
      examples: ['public', { roles: ['admin'] }]
    }
  )
)

/** Keys of every route. */
const common = {
  path: pathTemplate(
    'The public path. With `/*` at its end it matches everything below; `:name` matches ' +
      'one segment. Of several paths that match, the most specific decides.',
    {
      format: 'x-public-path',
      examples: ['/api/notices', '/api/orders/*', '/api/users/:id/reset']
    }
  ),
  methods: list(
    oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], 'An HTTP method.'),
    'The allowed methods. GET includes HEAD.',
    { default: ['GET'], minItems: 1, uniqueItems: true, examples: [['GET', 'POST']] }
  ),
  access,
  touch: maybe(
    oneOf(
      ['always', 'never'],
      'Whether a call resets the session’s idle time; `never` for calls that a page repeats by ' +
        'itself. Default: `never` for the name `notices` or with `websocket`, else `always`.'
    )
  ),
  errorStatus: maybe(
    oneOf(
      [...errorStatuses],
      'The HTTP status of its errors. Default: `envelope.errorStatus` of `gateway.yaml`.'
    )
  )
}

const maxShapedSchema = maybe(
  size(
    'The maximum size of a response that is shaped, both as received and after decompression. ' +
      'Default: `sizes.shape` of `limits.yaml`.',
    { maximum: maxShaped, examples: ['8MiB'] }
  )
)

const fallback = closed(
  {
    body: Type.Unknown({ description: 'Answer with this JSON, without a shape or envelope.' }),
    status: whole('The status of the fixed response.', { minimum: 200, maximum: 599, default: 200 })
  },
  'What a GET request gets if the upstream cannot be reached, breaks the connection, takes ' +
    'too long, or answers 502, 503 or 504. Default: the error.',
  { examples: [{ body: { data: [] } }] }
)

export const upstreamRoute = closed(
  {
    ...common,
    maxShaped: maxShapedSchema,
    parts: partsSchema,
    into: maybe(
      dotted(
        'With `parts`: where to put the response of the route’s own upstream. Default: the ' +
          'parts are added to that response.',
        { examples: ['items'] }
      )
    ),
    ...proxied,
    fallback: maybe(fallback),
    cache: oneOf(
      ['off', 'browser'],
      '`browser`: the upstream’s `Cache-Control` passes as `private`, with `Vary: Cookie`. `off`: ' +
        '`no-store`. Public routes pass it as it is.',
      { default: 'off' }
    ),
    query: querySchema,
    body: bodySchema,
    websocket: websocketSchema,
    maxBody: maybe(
      size(
        'The maximum size of a request body; `0B`: none is taken. Default: `sizes.body` of ' +
          '`limits.yaml`.',
        { minimum: 0, maximum: maxStreamedBytes, examples: ['50MiB'] }
      )
    ),
    passAuthorization: flag('Send the client’s own `Authorization` header to the upstream.', {
      default: false
    }),
    passCookies: list(
      text('A cookie name.'),
      'Cookies of the client that are sent to the upstream. All others are dropped.',
      { default: [], examples: [['theme']] }
    ),
    passRefusedHeaders: list(
      header('The full name of a request header.'),
      'Headers of the client that are sent to the upstream although the gateway normally ' +
        'drops them. Back-ends believe that such headers come from a trusted proxy ' +
        '(`X-Forwarded-*`, `X-User-*`, `X-Scope-OrgID`, …). `check` warns about each.',
      { default: [], examples: [['x-scope-orgid']] }
    ),
    passGetBody: flag(
      'Send the body of a GET to the upstream. By default it is dropped. Only for an upstream ' +
        'that reads bodies of GET: **another one takes the body for the next request, with the ' +
        'identity of whoever comes then.** So each such request has a connection of its own.',
      { default: false }
    ),
    passEncodedSlashes: flag(
      'Take `%2F` in the path (names of queues, keys of objects), and send it as it came. By ' +
        'default it is 400, since two programs may read it as two paths.',
      { default: false }
    ),
    framedByConsole: flag(
      'Let the console, and pages of `server.origins`, show the responses in a frame: PDF ' +
        'files, HTML pages. Only for an upstream that you trust: its pages run as the console’s.',
      { default: false }
    ),
    setCookies: setCookiesSchema,
    redirects: oneOf(
      ['refuse', 'pass'],
      'What happens to a redirect of the upstream to another host: 502, or the browser gets it. ' +
        'Redirects to the upstream itself are rewritten to the public path.',
      { default: 'refuse' }
    )
  },
  'A route to an upstream.',
  { chosenBy: 'upstream' }
)

const answerRoute = closed({ ...common, answer: routeAnswerSchema }, 'A constant answer.', {
  chosenBy: 'answer'
})

const partsRoute = closed(
  {
    ...common,
    parts: neededParts,
    shape: proxied.shape,
    contract: proxied.contract,
    maxShaped: maxShapedSchema
  },
  'A response that is made of parts alone.',
  { chosenBy: 'parts' }
)

export type FallbackConfig = Static<typeof fallback>
type OfUpstream = Static<typeof upstreamRoute>
type Common = Pick<OfUpstream, keyof typeof common>

export type RouteConfig = Common &
  Partial<Omit<OfUpstream, keyof Common>> &
  Partial<Omit<Static<typeof answerRoute>, keyof Common>>

export const route = Type.Unsafe<RouteConfig>(
  Type.Union([upstreamRoute, answerRoute, partsRoute], {
    expected: 'a mapping with upstream, answer or parts',
    description:
      'A public path. Either `upstream`, `answer` or `parts` says what answers it; with an ' +
      'upstream there may be parts too.'
  })
)

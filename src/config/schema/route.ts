/** `routes` of `routes.yaml`: one public path that is proxied. */
import { bodySchema, querySchema } from './request-mapping.ts'
import { Type } from 'typebox'
import { answerSchema } from './answer.ts'
import { dialects, errorStatuses } from './envelope.ts'
import { missingSchema, partsSchema } from './parts.ts'
import { fallbackSchema } from './fallback.ts'
import { proxied } from './proxied.ts'
import { setCookiesSchema } from './set-cookies.ts'
import {
  closed,
  dotted,
  flag,
  header,
  list,
  maxStreamedBytes,
  maybe,
  name,
  oneOf,
  optional,
  pathTemplate,
  size,
  text
} from './primitives.ts'

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
        'Who may call it. `public`: anyone. `session`: every signed-in user. `roles: [admin]`: ' +
        'users with one of these roles.',
      examples: ['public', { roles: ['admin'] }]
    }
  )
)

const websocket = optional(
  {
    maxMessage: size('The largest message, either way. A larger one ends the connection.', {
      default: '1MiB'
    })
  },
  'Takes upgrades to WebSocket, beside ordinary GETs; `websocket: {}` is enough.'
)

export const route = closed(
  {
    path: pathTemplate(
      'The public path. `/*` at its end takes everything below, `:name` one segment. Of several ' +
        'that match the nearest decides.',
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
    answer: answerSchema(
      'The response itself, for a route without an upstream. Names of the session need a route ' +
        'that is not public.'
    ),
    parts: partsSchema,
    missing: missingSchema,
    into: maybe(
      dotted(
        'With `parts`: where the response of the route’s own upstream goes. Default: the parts ' +
          'are added to it.',
        { examples: ['items'] }
      )
    ),
    touch: maybe(
      oneOf(
        ['always', 'never'],
        'Whether a call keeps the session from going idle. Default: `never` for a route named ' +
          '`notices` or with `websocket`, `always` for others.'
      )
    ),
    ...proxied,
    fallback: fallbackSchema,
    cache: oneOf(
      ['off', 'browser'],
      '`browser`: `Cache-Control` of the upstream passes as `private`. `off`: `no-store`. Public ' +
        'routes pass it as it is.',
      { default: 'off' }
    ),
    query: querySchema,
    body: bodySchema,
    upstream: maybe(
      name('An upstream of this file. Optional with `parts` or `answer`.', { names: 'upstream' })
    ),
    websocket,
    dialect: maybe(
      oneOf(
        [...dialects],
        'The envelope of its responses. Default: `envelope.dialect` of `gateway.yaml`.'
      )
    ),
    errorStatus: maybe(
      oneOf(
        [...errorStatuses],
        'The HTTP status of its errors. Default: `envelope.errorStatus` of `gateway.yaml`.'
      )
    ),
    maxBody: maybe(
      size(
        'The maximum size of a request body; `0B`: none is taken. Default: `sizes.body` of ' +
          '`limits.yaml`.',
        { minimum: 0, maximum: maxStreamedBytes, examples: ['50MiB'] }
      )
    ),
    tooLarge: oneOf(
      ['refuse', 'pass'],
      'What becomes of a response that is too large to be shaped. `refuse`: 502 ' +
        '`shape.too-large`. `pass`: it passes unshaped.',
      { default: 'refuse' }
    ),
    passCookies: list(
      text('A cookie name.'),
      'Cookies of the client that are sent to the upstream. All others are dropped.',
      { default: [], examples: [['theme']] }
    ),
    passHeaders: list(
      header('The full name of a request header.'),
      'Headers of the client that are sent although they are normally dropped: `authorization`, ' +
        'and those that back-ends trust as set by a proxy (`check` warns about each).',
      { default: [], examples: [['authorization', 'x-scope-orgid']] }
    ),
    passGetBody: flag(
      'Send the body of a GET. Only to an upstream that reads such bodies: **another one takes it ' +
        'for the next request, with the identity of whoever comes then.**',
      { default: false }
    ),
    passEncodedSlashes: flag(
      'Take `%2F` in the path, and send it as it came. By default it is 400, since two programs ' +
        'may read it as two paths.',
      { default: false }
    ),
    framedByConsole: flag(
      'Let the console, and pages of `server.origins`, show the responses in a frame. Only for ' +
        'an upstream that you trust: its pages run as the console’s.',
      { default: false }
    ),
    setCookies: setCookiesSchema,
    redirects: oneOf(
      ['refuse', 'pass'],
      'What becomes of a redirect to another host. `refuse`: 502. `pass`: the browser gets it. ' +
        'Those to the upstream itself lead to the public path.',
      { default: 'refuse' }
    )
  },
  'A public path that is proxied to an upstream.'
)

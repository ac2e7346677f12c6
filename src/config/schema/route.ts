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
  pathTemplate,
  size,
  text
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

export const route = closed(
  {
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
    answer: answerSchema(
      'The response itself, for a route without an upstream: menus, permission codes, ' +
        '`captchaEnabled: false`. Names of the session need a route that is not public. ' +
        'A request’s body is ignored.'
    ),
    parts: partsSchema,
    missing: missingSchema,
    into: maybe(
      dotted(
        'With `parts`: where to put the response of the route’s own upstream. Default: the ' +
          'parts are added to that response.',
        { examples: ['items'] }
      )
    ),
    touch: maybe(
      oneOf(
        ['always', 'never'],
        'Whether a call resets the session’s idle time. Use `never` for calls that a page ' +
          'repeats by itself. Default: `never` for a route named `notices` or with ' +
          '`websocket`, `always` for ' +
          'others.'
      )
    ),
    ...proxied,
    fallback: fallbackSchema,
    cache: oneOf(
      ['off', 'browser'],
      '`browser`: the browser may keep responses for its user as long as the upstream’s ' +
        '`Cache-Control` says. It passes as `private`, with `Vary: Cookie`; what it says to ' +
        'caches that users share does not. `off`: `no-store`. Public routes pass it as it is.',
      { default: 'off' }
    ),
    query: querySchema,
    body: bodySchema,
    upstream: maybe(
      name('An upstream of this file. Optional with `parts` or `answer`.', { names: 'upstream' })
    ),
    websocket: websocketSchema,
    dialect: maybe(
      oneOf(
        [...dialects],
        'The envelope of this route’s responses. Default: `envelope.dialect` of `gateway.yaml`.'
      )
    ),
    errorStatus: maybe(
      oneOf(
        [...errorStatuses],
        'The HTTP status of this route’s errors. Default: `envelope.errorStatus` of ' +
          '`gateway.yaml`.'
      )
    ),
    maxBody: maybe(
      size(
        'The maximum size of a request body. Default: `sizes.body` of `limits.yaml`. Increase ' +
          'it for uploads. `0B`: none is taken.',
        { minimum: 0, maximum: maxStreamedBytes, examples: ['50MiB'] }
      )
    ),
    tooLarge: oneOf(
      ['refuse', 'pass'],
      'What happens to a response that is too large to be shaped. `refuse`: 502 ' +
        '`shape.too-large`. `pass`: it passes unshaped, byte for byte. It is never truncated.',
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
      'What happens to a redirect of the upstream to another host. `refuse`: 502. `pass`: the ' +
        'browser gets it. Redirects to the upstream itself are rewritten to the public path.',
      { default: 'refuse' }
    )
  },
  'A public path that is proxied to an upstream.'
)

import { type Static, Type } from 'typebox'
import { routeAnswerSchema } from './answer.ts'
import { errorStatuses } from './envelope.ts'
import * as s from './primitives.ts'
import { neededParts, partsSchema, proxied } from './proxied.ts'
import { bodySchema, querySchema } from './request-mapping.ts'

type SetCookie = string | { readonly name: string; readonly sealed: true }

const cookieName = s.anyText

const setCookiesSchema = s.list(
  Type.Unsafe<SetCookie>(
    Type.Union(
      [
        cookieName,
        s.closed(
          {
            name: cookieName,
            sealed: Type.Literal(true, {
              description:
                'The browser gets the value encrypted. The upstream gets its own value back where ' +
                '`passCookies` of a route or sign-in names the cookie.'
            })
          },
          'A cookie that only the upstream reads, such as that of a captcha.'
        )
      ],
      {
        expected: 'the name of a cookie, or { name, sealed: true }',
        description: 'A cookie.'
      }
    )
  ),
  'Cookies that the upstream may set in the browser. Others are dropped.'
)

export const nameOfCookie = (each: SetCookie): string =>
  typeof each === 'string' ? each : each.name

export function plainCookies(setCookies: readonly SetCookie[]): string[] {
  return setCookies.filter(each => typeof each === 'string')
}

export function sealedCookies(setCookies: readonly SetCookie[]): string[] {
  return setCookies.flatMap(each => (typeof each === 'string' ? [] : [each.name]))
}

interface SettingRoute {
  readonly upstream?: string | undefined
  readonly setCookies?: readonly SetCookie[] | undefined
}

/** What the browser keeps sealed for an upstream, by whichever route. */
export function sealedCookiesOf(
  { routes }: { readonly routes: Readonly<Record<string, SettingRoute>> },
  upstream: string
): Set<string> {
  const ofUpstream = Object.values(routes).filter(route => route.upstream === upstream)
  return new Set(ofUpstream.flatMap(({ setCookies = [] }) => sealedCookies(setCookies)))
}

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
        'Who may call it: anyone, every signed-in user, or those with one of these roles.'
    }
  )
)

const common = {
  path: s.pathTemplate(
    'The public path. `/*` takes all below, `:name` one segment. The nearest path decides.',
    { format: 'x-public-path', examples: ['/api/notices', '/api/orders/*', '/api/users/:id/reset'] }
  ),
  methods: s.list(
    s.oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], 'An HTTP method.'),
    'The allowed methods. GET includes HEAD.',
    { default: ['GET'], minItems: 1, uniqueItems: true }
  ),
  access,
  touch: s.may.oneOf(
    ['always', 'never'],
    'Whether a call resets the session’s idle time. Default: `never` for the name ' +
      '`notices` or with `websocket`, else `always`.'
  ),
  keys: s.flag('Let scripts call it with a key (`console-gateway keys create`).'),
  errorStatus: s.may.oneOf(
    [...errorStatuses],
    'The HTTP status of its errors. Default: that of `envelope`.'
  )
}

const fallback = s.closed(
  {
    body: Type.Unknown({ description: 'Answer with this JSON, without a shape or envelope.' }),
    status: s.whole('The status of the fixed response.', {
      minimum: 200,
      maximum: 599,
      default: 200
    })
  },
  'What a GET gets if the upstream cannot be reached, breaks the connection, takes too ' +
    'long, or answers 502, 503 or 504. Default: the error.'
)

const websocket = s.optional(
  {
    maxMessage: s.size('The largest message, either way. A larger one ends the connection.', {
      default: '1MiB'
    })
  },
  'Takes WebSockets, beside ordinary GETs; `websocket: {}` is enough.'
)

const upstreamRoute = s.closed(
  {
    ...common,
    parts: partsSchema,
    into: s.may.dotted(
      'With `parts`: where the route’s own response goes. Default: the parts are added to it.'
    ),
    ...proxied,
    fallback: s.maybe(fallback),
    cache: s.oneOf(
      ['off', 'browser'],
      '`browser`: `Cache-Control` passes as `private`. `off`: `no-store`. Public: as it is.',
      { default: 'off' }
    ),
    query: querySchema,
    body: bodySchema,
    websocket,
    maxBody: s.may.size('The maximum size of a request body; `0B`: none. Default: `sizes.body`.', {
      minimum: 0,
      maximum: s.maxStreamedBytes
    }),
    passCookies: s.list(s.anyText, 'Cookies of the client that it gets. Others are dropped.'),
    passHeaders: s.list(
      s.header('The full name of a request header.'),
      'Headers of the client that are normally dropped: `authorization`, and those that ' +
        'back-ends trust as set by a proxy (`check` warns).',
      { examples: [['authorization', 'x-scope-orgid']] }
    ),
    passGetBody: s.flag(
      'Send the body of a GET. **An upstream that does not read it takes it for the next ' +
        'request, with the identity of whoever comes then.**'
    ),
    passEncodedSlashes: s.flag('Take `%2F` in the path as it came. By default it is 400.'),
    framedByConsole: s.flag(
      'Let the console and pages of `server.origins` frame the responses. Its pages then run ' +
        'as the console’s: only for an upstream that you trust.'
    ),
    setCookies: setCookiesSchema,
    redirects: s.oneOf(
      ['refuse', 'pass'],
      'Of a redirect to another host: `refuse` is 502. Those to the upstream itself are mapped.',
      { default: 'refuse' }
    )
  },
  'A route to an upstream.',
  { chosenBy: 'upstream' }
)

const answerRoute = s.closed({ ...common, answer: routeAnswerSchema }, 'A constant answer.', {
  chosenBy: 'answer'
})

const partsRoute = s.closed(
  {
    ...common,
    parts: neededParts,
    shape: proxied.shape,
    contract: proxied.contract
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
      'A public path, which `upstream`, `answer` or `parts` answers; an upstream may have parts.'
  })
)

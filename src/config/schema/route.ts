import { type Static, Type } from 'typebox'
import { routeAnswerSchema } from './answer.ts'
import { errorStatuses } from './envelope.ts'
import * as s from './primitives.ts'
import { neededParts, partsSchema, proxied } from './proxied.ts'
import { bodySchema, querySchema } from './request-mapping.ts'

const sealedCookie = s.closed('A cookie that only the upstream reads, such as that of a captcha.', {
  name: s.text(),
  sealed: Type.Literal(true, {
    description: 'The browser gets it encrypted, the upstream as it was (`passCookies`).'
  })
})
const setCookie = s.either('A cookie.', [s.text(), sealedCookie], {
  expected: 'the name of a cookie, or { name, sealed: true }'
})

type SetCookie = Static<typeof setCookie>

export const nameOfCookie = (each: SetCookie): string =>
  typeof each === 'string' ? each : each.name

export function sealedCookies(setCookies: readonly SetCookie[]): string[] {
  return setCookies.flatMap(each => (typeof each === 'string' ? [] : [each.name]))
}

/** What the browser keeps sealed for an upstream, by whichever route. */
export function sealedCookiesOf(
  { routes }: { readonly routes: Readonly<Record<string, RouteConfig>> },
  upstream: string
): Set<string> {
  const ofUpstream = Object.values(routes).filter(route => route.upstream === upstream)
  return new Set(ofUpstream.flatMap(({ setCookies = [] }) => sealedCookies(setCookies)))
}

const access = s.either(
  'Who may call it: anyone, every signed-in user, or those with one of these roles.',
  [
    s.oneOf('Anyone, or every signed-in user.', ['public', 'session']),
    s.closed('Users with one of the roles.', {
      roles: s.someOf('One of them is needed.', s.text())
    })
  ],
  {
    default: 'session',
    expected: 'public, session, or roles: [NAME, …]'
  }
)

const common = {
  path: s.publicPathTemplate(
    'The public path. `/*` takes all below, `:name` one segment. The nearest path decides.',
    { examples: ['/api/notices', '/api/orders/*', '/api/users/:id/reset'] }
  ),
  methods: s.list(
    'The allowed methods. GET includes HEAD.',
    s.oneOf('An HTTP method.', ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']),
    { default: ['GET'], minItems: 1, uniqueItems: true }
  ),
  access,
  touch: s.may.oneOf('Whether it counts as use. Default: not for `notices` and `websocket`.', [
    'always',
    'never'
  ]),
  keys: s.flag('Let scripts call it with a key (`console-gateway keys create`).'),
  errorStatus: s.may.oneOf('The status of its errors. Default: as `envelope` says.', errorStatuses)
}

const fallback = s.closed('What a GET gets if the upstream fails, or answers 502, 503 or 504.', {
  body: Type.Unknown({ description: 'Answer 200 with this JSON, without a shape or envelope.' })
})

const websocket = s.optional('Takes WebSockets, beside ordinary GETs; `websocket: {}` is enough.', {
  maxMessage: s.size('A larger message, either way, ends the connection.', { default: '1MiB' })
})

const upstreamRoute = s.closed(
  'A route to an upstream.',
  {
    ...common,
    parts: partsSchema,
    into: s.may.dotted('Where its own response goes. Default: `parts` are added to it.'),
    ...proxied,
    fallback: s.maybe(fallback),
    cache: s.choice('`Cache-Control`: `no-store`, or passed as `private`. Public: as it is.', [
      'off',
      'browser'
    ]),
    query: querySchema,
    body: bodySchema,
    websocket,
    maxBody: s.may.size('Of a request body; `0B`: none. Default: `sizes.body`.', {
      minimum: 0,
      maximum: s.maxStreamedBytes
    }),
    passCookies: s.list('Cookies that it gets. Others are dropped.', s.text()),
    passHeaders: s.headerNames(
      'Headers of the client that are else dropped: credentials, and those that proxies set.',
      { examples: [['authorization', 'x-scope-orgid']] }
    ),
    passGetBody: s.flag(
      'Send bodies of GET. **An upstream that does not read one takes it for the next request, ' +
        'of whoever comes then.**'
    ),
    passEncodedSlashes: s.flag('Take `%2F` in the path as it came. By default it is 400.'),
    framedByConsole: s.flag(
      'Let pages of the console and `server.origins` frame it. Only if you trust the upstream: ' +
        'its pages then run as the console’s.'
    ),
    setCookies: s.list('Cookies that it may set. Others are dropped.', setCookie),
    redirects: s.choice('To another host: `refuse` is 502.', ['refuse', 'pass'])
  },
  { chosenBy: 'upstream' }
)

const answerRoute = s.closed(
  'A constant answer.',
  { ...common, answer: routeAnswerSchema },
  { chosenBy: 'answer' }
)

const { shape, contract } = proxied
const partsRoute = s.closed(
  'A response that is made of parts alone.',
  { ...common, parts: neededParts, shape, contract },
  { chosenBy: 'parts' }
)

export type FallbackConfig = Static<typeof fallback>
type OfUpstream = Static<typeof upstreamRoute>
type Common = Pick<OfUpstream, keyof typeof common>

export type RouteConfig = Common & Partial<OfUpstream & Static<typeof answerRoute>>

export const route = Type.Unsafe<RouteConfig>(
  s.either(
    'A public path, which `upstream`, `answer` or `parts` answers.',
    [upstreamRoute, answerRoute, partsRoute],
    { expected: 'a mapping with upstream, answer or parts' }
  )
)

import { type Static, Type } from 'typebox'
import { type ErrorFormat, errorFormats } from '../../json/error-body.ts'
import * as s from './primitives.ts'
import { upstreamPaging } from './request-mapping.ts'
import { answerTest, outcomesOf } from './response-tests.ts'
import { bodyFormat, expires, logout, token } from './upstream-login.ts'

const names = '`{id}` and other texts of `answer` that say who the user is become their values.'

export const exchange = s.closed('A call for a user’s token. Refused: 403 `route.unknown-user`.', {
  path: s.path('The call (POST) that gives a user’s token.'),
  format: bodyFormat,
  headers: s.headers('Headers, such as the gateway’s own secret.', {
    default: {},
    examples: [{ 'x-service-key': '${SERVICE_KEY}' }]
  }),
  body: s.pairs(`The request body. ${names}`, Type.Unknown(), {
    default: { username: '{username}' },
    examples: [{ grant: 'user', subject: '{id}' }]
  }),
  outcomes: outcomesOf('400, 403, 404 and 422'),
  token,
  expires,
  logout
})

export const jwt = s.closed('A JSON Web Token of 60 seconds for each session.', {
  secret: s.may.signingSecret('Signs with HS256; the back-end has it too.'),
  keys: s.may.someOf(
    'Private keys (P-256, PEM). The first signs (ES256); add a new one as the second.',
    s.secret()
  ),
  claims: s.pairs(
    'Claims beside `iss` (`console-gateway`), `aud` (the name of the upstream), `sub` (the id), ' +
      `\`preferred_username\`, \`name\` and \`roles\`, or in their place. ${names}`,
    Type.Unknown(),
    { examples: [{ sub: '{username}', tenant: '{profile.tenantId}' }] }
  )
})

export type ExchangeConfig = Static<typeof exchange>
export type JwtConfig = Static<typeof jwt>

const styles = 'bearer, cookies or header:NAME'

const csrf = s.optional('The back-end’s CSRF token, sent beside its cookies.', {
  header: s.header('The request header in which the back-end expects it.'),
  cookie: s.may.text('Which of the session’s cookies has it. Default: it is the `token`.', {
    examples: ['XSRF-TOKEN']
  })
})

const credential = s.either(
  'How it gets the token or cookies of a session, or, with `exchange` or `jwt`, its own.',
  [
    Type.String({ pattern: '^(none|bearer|cookies|header:[a-z0-9-]+)$' }),
    s.closed('Which one, and how.', {
      as: s.text('How the upstream gets it.', {
        pattern: '^(bearer|cookies|header:[a-z0-9-]+)$',
        expected: styles,
        default: 'bearer'
      }),
      from: s.may.text('The token’s source; other sessions get 403 `route.credential`.', {
        names: 'source'
      }),
      scheme: s.may.text('The word before the token. Default: `Bearer`, in headers none.', {
        pattern: '^[A-Za-z][A-Za-z0-9_-]{0,31}$',
        expected: 'a word'
      }),
      csrf,
      exchange: s.maybe(exchange),
      jwt: s.maybe(jwt)
    })
  ],
  {
    default: 'none',
    expected: `none, ${styles}, or { as: ${styles} } with \`from\`, \`exchange\` or \`jwt\``
  }
)

export type CsrfConfig = NonNullable<Static<typeof csrf>>
export type CredentialConfig = Static<typeof credential>

const health = s.optional('Checks of each address. Twice no 2xx in two seconds: no requests.', {
  path: s.text('Asked by GET: the whole path, without that of the URL.', {
    pattern: '^/[^\\s?#]*$',
    expected: 'a path that begins with /, such as /healthz'
  }),
  interval: s.duration('The pause between two checks.', { default: '5s' })
})

const errorPaths = (description: string) => s.someOf(description, s.dotted(), { minItems: 0 })

const ownErrors = s.closed('Paths.', {
  message: errorPaths('The paths of the message; the first that leads to a text wins.'),
  fields: s.optional('Where the errors of single fields stand.', {
    at: errorPaths('The paths of an object (name: texts), or of a list of errors.'),
    name: s.maybe(errorPaths('In each error of a list: the paths of the field’s name.')),
    text: s.maybe(errorPaths('In each error of a list: the paths of its text.'))
  })
})
const errorNames = Object.keys(errorFormats)

const errors = Type.Unsafe<keyof typeof errorFormats | ErrorFormat>(
  s.either(
    'Where its JSON errors have their message and those of single fields. Without it ' +
      'routes with a shape take `errorMessage`, `message`, `msg`, `detail` or `error`.',
    [Type.String({ enum: errorNames }), ownErrors],
    {
      expected: `one of ${errorNames.join(', ')}, or { message: [PATH], fields: { at: [PATH] } }`,
      examples: ['drf', { message: ['error.text'], fields: { at: ['error.fields'] } }]
    }
  )
)

const tls = s.optional('TLS of an https upstream. Files are read again when they change.', {
  ca: s.authorities(),
  certificate: s.may.pemFile('A PEM file: the gateway’s certificate.'),
  key: s.may.secret('Its private key, as PEM text.'),
  serverName: s.may.text('The name in the back-end’s certificate, if not that of the URL.', {
    pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
    expected: 'a host name'
  })
})

export const upstream = s.closed('A back-end.', {
  // That there is one is a rule: a preset may have none.
  url: s.maybe(
    s.oneOrMany<string>(
      'Its address, with the path before all of its paths. Of several the least busy is asked.',
      s.url()
    )
  ),
  health,
  connectTimeout: s.duration('How long connecting may take.', { default: '2s' }),
  responseTimeout: s.duration('How long a response may be silent; event streams 5 minutes.', {
    default: '15s'
  }),
  totalTimeout: s.duration('How long a response may take, but for streams.', { default: '10m' }),
  connections: s.count('Requests at a time, beside five times as many event streams.', {
    default: 200
  }),
  queue: s.whole('Requests that wait, 10 seconds at most.', { default: 100 }),
  credential,
  identity: s.flag('Send the headers of `identity` to this upstream.', { default: true }),
  sessionEnded: s.maybe(answerTest('How its session’s end shows: it is 401 `session.upstream`.')),
  errors: s.maybe(errors),
  headers: s.maybe(
    s.headers('Headers that it always gets. `{profile.PATH}` is the user’s.', {
      examples: [{ 'x-api-key': '${ORDERS_API_KEY}', 'x-tenant-id': '{profile.tenantId}' }]
    })
  ),
  module: s.may.moduleFile('Own code for headers that no config can hold, such as a signature.'),
  passHeaders: s.may.someOf(
    'The only client headers that it gets. Default: all but those that only proxies set.',
    s.header(),
    { minItems: 0, examples: [['accept', 'accept-language', 'content-type', 'user-agent']] }
  ),
  paging: upstreamPaging,
  tls
})

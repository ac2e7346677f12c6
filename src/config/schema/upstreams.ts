import { type Static, type TSchema, Type } from 'typebox'
import { type ErrorFormat, errorFormats } from '../../json/error-body.ts'
import * as s from './primitives.ts'
import { upstreamPaging } from './request-mapping.ts'
import { endedTest, outcomesOf } from './response-tests.ts'
import { expires, logout, token } from './upstream-login.ts'

const names = '`{id}` and other texts of `answer` that say who the user is become their values.'

export const exchange = s.closed(
  {
    path: s.path('The path of the call (POST) that gives a user’s token.'),
    format: s.oneOf(['json', 'form'], 'The format of the request body.', { default: 'json' }),
    headers: Type.Record(Type.String({ pattern: s.headerPattern }), s.valueOrSecret('Its value.'), {
      default: {},
      description: 'Headers of the request, such as the gateway’s own secret.',
      examples: [{ 'x-service-key': '${SERVICE_KEY}' }]
    }),
    body: s.pairs(Type.Unknown(), `The request body. ${names}`, {
      default: { username: '{username}' },
      examples: [{ grant: 'user', subject: '{id}' }]
    }),
    outcomes: outcomesOf('400, 403, 404 and 422'),
    token,
    expires,
    logout
  },
  'One call that gives the token of the session’s user: when it is needed, a minute ' +
    'before it expires, and after a response that says it is over (`sessionEnded`, by ' +
    'default 401). A user whom the back-end refuses gets 403 `route.unknown-user`, and ' +
    'stays signed in.'
)

export const jwt = s.closed(
  {
    secret: s.may.signingSecret('Signs with HS256; the back-end has it too.'),
    keys: s.may.someOf(
      s.secret('A private key of the curve P-256, as PEM text.'),
      'Sign with ES256: the first. `endpoints.jwks` shows all. Add a new one as the second, ' +
        'and make it the first when back-ends have read it.',
      { maxItems: 4 }
    ),
    claims: s.pairs(
      Type.Unknown(),
      'Claims beside `iss` (`console-gateway`), `aud` (the name of the upstream), `sub`, ' +
        `\`preferred_username\`, \`name\` and \`roles\`, or in their place. ${names}`,
      { default: {}, examples: [{ sub: '{username}', tenant: '{profile.tenantId}' }] }
    )
  },
  'A JSON Web Token of 60 seconds for each session. `sub` is the id as in `identity`.'
)

export type ExchangeConfig = Static<typeof exchange>
export type JwtConfig = Static<typeof jwt>

interface WrittenCredential {
  readonly from?: string
  readonly as: string
  readonly scheme?: string
  readonly exchange?: ExchangeConfig
  readonly jwt?: JwtConfig
}

export type CredentialConfig = string | WrittenCredential

const styles = 'bearer, cookies or header:NAME'

const common = {
  from: s.maybe(
    s.text('The source of the token; sessions of others get 403 `route.credential`.', {
      names: 'source'
    })
  ),
  scheme: s.may.text('The word before the token. Default: `Bearer` for `bearer`, none in others.', {
    pattern: '^[A-Za-z][A-Za-z0-9_-]{0,31}$',
    expected: 'a word'
  })
}

const form = (expected: string, pattern: string, more: object = {}) =>
  s.text('How the upstream gets it. `bearer` by default with `exchange` or `jwt`.', {
    pattern,
    expected,
    ...more
  })

/** A token in the place of that of the session's source. */
const ownToken = (key: 'exchange' | 'jwt', schema: TSchema) =>
  Type.Object(
    {
      as: form('bearer or header:NAME', '^(bearer|header:[a-z0-9-]+)$', { default: 'bearer' }),
      ...common,
      [key]: schema
    },
    { additionalProperties: false, chosenBy: key }
  )

const credential = Type.Unsafe<CredentialConfig>(
  Type.Union(
    [
      Type.String({ pattern: '^(none|bearer|cookies|header:[a-z0-9-]+)$' }),
      Type.Object(
        { as: form(styles, '^(bearer|cookies|header:[a-z0-9-]+)$'), ...common },
        { additionalProperties: false }
      ),
      ownToken('exchange', exchange),
      ownToken('jwt', jwt)
    ],
    {
      default: 'none',
      expected:
        `none, ${styles}, or { as: ${styles}, from: SOURCE, scheme: WORD }, or the same with ` +
        '`exchange` or `jwt`',
      description:
        'How it gets the token or cookies of a session. `from` names their source where ' +
        'several have some. `exchange` and `jwt` give it a token of its own.'
    }
  )
)

const health = s.optional(
  {
    path: s.text('What is asked by GET: the whole path, without that of the URL before it.', {
      pattern: '^/[^\\s?#]*$',
      expected: 'a path that begins with /, such as /healthz'
    }),
    interval: s.duration('The pause between two checks.', { default: '5s' })
  },
  'Checks of each address. Without a 2xx within two seconds, twice, it gets no requests.'
)

const errorPaths = (description: string) =>
  s.someOf(s.dotted('A path; lists have numbers.'), description, { minItems: 0 })

const ownErrors = s.closed(
  {
    message: errorPaths('The paths of the message; the first that leads to a text wins.'),
    fields: s.optional(
      {
        at: errorPaths('The paths of an object (name: texts), or of a list of errors.'),
        name: s.maybe(errorPaths('In each error of a list: the paths of the field’s name.')),
        text: s.maybe(errorPaths('In each error of a list: the paths of its text.'))
      },
      'Where the errors of single fields stand.'
    )
  },
  'Paths.'
)
const errorNames = Object.keys(errorFormats)

const errors = Type.Unsafe<keyof typeof errorFormats | ErrorFormat>(
  Type.Union([Type.String({ enum: errorNames }), ownErrors], {
    expected:
      `one of ${errorNames.join(', ')}, or ` +
      '{ message: [PATH], fields: { at: [PATH], name: [PATH], text: [PATH] } }',
    description:
      'Where its JSON errors have their message and those of single fields. Without it ' +
      'routes with a shape take `errorMessage`, `message`, `msg` or `error`.',
    examples: ['drf', { message: ['error.text'], fields: { at: ['error.fields'] } }]
  })
)

const tls = s.optional(
  {
    ca: s.may.pemFile('A PEM file of authorities, in the place of those of the system.'),
    certificate: s.may.pemFile('A PEM file with the certificate that it is shown.'),
    key: s.may.secret('Its private key, as PEM text.'),
    serverName: s.may.text(
      'The name in the back-end’s certificate, where it is not that of the URL.',
      { pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$', expected: 'a host name' }
    )
  },
  'TLS of an https upstream. Files are read again when they change.'
)

export const upstream = s.closed(
  {
    url: s.maybe(
      s.oneOrMany<string>(
        s.url('An address.'),
        'The address of the back-end, with the path before every upstream path. Of several with ' +
          'the same path the least busy is asked.',
        {
          ofMany: 'Several addresses.',
          expected:
            'an http:// or https:// address without user, query or fragment, or a list of them'
        }
      )
    ),
    health,
    connectTimeout: s.duration('How long connecting may take.', { default: '2s' }),
    responseTimeout: s.duration(
      'How long a response may be silent; event streams 5 minutes. A route’s `timeout` wins.',
      { default: '15s' }
    ),
    totalTimeout: s.duration('How long a whole response may take. Streams are exempt.', {
      default: '10m'
    }),
    connections: s.whole(
      'How many requests it gets at a time, beside five times as many event streams.',
      { minimum: 1, maximum: 10_000, default: 200 }
    ),
    queue: s.whole('How many requests may wait for a connection, 10 seconds at most.', {
      maximum: 100_000,
      default: 100
    }),
    credential,
    identity: s.flag('Send the headers of `identity` to this upstream.', { default: true }),
    sessionEnded: s.maybe(
      endedTest(
        'How any response shows that the user’s session at the back-end has ended. So does the ' +
          'gateway’s then (401 `session.upstream`).'
      )
    ),
    errors: s.maybe(errors),
    headers: s.maybe(
      Type.Record(Type.String({ pattern: s.headerPattern }), s.valueOrSecret('Its value.'), {
        description:
          'Headers that it always gets. Secrets are references; `{profile.PATH}` is the user’s.',
        examples: [
          { 'accept': 'application/json', 'x-api-key': '${ORDERS_API_KEY}' },
          { 'x-tenant-id': '{profile.tenantId}' }
        ]
      })
    ),
    module: s.may.moduleFile('Own code for headers that no config can hold, such as a signature.'),
    passHeaders: s.may.someOf(
      s.header('A request header.'),
      'The only client headers that it gets. Default: all but those that only proxies set.',
      { minItems: 0, examples: [['accept', 'accept-language', 'content-type', 'user-agent']] }
    ),
    paging: upstreamPaging,
    tls
  },
  'A back-end.'
)

/** The addresses of an upstream. That it has one is a rule: its preset may have none. */
export function urlsOf({ url = [] }: { readonly url?: readonly string[] }): readonly string[] {
  return url
}

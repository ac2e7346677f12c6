/** `exchange` and `jwt` of a `credential`: how a back-end gets to know users of any sign-in. */
import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'
import { outcomesOf } from './response-tests.ts'
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

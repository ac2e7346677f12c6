/** `exchange` and `jwt` of a `credential`: how a back-end gets to know users of any sign-in. */
import { type Static, Type } from 'typebox'
import { userNames } from './answer.ts'
import * as s from './primitives.ts'
import { outcomesOf } from './response-tests.ts'
import { expires, logout, token } from './upstream-login.ts'

const names = `A text that is exactly \`{name}\` becomes that value: ${userNames
  .map(name => `\`{${name}}\``)
  .join(', ')}, \`{profile.MEMBER}\`.`

export const exchange = s.closed(
  {
    path: s.path('The path of the call (POST) that gives a user’s token.'),
    format: s.oneOf(['json', 'form'], 'The format of the request body.', { default: 'json' }),
    headers: Type.Record(Type.String({ pattern: s.headerPattern }), s.valueOrSecret('Its value.'), {
      default: {},
      description: 'Headers of the request, such as the secret by which the gateway is known.',
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
  'One call that gives the token of the session’s user: at the first request that needs it, a ' +
    'minute before it expires, and after a response that says it is over (`sessionEnded`, by ' +
    'default status 401). A user whom the back-end refuses gets 403 `route.unknown-user` here, and ' +
    'stays signed in.'
)

export const jwt = s.closed(
  {
    secret: s.may.secret('Signs with HS256. At least 32 bytes, which the back-end has too.', {
      examples: ['${ORDERS_JWT_SECRET}']
    }),
    keys: s.may.someOf(
      s.secret('A private key of the curve P-256, as PEM text.'),
      'Sign with ES256: the first. `endpoints.jwks` shows the public keys of all. Add a new one as ' +
        'the second, and make it the first when back-ends have read it.',
      { maxItems: 4, examples: [['file:/run/secrets/orders-jwt.pem']] }
    ),
    issuer: s.text('The claim `iss`.', { default: 'console-gateway' }),
    audience: s.may.text('The claim `aud`. Default: the name of the upstream.'),
    claims: s.pairs(
      Type.Unknown(),
      `Claims beside \`sub\`, \`preferred_username\`, \`name\` and \`roles\`, or in their place. ${names}`,
      { default: {}, examples: [{ sub: '{username}', tenant: '{profile.tenantId}' }] }
    )
  },
  'A JSON Web Token (RFC 7519) of 60 seconds that the gateway signs for each session, with either ' +
    '`secret` or `keys`. `sub` is the id as in the headers of `identity`.'
)

export type ExchangeConfig = Static<typeof exchange>
export type JwtConfig = Static<typeof jwt>

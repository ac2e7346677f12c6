/** A credential source of `login.sources`: a back-end’s own sign-in. */
import { Type, type Static } from 'typebox'
import { sourceNameSchema } from './source-name.ts'
import {
  dotted,
  duration,
  flag,
  list,
  name,
  oneOf,
  pairs,
  path,
  text,
  whole
} from './primitives.ts'

const answerTest = (meta: { default: object; description: string }) =>
  Type.Object(
    {
      status: Type.Optional(
        list(whole({ minimum: 100, maximum: 599, description: 'A status.' }), {
          description: 'HTTP statuses that fit.',
          minItems: 1
        })
      ),
      path: Type.Optional(
        dotted({ description: 'A member of the JSON answer.', examples: ['code'] })
      ),
      in: Type.Optional(
        list(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
          description:
            'Values of that member that fit. Without it, the member has to be there and be neither null nor false.',
          minItems: 1
        })
      )
    },
    { additionalProperties: false, minProperties: 1, ...meta }
  )

const expiry = Type.Object(
  {
    path: dotted({
      description: 'Where the answer says when the token ends.',
      examples: ['data.expiresIn']
    }),
    as: oneOf(['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'date'], {
      default: 'seconds',
      description: 'What it says: a time from now, a time since 1970, or a date in text.'
    })
  },
  { additionalProperties: false, description: 'When the token ends.' }
)

export const upstreamLogin = Type.Object(
  {
    kind: Type.Literal('upstream-login', { description: 'A back-end’s own sign-in.' }),
    name: sourceNameSchema('upstream-login:UPSTREAM'),
    upstream: name({ description: 'An upstream of `routes.yaml`.' }),
    path: path({ description: 'Where it takes sign-ins (POST).', examples: ['/auth/login'] }),
    format: oneOf(['json', 'form'], { default: 'json', description: 'How the body is written.' }),
    body: pairs(Type.Unknown(), {
      default: { username: '{username}', password: '{password}' },
      description:
        'The body: `{username}` and `{password}` stand for what the administrator typed, everything else goes as it is.'
    }),
    passExtra: flag({
      default: true,
      description: 'Whether further members of the console’s sign-in body are added.'
    }),
    headers: pairs(Type.String(), { default: {}, description: 'Header fields for the request.' }),
    success: answerTest({
      default: { status: [200] },
      description: 'How a successful sign-in is recognised: all that is given has to fit.'
    }),
    refused: answerTest({
      default: { status: [400, 401, 403, 404, 422] },
      description:
        'How a refusal is recognised. An answer that is neither is a fault of the upstream (502), never a refusal.'
    }),
    user: Type.Object(
      {
        id: dotted({
          description: 'Where the user’s id is in the answer.',
          examples: ['data.user.id']
        }),
        username: Type.Optional(
          dotted({ description: 'The user name; what was typed, without it.' })
        ),
        name: Type.Optional(
          dotted({ description: 'The name for people; the user name, without it.' })
        ),
        roles: Type.Optional(dotted({ description: 'A role, or a list of roles.' })),
        roleMap: pairs(Type.String(), {
          default: {},
          description: 'The back-end’s roles in the console’s words; others stay as they are.',
          examples: [{ ADMINISTRATOR: 'admin' }]
        }),
        profile: Type.Optional(
          dotted({ description: 'An object with more about the user, kept for the profile.' })
        )
      },
      { additionalProperties: false, description: 'Where the answer says who signed in.' }
    ),
    token: Type.Optional(
      dotted({
        description:
          'Where the answer holds the back-end’s token. It stays in the session; the browser never sees it.',
        examples: ['data.token']
      })
    ),
    expires: Type.Optional(expiry),
    refresh: Type.Optional(
      Type.Object(
        {
          path: path({ description: 'Where the back-end renews tokens.' }),
          method: oneOf(['POST', 'PUT', 'GET'], {
            default: 'POST',
            description: 'With this method.'
          }),
          body: pairs(Type.Unknown(), {
            default: {},
            description:
              'The body: `{token}` and `{refreshToken}` stand for what the session holds. The token also goes along as the upstream’s `credential` says.'
          }),
          before: duration({
            default: '60s',
            description: 'How long before its end a token is renewed.'
          }),
          token: dotted({
            description: 'Where the answer holds the new token.',
            examples: ['data.token']
          }),
          expires: Type.Optional(expiry)
        },
        {
          additionalProperties: false,
          description:
            'How the back-end’s token is renewed before it ends. Needs `expires`. A refusal ends the session.'
        }
      )
    ),
    refreshToken: Type.Optional(
      dotted({ description: 'Where the answers to sign-in and renewal hold a refresh token.' })
    ),
    cookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description:
        'Cookies of the answer that stay in the session and go to upstreams with `credential: cookies`.'
    }),
    timeout: duration({ default: '10s', description: 'How long the back-end may take.' }),
    logout: Type.Optional(
      Type.Object(
        {
          path: path({ description: 'Where it takes sign-outs.' }),
          method: oneOf(['POST', 'GET', 'DELETE'], {
            default: 'POST',
            description: 'With this method.'
          })
        },
        {
          additionalProperties: false,
          description:
            'The back-end’s own sign-out, called with the session’s credential. Its failure does not keep our session alive.'
        }
      )
    )
  },
  { additionalProperties: false, title: 'upstream-login' }
)

export type UpstreamLoginConfig = Static<typeof upstreamLogin>
export type AnswerTest = UpstreamLoginConfig['success']

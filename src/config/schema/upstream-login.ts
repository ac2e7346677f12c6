/** A credential source of `login.sources`: the sign-in call of a back-end. */
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
          description: 'HTTP statuses that match.',
          minItems: 1
        })
      ),
      path: Type.Optional(
        dotted({ description: 'The path of a member of the JSON response.', examples: ['code'] })
      ),
      in: Type.Optional(
        list(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
          description:
            'Values of that member that match. Without it, the member must exist and be neither ' +
            'null nor false.',
          examples: [[0, 200]],
          minItems: 1
        })
      )
    },
    { additionalProperties: false, minProperties: 1, ...meta }
  )

const expiry = Type.Object(
  {
    path: dotted({
      description: 'The path of the member that tells when the token expires.',
      examples: ['data.expiresIn']
    }),
    as: oneOf(['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'date'], {
      default: 'seconds',
      description:
        'The unit. `seconds` and `milliseconds` count from now, `epoch-…` from 1970. `date` is ' +
        'a date as text.'
    })
  },
  { additionalProperties: false, description: 'When the token expires.' }
)

export const upstreamLogin = Type.Object(
  {
    kind: Type.Literal('upstream-login', { description: 'The sign-in call of a back-end.' }),
    name: sourceNameSchema('upstream-login:UPSTREAM'),
    upstream: name({ description: 'An upstream of `routes.yaml`.' }),
    path: path({
      description: 'The path of the back-end’s sign-in call (POST).',
      examples: ['/auth/login']
    }),
    format: oneOf(['json', 'form'], {
      default: 'json',
      description: 'The format of the request body.'
    }),
    body: pairs(Type.Unknown(), {
      default: { username: '{username}', password: '{password}' },
      description:
        'The request body. `{username}` and `{password}` are replaced by what the user typed. ' +
        'Everything else is sent as it is.',
      examples: [{ login: '{username}', secret: '{password}' }]
    }),
    passExtra: flag({
      default: true,
      description: 'Add the other members of the console’s sign-in body to the request body.'
    }),
    headers: pairs(Type.String(), {
      default: {},
      description: 'Headers of the request.',
      examples: [{ 'x-client': 'console' }]
    }),
    success: answerTest({
      default: { status: [200] },
      description: 'How to recognise a successful sign-in. All conditions must match.'
    }),
    refused: answerTest({
      default: { status: [400, 401, 403, 404, 422] },
      description:
        'How to recognise a refused sign-in. A response that matches neither `success` nor ' +
        '`refused` is an error of the upstream (502), not a refusal.'
    }),
    user: Type.Object(
      {
        id: dotted({
          description: 'The path of the user’s id.',
          examples: ['data.user.id']
        }),
        username: Type.Optional(
          dotted({
            description: 'The path of the user name. Default: the name that the user typed.',
            examples: ['data.user.login']
          })
        ),
        name: Type.Optional(
          dotted({
            description: 'The path of the display name. Default: the user name.',
            examples: ['data.user.name']
          })
        ),
        roles: Type.Optional(
          dotted({
            description: 'The path of a role or a list of roles.',
            examples: ['data.user.roles']
          })
        ),
        roleMap: pairs(Type.String(), {
          default: {},
          description:
            'Replaces roles of the back-end by roles of the console. Other roles stay as they are.',
          examples: [{ ADMINISTRATOR: 'admin' }]
        }),
        profile: Type.Optional(
          dotted({
            description:
              'The path of an object with more data of the user. It is stored in the session, for ' +
              'the profile.',
            examples: ['data.user']
          })
        )
      },
      { additionalProperties: false, description: 'Where the response tells who signed in.' }
    ),
    token: Type.Optional(
      dotted({
        description:
          'The path of the back-end’s token in the response. The token stays in the session; ' +
          'the browser never sees it.',
        examples: ['data.token']
      })
    ),
    expires: Type.Optional(expiry),
    refresh: Type.Optional(
      Type.Object(
        {
          path: path({
            description: 'The path of the back-end’s call that renews a token.',
            examples: ['/auth/refresh']
          }),
          method: oneOf(['POST', 'PUT', 'GET'], {
            default: 'POST',
            description: 'The method of that call.'
          }),
          body: pairs(Type.Unknown(), {
            default: {},
            description:
              'The request body. `{token}` and `{refreshToken}` are replaced by those of the ' +
              'session. The token is also sent as the upstream’s `credential` says.',
            examples: [{ refreshToken: '{refreshToken}' }]
          }),
          before: duration({
            default: '60s',
            description: 'How long before it expires a token is renewed.'
          }),
          token: dotted({
            description: 'The path of the new token in the response.',
            examples: ['data.token']
          }),
          expires: Type.Optional(expiry)
        },
        {
          additionalProperties: false,
          description:
            'How to renew the back-end’s token before it expires. Needs `expires`. If the ' +
            'back-end refuses, the session ends.'
        }
      )
    ),
    refreshToken: Type.Optional(
      dotted({
        description: 'The path of the refresh token in the responses to sign-in and renewal.',
        examples: ['data.refreshToken']
      })
    ),
    cookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description:
        'Cookies of the response that are kept in the session. Upstreams with `credential: ' +
        'cookies` get them.',
      examples: [['backend_sid']]
    }),
    timeout: duration({
      default: '10s',
      description: 'How long the back-end’s response may take.'
    }),
    logout: Type.Optional(
      Type.Object(
        {
          path: path({
            description: 'The path of the back-end’s sign-out call.',
            examples: ['/auth/logout']
          }),
          method: oneOf(['POST', 'GET', 'DELETE'], {
            default: 'POST',
            description: 'The method of that call.'
          })
        },
        {
          additionalProperties: false,
          description:
            'The back-end’s own sign-out, called with the session’s credential at sign-out. If ' +
            'it fails, the gateway’s session ends all the same.'
        }
      )
    )
  },
  { additionalProperties: false, title: 'upstream-login' }
)

export type UpstreamLoginConfig = Static<typeof upstreamLogin>
export type AnswerTest = UpstreamLoginConfig['success']

/** The further calls of an `upstream-login` source: the user, the renewal, the sign-out. */
import { type TProperties, Type } from 'typebox'
import { answerTest } from './response-tests.ts'
import {
  closed,
  dotted,
  duration,
  flag,
  headerValue,
  maybe,
  oneOf,
  pairs,
  path
} from './primitives.ts'

const placeholders =
  '`{token}` and `{refreshToken}` are replaced by those of the session; everything else is sent ' +
  'as it is.'

/** The form of a call that is made with a session’s credential. */
const form = {
  format: maybe(oneOf(['json', 'form'], 'The format of the request body. Default: `json`.')),
  query: maybe(
    pairs(Type.String(), `Members of the query. ${placeholders}`, {
      examples: [{ refreshToken: '{refreshToken}' }]
    })
  ),
  headers: maybe(
    pairs(headerValue('The value of the header.'), `Headers of the request. ${placeholders}`, {
      examples: [{ 'x-refresh-token': '{refreshToken}' }]
    })
  ),
  sendCredential: maybe(
    flag(
      'Whether the session’s credential is sent too, as the upstream’s `credential` says. ' +
        'Default: `true`. `false`: for back-ends that refuse an expired token even where the ' +
        'body has a refresh token.'
    )
  )
}

export const expiry = Type.Object(
  {
    path: dotted('The path of the member that tells when the token expires.', {
      examples: ['data.expiresIn']
    }),
    as: oneOf(
      ['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'date'],
      'The unit. `seconds` and `milliseconds` count from now, `epoch-…` from 1970. `date` is ' +
        'a date as text. A negative number, an empty text and 0 since 1970 mean that the token ' +
        'does not expire: it is not renewed.',
      { default: 'seconds' }
    )
  },
  { additionalProperties: false, description: 'When the token expires.' }
)

const optionalCall = <T extends TProperties>(members: T, description: string) =>
  maybe(closed(members, description))

export const userCall = optionalCall(
  {
    path: path('The path of the back-end’s call that tells who the user is.', {
      examples: ['/getInfo']
    }),
    method: oneOf(['GET', 'POST'], 'The method of that call.', { default: 'GET' }),
    query: pairs(Type.String(), 'Members of its query.', {
      default: {},
      examples: [{ populate: 'role' }]
    }),
    success: answerTest('How to recognise that it told the user: all conditions must match.', {
      default: { status: [200] }
    }),
    timeout: duration('How long its response may take.', { default: '10s' })
  },
  'A second call, made with the credential that the sign-in gave. The other paths of `user` then ' +
    'read its response. If it fails, the sign-in fails, and the back-end’s session is signed out ' +
    'if `logout` is set.'
)

export const refreshCall = optionalCall(
  {
    path: path('The path of the back-end’s call that renews a token.', {
      examples: ['/auth/refresh']
    }),
    method: oneOf(['POST', 'PUT', 'GET'], 'The method of that call.', { default: 'POST' }),
    body: pairs(
      Type.Unknown(),
      'The request body. `{token}` and `{refreshToken}` are replaced by those of the session.',
      { default: {}, examples: [{ refreshToken: '{refreshToken}' }] }
    ),
    ...form,
    before: duration(
      'How long before it expires a token is renewed. `0s`: when it has expired. While a token ' +
        'has not expired, a quarter of this time at least lies between two renewals of a session ' +
        'in one process, also if one fails or if tokens do not live longer than this.',
      { default: '60s', minimum: 0 }
    ),
    refused: maybe(
      answerTest(
        'How to recognise that the back-end refuses a renewal, which ends the session. ' +
          'Default: the outcome `refused`.'
      )
    ),
    token: dotted('The path of the new token in the response.', { examples: ['data.token'] }),
    expires: maybe(expiry)
  },
  'How to renew the back-end’s token before it expires. Needs `expires`. If the back-end ' +
    'refuses, the session ends.'
)

export const logoutCall = optionalCall(
  {
    path: path('The path of the back-end’s sign-out call.', { examples: ['/auth/logout'] }),
    method: oneOf(['POST', 'GET', 'DELETE'], 'The method of that call.', { default: 'POST' }),
    body: maybe(
      pairs(Type.Unknown(), `The request body. ${placeholders} Default: none.`, {
        examples: [{ refresh_token: '{refreshToken}' }]
      })
    ),
    ...form
  },
  'The back-end’s own sign-out, called with the session’s credential at sign-out. If it fails, ' +
    'the gateway’s session ends all the same. It is not called while another live session of the ' +
    'user has the same token (or, without a token, the same cookies): some back-ends give an ' +
    'account one token for all its sign-ins.'
)

import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'
import { answerTest, outcomesOf } from './response-tests.ts'

const placeholders = 'With `{token}` and `{refreshToken}`.'
export const bodyFormat = s.oneOf(['json', 'form'], 'The format of the body.', { default: 'json' })

const sendCredential = s.flag('Whether the session’s credential is sent too.', { default: true })

export const expires = s.optional(
  {
    path: s.dotted('The member that tells it.'),
    as: s.oneOf(
      ['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds', 'date'],
      'The unit: from now, from 1970 (`epoch-…`), or a date. Negative or empty: never.',
      { default: 'seconds' }
    )
  },
  'When the token expires.'
)

const userCall = s.optional(
  {
    path: s.path('The call that tells who the user is.'),
    method: s.oneOf(['GET', 'POST'], 'The method.', { default: 'GET' }),
    query: s.pairs(Type.String(), 'Members of the query.', { examples: [{ populate: 'role' }] }),
    success: answerTest('How to recognise that it told the user.', { default: { status: [200] } })
  },
  'A second call, with the credential of the sign-in: the other paths of `user` are of it.'
)

const user = s.closed(
  {
    from: userCall,
    id: s.dotted('The user’s id.'),
    username: s.may.dotted('The user name. Default: the name that the user typed.'),
    name: s.may.dotted('The display name. Default: the user name.'),
    roles: s.may.dotted('Roles, also through lists: `roles.code`, `roles.0.code`.'),
    roleMap: s.pairs(Type.String(), 'The console’s roles for the back-end’s. Others stay.', {
      examples: [{ ADMINISTRATOR: 'admin' }]
    }),
    profile: s.may.dotted('An object with more data of the user, kept for the profile.')
  },
  'Who signed in.'
)

const tokenHeader = s.closed(
  { header: s.header('A header of the response.') },
  'A header. A scheme before the token, such as `Bearer`, is left out.'
)
export const token = s.either(
  [s.dotted('A path in the response.'), tokenHeader],
  'Where the back-end’s token is in the response. The browser never sees it.',
  {
    expected: 'a path such as data.token, or { header: authorization }',
    examples: ['data.token', { header: 'authorization' }]
  }
)

const refresh = s.optional(
  {
    path: s.path('The call that renews a token.'),
    method: s.oneOf(['POST', 'PUT', 'GET'], 'The method.', { default: 'POST' }),
    format: bodyFormat,
    body: s.pairs(Type.Unknown(), `The request body. ${placeholders}`, {
      examples: [{ refreshToken: '{refreshToken}' }]
    }),
    query: s.pairs(Type.String(), `Members of the query. ${placeholders}`),
    headers: s.pairs(
      s.headerValue('The value of the header.'),
      `Headers of the request. ${placeholders}`
    ),
    sendCredential,
    refused: s.maybe(answerTest('How the back-end refuses. Default: the outcome `refused`.')),
    token: s.dotted('The new token in the response.'),
    expires
  },
  'How to renew the token, a minute before it `expires`. A refusal ends the session.'
)

export const logout = s.optional(
  {
    path: s.path('The sign-out call.'),
    method: s.oneOf(['POST', 'GET', 'DELETE'], 'The method.', { default: 'POST' }),
    query: s.may.pairs(Type.String(), `Members of the query. ${placeholders}`),
    body: s.may.pairs(Type.Unknown(), `The request body. ${placeholders} Default: none.`, {
      examples: [{ refresh_token: '{refreshToken}' }]
    }),
    sendCredential
  },
  'The back-end’s own sign-out, unless another live session has the same token or cookies.'
)

export const upstreamLogin = s.source('upstream-login', 'The sign-in call of a back-end.', {
  upstream: s.upstreamName('An upstream of `routes.yaml`.'),
  before: s.maybe(s.path('A call (GET) before it, whose `cookies` it sends, such as for CSRF.')),
  path: s.path('The back-end’s sign-in call (POST).'),
  query: s.pairs(Type.String(), 'Members of its query.', { examples: [{ _format: 'json' }] }),
  format: bodyFormat,
  body: s.pairs(Type.Unknown(), 'The request body, with what the user typed.', {
    default: { username: '{username}', password: '{password}' },
    examples: [{ login: '{username}', secret: '{password}' }]
  }),
  passExtra: s.flag('Add other members of the console’s sign-in body.', { default: true }),
  headers: s.pairs(s.headerValue('The value of the header.'), 'Headers of the request.'),
  passHeaders: s.headerNames(
    'Headers of the console’s sign-in that this and `user.from` get (1024 characters).'
  ),
  passCookies: s.list(s.anyText, 'Cookies of the browser that it gets, sealed ones opened.'),
  outcomes: outcomesOf('400, 401, 403, 404 and 422'),
  message: s.may.dotted('The back-end’s message, of which 200 characters are shown.'),
  user,
  token: s.maybe(token),
  renewedToken: s.may.header('A header of any response with a new token.'),
  expires,
  refresh,
  refreshToken: s.may.dotted('The refresh token in sign-ins and renewals.'),
  cookies: s.list(s.anyText, 'Cookies that the session keeps, for `credential: cookies`.'),
  logout
})

export type UpstreamLoginConfig = Static<typeof upstreamLogin>

import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'
import { answerTest, outcomesOf } from './response-tests.ts'

const placeholders = 'With `{token}` and `{refreshToken}`.'
export const bodyFormat = s.choice('The format of the body.', ['json', 'form'])

const sendCredential = s.flag('Whether the session’s credential is sent too.', { default: true })

export const expires = s.optional('When the token expires.', {
  path: s.dotted('The member that tells it, such as `access_token.exp`.'),
  as: s.choice('Its unit: from now, or from 1970 (`epoch-…`). Negative or empty: never.', [
    'seconds',
    'milliseconds',
    'epoch-seconds',
    'epoch-milliseconds',
    'date'
  ])
})

const userCall = s.optional('A second call, of which the other paths of `user` are.', {
  path: s.path('The call that tells who the user is.'),
  method: s.choice('The method.', ['GET', 'POST']),
  query: s.pairs('Members of the query.', s.anyText(), { examples: [{ populate: 'role' }] }),
  success: answerTest('How to recognise that it told the user.', { default: { status: [200] } })
})

const user = s.closed('Who signed in. A path may go on in a JSON Web Token: `token.sub`.', {
  from: userCall,
  id: s.dotted('The user’s id.'),
  username: s.may.dotted('The user name. Default: the name that the user typed.'),
  name: s.may.dotted('The display name. Default: the user name.'),
  roles: s.may.dotted('Roles, also through lists: `roles.code`, `roles.0.code`.'),
  roleMap: s.pairs('The console’s roles for the back-end’s. Others stay.', s.anyText(), {
    examples: [{ ADMINISTRATOR: 'admin' }]
  }),
  profile: s.may.dotted('An object with more data of the user, kept for the profile.')
})

const tokenHeader = s.closed('A header. A scheme before the token, as `Bearer`, is left out.', {
  header: s.header('A header of the response.')
})
export const token = s.either(
  'Where the response has the back-end’s token. The browser never sees it.',
  [s.dotted(undefined, { pattern: '^(\\.|[^.\\s]+(\\.[^.\\s]+)*)$' }), tokenHeader],
  {
    expected: 'a path such as data.token, . for all of it, or { header: authorization }',
    examples: ['data.token', { header: 'authorization' }]
  }
)

const refresh = s.optional('Renews the token a minute before it ends. Refusal ends the session.', {
  path: s.path('The call that renews a token.'),
  method: s.choice('The method.', ['POST', 'PUT', 'GET']),
  format: bodyFormat,
  body: s.pairs(`The request body. ${placeholders}`, Type.Unknown(), {
    examples: [{ refreshToken: '{refreshToken}' }]
  }),
  query: s.pairs(`Members of the query. ${placeholders}`, s.anyText()),
  headers: s.pairs(`Headers of the request. ${placeholders}`, s.headerValue()),
  sendCredential,
  refused: s.maybe(answerTest('How the back-end refuses. Default: the outcome `refused`.')),
  token: s.dotted('The new token in the response.'),
  expires
})

export const logout = s.optional('The back-end’s sign-out, with the last session of a token.', {
  path: s.path('The sign-out call.'),
  method: s.choice('The method.', ['POST', 'GET', 'DELETE']),
  format: bodyFormat,
  headers: s.pairs(`Headers of the request. ${placeholders}`, s.headerValue()),
  query: s.may.pairs(`Members of the query. ${placeholders}`, s.anyText()),
  body: s.may.pairs(`The request body. ${placeholders} Default: none.`, Type.Unknown(), {
    examples: [{ refresh_token: '{refreshToken}' }]
  }),
  sendCredential
})

export const upstreamLogin = s.source('upstream-login', 'The sign-in call of a back-end.', {
  upstream: s.upstreamName('An upstream of `routes.yaml`.'),
  before: s.may.path('A call (GET) before it, whose `cookies` it sends, such as for CSRF.'),
  path: s.path('The back-end’s sign-in call (POST).'),
  query: s.pairs('Members of its query.', s.anyText(), { examples: [{ _format: 'json' }] }),
  format: bodyFormat,
  body: s.pairs('The request body, with what the user typed.', Type.Unknown(), {
    default: { username: '{username}', password: '{password}' },
    examples: [{ login: '{username}', secret: '{password}' }]
  }),
  passExtra: s.flag('Add other members of the console’s sign-in body.', { default: true }),
  headers: s.pairs('Headers of the request.', s.headerValue()),
  passHeaders: s.headerNames('Of the console’s call, also for `user.from` (1024 characters).'),
  passCookies: s.list('Cookies of the browser that it gets, sealed ones opened.', s.text()),
  outcomes: outcomesOf('400, 401, 403, 404 and 422'),
  message: s.may.dotted('The back-end’s message, of which 200 characters are shown.'),
  user,
  token: s.maybe(token),
  renewedToken: s.may.header('A header of any response with a new token.'),
  expires,
  refresh,
  refreshToken: s.may.dotted('The refresh token in sign-ins and renewals.'),
  cookies: s.list('Cookies that the session keeps, for `credential: cookies`.', s.text()),
  logout
})

export type UpstreamLoginConfig = Static<typeof upstreamLogin>

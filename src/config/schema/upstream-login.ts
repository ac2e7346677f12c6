/** A credential source of `login.sources`: the sign-in call of a back-end. */
import { Type, type Static } from 'typebox'
import { expiry, logoutCall, refreshCall, userCall } from './sign-in-calls.ts'
import { outcomes } from './response-tests.ts'
import {
  closed,
  dotted,
  duration,
  flag,
  header,
  headerValue,
  list,
  maybe,
  name,
  oneOf,
  pairs,
  path,
  text
} from './primitives.ts'

const throughLists =
  'A path that meets a list goes on in each of its items, or in one item where the next name is ' +
  'its number: `roles.code`, `errors.0.code`.'

export const upstreamLogin = Type.Object(
  {
    kind: Type.Literal('upstream-login', { description: 'The sign-in call of a back-end.' }),
    upstream: name('An upstream of `routes.yaml`.', { names: 'upstream' }),
    path: path('The path of the back-end’s sign-in call (POST).', { examples: ['/auth/login'] }),
    format: oneOf(['json', 'form'], 'The format of the request body.', { default: 'json' }),
    body: pairs(
      Type.Unknown(),
      'The request body. `{username}` and `{password}` are replaced by what the user typed. ' +
        'Everything else is sent as it is.',
      {
        default: { username: '{username}', password: '{password}' },
        examples: [{ login: '{username}', secret: '{password}' }]
      }
    ),
    passExtra: flag('Add the other members of the console’s sign-in body to the request body.', {
      default: true
    }),
    headers: pairs(headerValue('The value of the header.'), 'Headers of the request.', {
      default: {},
      examples: [{ 'x-client': 'console' }]
    }),
    passHeaders: list(
      header('A request header.'),
      'Headers of the console’s sign-in that the back-end’s sign-in and `user.from` get too. ' +
        'At most 1024 characters each; a longer one is refused (400).',
      { default: [], examples: [['tenant-id', 'accept-language']] }
    ),
    passQuery: list(
      text('A member of the query.'),
      'Members of the query of the console’s sign-in that the back-end’s sign-in gets too. At ' +
        'most 1024 characters each; a longer or repeated one is refused (400).',
      { default: [], examples: [['tenant']] }
    ),
    passCookies: list(
      text('A cookie name.'),
      'Cookies of the browser that the back-end’s sign-in gets too. At most 1024 characters ' +
        'each; a longer one is refused (400). Of those that a route of this upstream has set with ' +
        '`sealed: true`, it gets its own value.',
      { default: [], examples: [['lang']] }
    ),
    outcomes,
    message: maybe(
      dotted(
        'The path of the back-end’s message for the user, in the place of ours: a text without ' +
          'markup, of which 200 characters are shown.',
        { examples: ['msg'] }
      )
    ),
    user: Type.Object(
      {
        from: userCall,
        id: dotted('The path of the user’s id.', { examples: ['data.user.id'] }),
        username: maybe(
          dotted('The path of the user name. Default: the name that the user typed.', {
            examples: ['data.user.login']
          })
        ),
        name: maybe(
          dotted('The path of the display name. Default: the user name.', {
            examples: ['data.user.name']
          })
        ),
        roles: maybe(
          dotted(`The path of a role or a list of roles. ${throughLists}`, {
            examples: ['data.user.roles', 'data.user.roles.roleKey']
          })
        ),
        roleMap: pairs(
          Type.String(),
          'Replaces roles of the back-end by roles of the console. Other roles stay as they are.',
          { default: {}, examples: [{ ADMINISTRATOR: 'admin' }] }
        ),
        profile: maybe(
          dotted(
            'The path of an object with more data of the user. It is stored in the session, for ' +
              'the profile.',
            { examples: ['data.user'] }
          )
        )
      },
      { additionalProperties: false, description: 'Where the response tells who signed in.' }
    ),
    token: maybe(
      Type.Unsafe<string | { readonly header: string }>(
        Type.Union(
          [
            dotted('A path in the response.'),
            closed(
              { header: header('A header of the response.') },
              'A header. A scheme before the token, such as `Bearer`, is left out.'
            )
          ],
          {
            expected: 'a path such as data.token, or { header: authorization }',
            description:
              'Where the back-end’s token is in the response: a path, or a header. The token ' +
              'stays in the session; the browser never sees it.',
            examples: ['data.token', { header: 'authorization' }]
          }
        )
      )
    ),
    renewedToken: maybe(
      header(
        'A header in which the back-end sends a new token with any response. The session takes ' +
          'it over. So it does with `cookies`, without a key.',
        { examples: ['new-token'] }
      )
    ),
    expires: maybe(expiry),
    refresh: refreshCall,
    refreshToken: maybe(
      dotted('The path of the refresh token in the responses to sign-in and renewal.', {
        examples: ['data.refreshToken']
      })
    ),
    cookies: list(
      text('A cookie name.'),
      'Cookies of the response that are kept in the session. Upstreams with `credential: ' +
        'cookies` get them.',
      { default: [], examples: [['backend_sid']] }
    ),
    timeout: duration('How long the back-end’s response may take.', { default: '10s' }),
    logout: logoutCall
  },
  { additionalProperties: false, title: 'upstream-login' }
)

export type UpstreamLoginConfig = Static<typeof upstreamLogin>

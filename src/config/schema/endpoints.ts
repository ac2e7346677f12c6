/** `endpoints` of `routes.yaml`: the endpoints that the gateway answers itself. */
import { answerSchema } from './answer.ts'
import { partsSchema } from './parts.ts'
import { proxied } from './proxied.ts'
import * as s from './primitives.ts'

const methods = (initial: Array<'GET' | 'POST'>) =>
  s.list(s.oneOf(['GET', 'POST'], 'An HTTP method.'), 'The allowed methods. A body is ignored.', {
    default: initial,
    minItems: 1,
    uniqueItems: true
  })

/** The call with which consoles renew their own token. */
const refresh = s.may.closed(
  {
    path: s.path('The path of the refresh call (POST). Its body is not read.', {
      format: 'x-public-path'
    }),
    answer: answerSchema(
      'The response, such as the inert token once more. Default: that of `endpoints.session`.'
    )
  },
  'The call with which consoles renew their own token, by the session cookie alone. It is no ' +
    'use of the session, since a timer makes it. Default: none.'
)

export const endpoints = s.closed(
  {
    login: s.closed(
      {
        path: s.path('The path of the sign-in call (POST).', {
          format: 'x-public-path',
          default: '/api/auth/admin/login'
        }),
        answer: answerSchema(
          'The response to a successful sign-in, without a credential of the session (that fails ' +
            'with `upstream.invalid`). Default: what consoles of the dialect read.'
        )
      },
      'The sign-in endpoint.',
      { default: {} }
    ),
    logout: s.closed(
      {
        path: s.path('The path of the sign-out call.', {
          format: 'x-public-path',
          default: '/api/account/logout'
        }),
        methods: methods(['GET', 'POST']),
        answer: answerSchema(
          'The response to every sign-out, also without a session: a constant. Default: `{}`.'
        )
      },
      'The sign-out endpoint.',
      { default: {} }
    ),
    profile: s.closed(
      {
        path: s.path('The path of the current user’s profile.', {
          format: 'x-public-path',
          default: '/api/account/profile'
        }),
        methods: methods(['GET']),
        upstream: s.may.name(
          'The upstream that knows the user; it is called with GET. Default: the user is what ' +
            'sign-in stored in the session.',
          { names: 'upstream' }
        ),
        rewrite: proxied.rewrite,
        shape: s.may.name(
          'The shape that builds the members of the user, without an envelope: the gateway adds ' +
            'its own.',
          { names: 'shape' }
        ),
        answer: answerSchema(
          'The response, in place of the user with the members that consoles read. `{profile}` is ' +
            'the user after `parts` and `shape`; the other names are of the session.'
        ),
        contract: proxied.contract,
        parts: partsSchema
      },
      'The endpoint of the current user.',
      { default: {} }
    ),
    refresh,
    check: s.may.closed(
      {
        path: s.path('The path of the check (GET).', {
          format: 'x-public-path',
          default: '/api/auth/check'
        }),
        keys: s.flag('Let requests with a key for scripts pass, too.')
      },
      'For proxies that ask before they pass a request on: 204 with the headers of `identity`, ' +
        '401, or 403 without any role of the query (`?role=admin&role=ops`). Default: none.'
    ),
    jwks: s.may.closed(
      {
        path: s.path('The path of the key set (GET).', {
          format: 'x-public-path',
          default: '/.well-known/jwks.json'
        })
      },
      'The public keys of all `jwt.keys` as a JSON Web Key Set (RFC 7517), for everybody. Default: ' +
        'none.'
    ),
    session: s.closed(
      {
        path: s.path(
          'The path of the session endpoint. GET tells how long the session lasts, and does ' +
            'not extend it. Below it: `/extend` (POST), `/list` (GET) and `/close` (POST).',
          { format: 'x-public-path', default: '/api/session' }
        )
      },
      'The session endpoint.',
      { default: {} }
    )
  },
  'Endpoints that the gateway answers itself. Change a path if the console calls another one.',
  { default: {} }
)

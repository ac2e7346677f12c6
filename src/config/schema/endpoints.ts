import { answerSchema } from './answer.ts'
import { partsSchema, proxied } from './proxied.ts'
import * as s from './primitives.ts'

const methods = (initial: Array<'GET' | 'POST'>) =>
  s.list(s.oneOf(['GET', 'POST'], 'An HTTP method.'), 'The allowed methods. A body is ignored.', {
    default: initial,
    minItems: 1,
    uniqueItems: true
  })

const publicPath = (description: string, initial?: string) =>
  s.path(description, { format: 'x-public-path', default: initial })

const refresh = s.optional(
  {
    path: publicPath('The path of the refresh call (POST). Its body is not read.'),
    answer: answerSchema('The response. Default: that of `endpoints.session`.')
  },
  'The call (POST) with which consoles renew their own token. No use of the session.'
)

export const endpoints = s.section(
  {
    login: s.section(
      {
        path: publicPath('The path of the sign-in call (POST).', '/api/auth/admin/login'),
        answer: answerSchema(
          'The response to a sign-in, without a credential of the session (else ' +
            '`upstream.invalid`). Default: what consoles of the dialect read.'
        )
      },
      'The sign-in endpoint.'
    ),
    logout: s.section(
      {
        path: publicPath('The path of the sign-out call.', '/api/account/logout'),
        methods: methods(['GET', 'POST']),
        answer: answerSchema('The response to every sign-out: a constant. Default: `{}`.')
      },
      'The sign-out endpoint.'
    ),
    profile: s.section(
      {
        path: publicPath('The path of the current user’s profile.', '/api/account/profile'),
        methods: methods(['GET']),
        upstream: s.may.upstreamName(
          'The upstream that knows the user, called with GET. Default: sign-in told all.'
        ),
        rewrite: proxied.rewrite,
        timeout: proxied.timeout,
        shape: s.may.shapeName('The shape of the user’s members, without an envelope.'),
        answer: answerSchema(
          'The response, in place of the user. `{profile}` is the user after `parts` and ' +
            '`shape`; the other names are of the session.'
        ),
        contract: proxied.contract,
        parts: partsSchema
      },
      'The endpoint of the current user.'
    ),
    refresh,
    check: s.optional(
      {
        path: publicPath('The path of the check (GET).', '/api/auth/check'),
        keys: s.flag('Let requests with a key for scripts pass, too.')
      },
      'For proxies that ask before they pass a request on: 204 with the headers of ' +
        '`identity`, 401, or 403 without a role of the query (`?role=admin&role=ops`). ' +
        'Default: none.'
    ),
    jwks: s.optional(
      { path: publicPath('The path of the key set (GET).', '/.well-known/jwks.json') },
      'The public keys of all `jwt.keys` as a JSON Web Key Set. Default: none.'
    ),
    session: s.section(
      {
        path: s.path(
          'The path of the session endpoint: GET tells how long it lasts. Below it: `/extend` ' +
            '(POST), `/list` (GET) and `/close` (POST).',
          { format: 'x-public-path', default: '/api/session' }
        )
      },
      'The session endpoint.'
    )
  },
  'Endpoints of the gateway itself. Change a path if the console calls another one.'
)

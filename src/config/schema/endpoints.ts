/** `endpoints` of `routes.yaml`: the endpoints that the gateway answers itself. */
import { answerSchema, inEnvelopeSchema } from './answer.ts'
import { partsSchema } from './parts.ts'
import { proxied } from './proxied.ts'
import { closed, list, maybe, name, oneOf, path } from './primitives.ts'
import { refresh } from './refresh.ts'

const methods = (initial: Array<'GET' | 'POST'>) =>
  list(oneOf(['GET', 'POST'], 'An HTTP method.'), 'The allowed methods. A body is ignored.', {
    default: initial,
    minItems: 1,
    uniqueItems: true
  })

export const endpoints = closed(
  {
    login: closed(
      {
        path: path('The path of the sign-in call (POST).', {
          format: 'x-public-path',
          default: '/api/auth/admin/login'
        }),
        answer: answerSchema(
          'The response to a successful sign-in. Default: `authToken` (empty), `status`, `type` ' +
            'and `currentAuthority`, as the dialect of the envelope places them; nothing with ' +
            '`custom`, `problem` and `none`. No value may be ' +
            'a credential of the session: such a sign-in fails with `upstream.invalid`.'
        )
      },
      'The sign-in endpoint.',
      { default: {} }
    ),
    logout: closed(
      {
        path: path('The path of the sign-out call.', {
          format: 'x-public-path',
          default: '/api/account/logout'
        }),
        methods: methods(['GET', 'POST']),
        answer: answerSchema(
          'The response to every sign-out, also without a session: a constant. Default: an empty ' +
            'object under `data`.'
        )
      },
      'The sign-out endpoint.',
      { default: {} }
    ),
    profile: closed(
      {
        path: path('The path of the current user’s profile.', {
          format: 'x-public-path',
          default: '/api/account/profile'
        }),
        methods: methods(['GET']),
        from: oneOf(
          ['session', 'upstream'],
          'Where the profile comes from. `session`: from what sign-in stored. `upstream`: ' +
            'from a call to `upstream` (always GET). With `parts`, and in `answer`, both meet.',
          { default: 'session' }
        ),
        upstream: maybe(proxied.upstream),
        rewrite: proxied.rewrite,
        timeout: proxied.timeout,
        shape: maybe(
          name(
            'The shape that builds the members of the user. The gateway adds its envelope. If ' +
              'the upstream’s response already has one, the shape needs `unwrap: data`; ' +
              'otherwise the members end up under `data.data`.',
            { names: 'shape' }
          )
        ),
        answer: answerSchema(
          'The response, in place of the current user with the members that consoles read. ' +
            '`{profile}` is the user as the session or the upstream has it, after `parts` and ' +
            '`shape`; the other names are of the session.'
        ),
        inEnvelope: inEnvelopeSchema(
          'The place of the user in the envelope, as for answers: `data`, `flat` or `none`. ' +
            'Default: `data`. `answer` has its own.'
        ),
        contract: proxied.contract,
        parts: partsSchema
      },
      'The endpoint of the current user.',
      { default: {} }
    ),
    refresh,
    check: maybe(
      closed(
        {
          path: path('The path of the check (GET).', {
            format: 'x-public-path',
            default: '/api/auth/check'
          })
        },
        'For proxies that ask before they pass a request on: 204 with the headers of ' +
          '`identity`, 401 without a session, 403 without any of the roles of the query ' +
          '(`?role=admin&role=ops`). `check: {}` is enough. Default: there is none.'
      )
    ),
    session: closed(
      {
        path: path(
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

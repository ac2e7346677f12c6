/** `endpoints` of `routes.yaml`: the paths that the gateway answers itself. */
import { Type } from 'typebox'
import { missingSchema, partsSchema } from './parts.ts'
import { proxied } from './proxied.ts'
import { closed, name, oneOf, path } from './primitives.ts'

export const endpoints = closed(
  {
    login: closed(
      { path: path({ default: '/api/auth/admin/login', description: 'Sign-in (POST).' }) },
      { default: {}, description: 'Sign-in.' }
    ),
    logout: closed(
      { path: path({ default: '/api/account/logout', description: 'Sign-out (GET and POST).' }) },
      { default: {}, description: 'Sign-out.' }
    ),
    profile: closed(
      {
        path: path({ default: '/api/account/profile', description: 'The current user (GET).' }),
        from: oneOf(['session', 'upstream'], {
          default: 'session',
          description: 'Whether the session answers, or an upstream does.'
        }),
        upstream: Type.Optional(proxied.upstream),
        rewrite: proxied.rewrite,
        timeout: proxied.timeout,
        shape: Type.Optional(
          name({
            description:
              'A shape of this file, which makes the user’s members. The gateway puts its envelope around ' +
              'them: an answer that is enveloped already needs `unwrap: data`, or the user’s members stand under `data.data`.'
          })
        ),
        contract: proxied.contract,
        parts: partsSchema,
        missing: missingSchema
      },
      { default: {}, description: 'The current user.' }
    ),
    session: closed(
      {
        path: path({
          default: '/api/session',
          description:
            'What is left of the session (GET, which does not extend it); below it `/extend` (POST), `/list` (GET) and `/close` (POST).'
        })
      },
      { default: {}, description: 'The session itself.' }
    )
  },
  { default: {}, description: 'The paths that the gateway answers itself.' }
)

import { Type } from 'typebox'
import { ldap } from './ldap.ts'
import * as s from './primitives.ts'
import { oidc } from './oidc.ts'
import { upstreamLogin } from './upstream-login.ts'

/** The source of sessions that are keys for scripts; no source of config has this name. */
export const keySource = 'keys'

const usersFile = Type.Object(
  {
    kind: Type.Literal('users-file', {
      description: 'Users in a YAML file, with argon2id hashes of their passwords.'
    }),
    file: s.text('The users file.', { names: 'users file', default: 'users.yaml' })
  },
  { additionalProperties: false, title: 'users-file' }
)

const cipher = s.optional(
  {
    key: Type.String({
      pattern: '^(?:[ -~]{16}|[ -~]{24}|[ -~]{32})$',
      expected: '16, 24 or 32 characters of ASCII',
      description: 'The key in the console’s source, which is no secret.'
    }),
    iv: s.maybe(
      Type.String({
        pattern: '^[ -~]{16}$',
        expected: '16 characters of ASCII',
        description: 'The initialization vector: AES in CBC. Without it: ECB.'
      })
    )
  },
  'How the console encrypts the password (AES, PKCS #7, base64). A plain text stays.'
)

export const login = s.section(
  {
    fields: s.section(
      {
        username: s.text('The member with the user name.', { default: 'username' }),
        password: s.text('The member with the password.', { default: 'password' }),
        remember: s.text('The member that asks for a cookie that outlives the browser.', {
          default: 'autoLogin'
        }),
        cipher
      },
      'The members of the console’s sign-in body.'
    ),
    sources: s.named(
      Type.Union([usersFile, upstreamLogin, ldap, oidc], { description: 'A credential source.' }),
      'The credential sources, asked in this order. Under a new name its users are signed ' +
        'out. Default: the users file `users.yaml`.',
      { minProperties: 1, default: { 'users-file': { kind: 'users-file' } } }
    )
  },
  'Sign-in.'
)

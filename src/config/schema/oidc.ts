/** A credential source of `login.sources`: an OpenID Connect provider. */
import { type Static, Type } from 'typebox'
import {
  anyText,
  closed,
  dotted,
  flag,
  list,
  may,
  maybe,
  pairs,
  path,
  text,
  url
} from './primitives.ts'

const user = closed(
  {
    id: dotted(
      'The path of the user’s id, which must never change or go to another person: mail ' +
        'addresses and user names do.',
      { default: 'sub', examples: ['sub', 'oid'] }
    ),
    username: dotted('The path of the user name. Without a value: the id.', {
      default: 'preferred_username'
    }),
    name: dotted('The path of the display name. Without a value: the user name.', {
      default: 'name'
    }),
    roles: may.dotted(
      'The path of a role or of roles. It goes on in each item of a list. Default: no roles.',
      { examples: ['groups', 'realm_access.roles'] }
    ),
    roleMap: pairs(
      Type.String(),
      'Roles of the console in the place of the provider’s. Other roles stay as they are.',
      { default: {}, examples: [{ 'console-admins': 'admin' }] }
    ),
    profile: list(anyText, 'Claims that are kept for the profile, by their names.', {
      default: ['email', 'picture', 'phone_number']
    })
  },
  'Which claims tell who signed in. A path goes through objects: `realm_access.roles`.',
  { default: {} }
)

export const oidc = Type.Object(
  {
    kind: Type.Literal('oidc', {
      description: 'An OpenID Connect provider, at which users sign in (code flow with PKCE).'
    }),
    issuer: url(
      'The issuer. Below it is `/.well-known/openid-configuration`, which is read at the first ' +
        'sign-in, and then each hour.',
      { examples: ['https://sso.example.com/realms/staff'] }
    ),
    clientId: text('The id of the client that is registered at the provider.'),
    clientSecret: may.secret('Its secret. Without it: a public client, protected by PKCE alone.'),
    scopes: list(
      text('A scope.', { pattern: '^[!#-\\[\\]-~]+$', expected: 'a scope without blanks' }),
      'The scopes that are asked for, beside `openid`. Some providers give a refresh token only ' +
        'for `offline_access`.',
      { default: ['profile'] }
    ),
    path: maybe(
      path(
        'Where the sign-in begins. The provider needs the address of `/callback` below it as ' +
          'redirect URI. Default: `/api/auth/oidc/NAME`.',
        { format: 'x-public-path' }
      )
    ),
    userInfo: flag(
      'Read the claims of the provider’s UserInfo endpoint too. `false`: where all claims are in ' +
        'the ID token, or where the access token is for another API.',
      { default: true }
    ),
    user,
    require: pairs(
      Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
        minItems: 1,
        description: 'The values of which the claim must have one.'
      }),
      'Claims, by their paths, without which nobody is signed in, or stays so at a renewal.',
      { default: {}, examples: [{ groups: ['console-users'], email_verified: [true] }] }
    )
  },
  { additionalProperties: false, title: 'oidc' }
)

/** Where a source's sign-in begins: a public path. Others of the source are below it. */
export function oidcPath(name: string, { path: own }: Pick<OidcConfig, 'path'>): string {
  return own ?? `/api/auth/oidc/${name}`
}

/** The addresses of a source, by what follows its path, with their methods. */
export const oidcPaths = {
  '': ['GET'],
  '/callback': ['GET'],
  '/finish': ['GET'],
  '/logout': ['GET'],
  '/backchannel-logout': ['POST']
} as const

export type OidcConfig = Static<typeof oidc>

import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

const user = s.section(
  {
    id: s.dotted(
      'The claim with the user’s id, which never changes or goes to others, as mail does.',
      { default: 'sub' }
    ),
    username: s.dotted('The path of the user name. Without a value: the id.', {
      default: 'preferred_username'
    }),
    name: s.dotted('The path of the display name. Without a value: the user name.', {
      default: 'name'
    }),
    roles: s.may.dotted('The path of roles, also through lists. Default: none.', {
      examples: ['groups', 'realm_access.roles']
    }),
    roleMap: s.pairs(
      Type.String(),
      'Roles of the console for those of the provider. Others stay.',
      { default: {}, examples: [{ 'console-admins': 'admin' }] }
    ),
    profile: s.list(s.anyText, 'Claims that are kept for the profile, by their names.', {
      default: ['email', 'picture', 'phone_number']
    })
  },
  'Which claims tell who signed in, by their paths.'
)

export const oidc = Type.Object(
  {
    kind: Type.Literal('oidc', {
      description: 'An OpenID Connect provider (code flow with PKCE).'
    }),
    issuer: s.url('The issuer, with `/.well-known/openid-configuration` below it.', {
      examples: ['https://sso.example.com/realms/staff']
    }),
    clientId: s.text('The id of the client that is registered at the provider.'),
    clientSecret: s.may.secret('Its secret. Without it: a public client, protected by PKCE alone.'),
    scopes: s.list(
      s.text('A scope.', { pattern: '^[!#-\\[\\]-~]+$', expected: 'a scope without blanks' }),
      'The scopes beside `openid`. Some providers need `offline_access` for a refresh token.',
      { default: ['profile'] }
    ),
    path: s.maybe(
      s.path(
        'Where sign-in begins; the redirect URI is below, `/callback`. Default: `/api/auth/oidc/NAME`.',
        { format: 'x-public-path' }
      )
    ),
    userInfo: s.flag('Read claims from UserInfo too. `false`: all are in the ID token.', {
      default: true
    }),
    audience: s.may.text(
      'Access tokens with this audience may call routes with `keys: true`. Default: none.'
    ),
    user,
    require: s.pairs(
      Type.Array(Type.Union([Type.String(), Type.Number(), Type.Boolean()]), {
        minItems: 1,
        description: 'The values of which the claim must have one.'
      }),
      'Claims that users must have, also at a renewal, by their paths.',
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

import type { Static } from 'typebox'
import * as s from './primitives.ts'
import { upstreamLogin } from './upstream-login.ts'

const claims = s.section('Which claims tell who signed in, by their paths.', {
  id: s.dotted('The user’s id. It must never change, or go to others as mail does.', {
    default: 'sub'
  }),
  username: s.dotted('The user name. Else the id.', { default: 'preferred_username' }),
  name: s.dotted('The display name. Else the user name.', { default: 'name' }),
  roles: s.may.dotted('Roles, also through lists. Default: none.', {
    examples: ['groups', 'realm_access.roles']
  }),
  roleMap: s.pairs('The console’s roles for the provider’s. Others stay.', s.anyText(), {
    examples: [{ 'console-admins': 'admin' }]
  }),
  profile: s.list('Claims for the profile.', s.text(), {
    default: ['email', 'picture', 'phone_number']
  })
})

export const oidc = s.source('oidc', 'An OpenID Connect provider (code flow with PKCE).', {
  issuer: s.url('The issuer, with `/.well-known/openid-configuration` below it.', {
    examples: ['https://sso.example.com/realms/staff']
  }),
  clientId: s.text('The id of the client at the provider.'),
  clientSecret: s.may.secret('Its secret. Without it: a public client, protected by PKCE alone.'),
  scopes: s.list(
    'Beside `openid`. Some providers need `offline_access` for a refresh token.',
    s.text(undefined, { pattern: '^[!#-\\[\\]-~]+$', expected: 'a scope without blanks' }),
    { default: ['profile'] }
  ),
  path: s.may.publicPath('Where sign-in begins. Default: `/api/auth/oidc/NAME`.'),
  userInfo: s.flag('Read claims from UserInfo too.', { default: true }),
  audience: s.may.text('Access tokens with this audience may call routes with `keys: true`.'),
  user: claims,
  require: s.pairs(
    'Claims that users must have, also at a renewal, by their paths.',
    s.someOf('The claim must have one of these.', s.scalar),
    { examples: [{ groups: ['console-users'], email_verified: [true] }] }
  )
})

/** Where a source's sign-in begins: a public path. */
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

const ldapUrl = s.textOf({
  alsoExpected: s.validUrl,
  pattern: '^ldaps?://[^\\s/?#@]+$',
  expected: 'ldap://HOST:PORT or ldaps://HOST:PORT, without a path'
})
const dn = s.textOf({
  pattern: '^[A-Za-z0-9.-]+ *=.+$',
  expected: 'a distinguished name such as ou=people,dc=example,dc=com'
})
const attribute = s.textOf({
  pattern: '^[A-Za-z][A-Za-z0-9-]*$',
  expected: 'the name of an attribute, such as uid'
})

const entry = s.section('What the entry of a user has.', {
  username: attribute('What users type. Active Directory: `sAMAccountName`.', { default: 'uid' }),
  id: attribute('It must never change, or go to others. Active Directory: `objectGUID`.', {
    default: 'entryUUID'
  }),
  name: attribute('The display name. Else the user name.', { default: 'cn' }),
  profile: s.pairs(
    'The attributes of members of the profile. Several values: a list.',
    attribute(),
    {
      examples: [{ email: 'mail', phone: 'telephoneNumber' }]
    }
  )
})

const groups = s.optional('The groups that give roles, read at each sign-in. Default: no roles.', {
  base: dn('Groups are searched below it.'),
  member: attribute('Entries (`member`) or user names (`memberUid`).', { default: 'member' }),
  nested: s.flag('Members of a group in a group are members of both.'),
  required: s.flag('Refuse users (403 `login.blocked`) whose groups give them no role.'),
  roles: s.may.pairs('Roles by group, by name or DN. Default: each is a role.', s.text(), {
    examples: [{ 'Console Admins': 'admin', 'cn=staff,ou=groups,dc=example,dc=com': 'user' }]
  })
})

export const ldap = s.source('ldap', 'An LDAP directory.', {
  urls: s.someOf('Its servers. The one that answered last is asked first.', ldapUrl(), {
    examples: [['ldaps://ldap-1.example.com', 'ldaps://ldap-2.example.com']]
  }),
  startTls: s.flag('Encrypt `ldap://` before passwords are sent (StartTLS).', { default: true }),
  ca: s.authorities({ restart: false }),
  bind: s.closed('The account of the gateway, which reads users and groups.', {
    dn: dn('The name of its entry.'),
    password: s.secret('Its password.')
  }),
  base: dn('Users are searched below it.'),
  user: entry,
  groups
})

export type LdapConfig = Static<typeof ldap>

/** The source of sessions that are keys for scripts; no source of config has this name. */
export const keySource = 'keys'

const usersFile = s.source('users-file', 'Users in a YAML file, with hashes of their passwords.', {
  file: s.text('The users file.', { names: 'users file', default: 'users.yaml' })
})

const cipher = s.optional('The console encrypts it so (AES, base64). A plain text stays.', {
  key: s.text('The key in the console’s source, which is no secret.', {
    pattern: '^(?:[ -~]{16}|[ -~]{24}|[ -~]{32})$',
    expected: '16, 24 or 32 characters of ASCII'
  }),
  iv: s.may.text('The initialization vector: AES in CBC. Without it: ECB.', {
    pattern: '^[ -~]{16}$',
    expected: '16 characters of ASCII'
  })
})

export const login = s.section('Sign-in.', {
  fields: s.section('The members of the console’s sign-in body.', {
    username: s.text('The member with the user name.', { default: 'username' }),
    password: s.text('The member with the password.', { default: 'password' }),
    remember: s.text('The member that asks to be remembered.', { default: 'autoLogin' }),
    cipher
  }),
  sources: s.named(
    'The credential sources, asked in this order. A new name signs its users out.',
    s.either('A credential source.', [usersFile, upstreamLogin, ldap, oidc], {
      expected: '"kind" to be one of users-file, upstream-login, ldap, oidc'
    }),
    { minProperties: 1, default: { 'users-file': { kind: 'users-file' } } }
  )
})

import { type Static, Type } from 'typebox'
import * as s from './primitives.ts'

const ldapUrl = s.textOf({
  format: 'x-ldap-url',
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

const user = s.section(
  {
    username: attribute('What users type. Active Directory: `sAMAccountName`.', { default: 'uid' }),
    id: attribute(
      'An attribute that never changes or goes to others. Active Directory: `objectGUID`.',
      { default: 'entryUUID' }
    ),
    name: attribute('The display name. Where an entry has none: the user name.', { default: 'cn' }),
    profile: s.pairs(
      attribute('An attribute. One with several values becomes a list.'),
      'Members of the profile, and the attributes that they are read from.',
      { default: {}, examples: [{ email: 'mail', phone: 'telephoneNumber' }] }
    )
  },
  'What the entry of a user has.'
)

const groups = s.optional(
  {
    base: dn('Groups are searched below it.'),
    member: attribute(
      'The members: entries (`member`, `uniqueMember`) or user names (`memberUid`).',
      { default: 'member' }
    ),
    nested: s.flag('Members of a group in a group are members of both.'),
    required: s.flag('Refuse users (403 `login.blocked`) whose groups give them no role.'),
    roles: s.may.pairs(
      Type.String({ minLength: 1 }),
      'Roles by group, by name or DN; others give none. Default: each group is a role.',
      {
        examples: [{ 'Console Admins': 'admin', 'cn=staff,ou=groups,dc=example,dc=com': 'user' }]
      }
    )
  },
  'The groups that give roles, read at each sign-in. Default: no roles.'
)

export const ldap = Type.Object(
  {
    kind: Type.Literal('ldap', { description: 'An LDAP directory.' }),
    urls: s.someOf(
      ldapUrl('`ldaps://` is TLS from the start, `ldap://` becomes TLS by StartTLS.'),
      'Its servers. The one that answered last is asked first.',
      { maxItems: 10, examples: [['ldaps://ldap-1.example.com', 'ldaps://ldap-2.example.com']] }
    ),
    startTls: s.flag('Encrypt `ldap://` before passwords are sent (StartTLS).', { default: true }),
    ca: s.may.pemFile('A PEM file of authorities, in the place of those of the system.'),
    bind: s.closed(
      { dn: dn('The name of its entry.'), password: s.secret('Its password.') },
      'The account of the gateway, which reads users and groups.'
    ),
    base: dn('Users are searched below it.'),
    user,
    groups
  },
  { additionalProperties: false, title: 'ldap' }
)

export type LdapConfig = Static<typeof ldap>

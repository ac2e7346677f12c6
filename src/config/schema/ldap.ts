/** A credential source of `login.sources`: an LDAP directory, such as OpenLDAP or Active Directory. */
import { type Static, Type } from 'typebox'
import {
  closed,
  flag,
  may,
  optional,
  pairs,
  section,
  secret,
  someOf,
  textOf
} from './primitives.ts'

const ldapUrl = textOf({
  format: 'x-ldap-url',
  pattern: '^ldaps?://[^\\s/?#@]+$',
  expected: 'ldap://HOST:PORT or ldaps://HOST:PORT, without a path'
})
const dn = textOf({
  pattern: '^[A-Za-z0-9.-]+ *=.+$',
  expected: 'a distinguished name such as ou=people,dc=example,dc=com'
})
const attribute = textOf({
  pattern: '^[A-Za-z][A-Za-z0-9-]*$',
  expected: 'the name of an attribute, such as uid'
})

const user = section(
  {
    username: attribute(
      'What users type. Active Directory: `sAMAccountName`, or `userPrincipalName`.',
      { default: 'uid' }
    ),
    id: attribute(
      'The id: an attribute that never changes and is never given to another person. Active ' +
        'Directory: `objectGUID`, which becomes the usual text.',
      { default: 'entryUUID' }
    ),
    name: attribute('The display name. Where an entry has none: the user name.', { default: 'cn' }),
    profile: pairs(
      attribute('An attribute. One with several values becomes a list.'),
      'Members of the profile, and the attributes that they are read from.',
      { default: {}, examples: [{ email: 'mail', phone: 'telephoneNumber' }] }
    )
  },
  'What the entry of a user has.'
)

const groups = optional(
  {
    base: dn('Groups are searched below it.'),
    member: attribute(
      'The attribute with the members: names of entries (`member`, `uniqueMember`), or user names ' +
        '(`memberUid`).',
      { default: 'member' }
    ),
    nested: flag('Members of a group in a group are members of both.'),
    required: flag('Refuse users (403 `login.blocked`) whose groups give them no role.'),
    roles: may.pairs(
      Type.String({ minLength: 1 }),
      'The roles of groups, by name or whole DN. ' +
        'Other groups give no role. Without it: each group is a role of its own name.',
      {
        examples: [{ 'Console Admins': 'admin', 'cn=staff,ou=groups,dc=example,dc=com': 'user' }]
      }
    )
  },
  'The groups that give roles, read at each sign-in. Without it users have no role.'
)

export const ldap = Type.Object(
  {
    kind: Type.Literal('ldap', { description: 'An LDAP directory.' }),
    urls: someOf(
      ldapUrl('`ldaps://` is TLS from the start, `ldap://` becomes TLS by StartTLS.'),
      'Its servers. The one that answered last is asked first, the next one where it fails.',
      { maxItems: 10, examples: [['ldaps://ldap-1.example.com', 'ldaps://ldap-2.example.com']] }
    ),
    startTls: flag(
      'Whether `ldap://` becomes TLS before anything is sent. `false`: passwords cross the network ' +
        'in clear.',
      { default: true }
    ),
    ca: may.pemFile('A PEM file of authorities, in the place of those of the system.'),
    bind: closed(
      {
        dn: dn('The name of its entry.', {
          examples: ['cn=console,ou=services,dc=example,dc=com']
        }),
        password: secret('Its password.')
      },
      'The account of the gateway, which searches users and groups. It needs no right to write.'
    ),
    base: dn('Users are searched below it.', { examples: ['ou=people,dc=example,dc=com'] }),
    user,
    groups
  },
  { additionalProperties: false, title: 'ldap' }
)

export type LdapConfig = Static<typeof ldap>

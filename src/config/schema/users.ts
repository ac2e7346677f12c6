/** `users.yaml`: the users of a `users-file` credential source. */
import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const user = Type.Object(
  {
    password: Type.String({
      pattern:
        '^\\$argon2id\\$v=19\\$m=[1-9]\\d{3,6},t=[1-9]\\d{0,2},p=[1-9]\\d?\\$[A-Za-z0-9+/]{11,86}\\$[A-Za-z0-9+/]{22,86}$',
      format: 'x-hash',
      expected: 'an argon2id hash; make one with `console-gateway hash-password`',
      description: 'The argon2id hash of the password. `console-gateway hash-password` makes one.'
    }),
    id: s.may.text('The user’s id, as upstreams get it. Default: the user name.', {
      examples: ['1']
    }),
    name: s.may.text('The display name. Default: the user name.', { examples: ['Alice Admin'] }),
    roles: s.list(
      s.anyText,
      'The user’s roles. The menus of common consoles use `admin` and `user`.',
      {
        examples: [['admin']]
      }
    ),
    disabled: Type.Boolean({ default: false, description: 'Refuse sign-in of this user.' }),
    profile: Type.Record(Type.String({ pattern: '^.+$' }), Type.Unknown(), {
      default: {},
      description:
        'More members of the profile, such as `email`, `avatar`, `title`, `group` and `phone`.',
      examples: [{ email: 'alice@example.com', title: 'Administrator' }]
    })
  },
  { additionalProperties: false, description: 'A user.' }
)

export const usersSchema = Type.Object(
  {
    users: Type.Record(Type.String({ pattern: '^\\S(.{0,253}\\S)?$' }), user, {
      description: 'The users, by the user name with which they sign in.'
    })
  },
  {
    additionalProperties: false,
    title: 'users.yaml',
    description:
      'Users of the `users-file` credential source. A change takes effect without a restart.'
  }
)

export type UsersConfig = Static<typeof usersSchema>

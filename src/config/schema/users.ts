import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

/** Two are computed at once: a higher cost makes sign-ins fail, or the process run out of memory. */
const cost = 'm=(?:[1-9]\\d{3,5}|1\\d{6}|20\\d{5}),t=(?:[1-9]\\d?|100),p=(?:[1-9]|[1-5]\\d|6[0-4])'
const hash = `\\$argon2id\\$v=19\\$${cost}\\$[A-Za-z0-9+/]{11,86}\\$[A-Za-z0-9+/]{22,86}`

const user = Type.Object(
  {
    password: Type.String({
      pattern: `^${hash}$`,
      format: 'x-hash',
      expected:
        'an argon2id hash of at most 2 GiB, 100 passes and 64 lanes; make one with ' +
        '`console-gateway hash-password`',
      description: 'The argon2id hash of the password. `console-gateway hash-password` makes one.'
    }),
    id: s.may.text('The user’s id, as upstreams get it. Default: the user name.'),
    name: s.may.text('The display name. Default: the user name.'),
    roles: s.list(s.anyText, 'The user’s roles; common menus know `admin` and `user`.'),
    disabled: Type.Boolean({ default: false, description: 'Refuse sign-in of this user.' }),
    profile: Type.Record(Type.String({ pattern: '^.+$' }), Type.Unknown(), {
      default: {},
      description: 'More members of the profile.',
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

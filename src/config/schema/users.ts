/** Users of a `users-file` credential source, `users.yaml`. */
import { Type, type Static } from 'typebox'
import { list, text } from './primitives.ts'

const user = Type.Object(
  {
    password: Type.String({
      pattern:
        '^\\$argon2id\\$v=19\\$m=[1-9]\\d{3,6},t=[1-9]\\d{0,2},p=[1-9]\\d?\\$[A-Za-z0-9+/]{11,86}\\$[A-Za-z0-9+/]{22,86}$',
      format: 'x-hash',
      expected: 'an argon2id hash; make one with `console-gateway hash-password`',
      description: 'The password’s argon2id hash. `console-gateway hash-password` makes one.'
    }),
    id: Type.Optional(
      text({ description: 'The user’s id for upstreams; the user name without it.' })
    ),
    name: Type.Optional(text({ description: 'The name for people; the user name without it.' })),
    roles: list(text({ description: 'A role.' }), {
      default: [],
      description: 'The roles. A console’s menus ask for `admin` or `user`.'
    }),
    disabled: Type.Boolean({ default: false, description: 'Whether sign-in is refused.' }),
    profile: Type.Record(Type.String({ pattern: '^.+$' }), Type.Unknown(), {
      default: {},
      description: 'More for the profile: `email`, `avatar`, `title`, `group`, `phone`, …'
    })
  },
  { additionalProperties: false, description: 'A user.' }
)

export const usersSchema = Type.Object(
  {
    users: Type.Record(Type.String({ pattern: '^\\S(.{0,253}\\S)?$' }), user, {
      description: 'The users, by the name with which they sign in.'
    })
  },
  {
    additionalProperties: false,
    title: 'users.yaml',
    description: 'Live config: users of the `users-file` credential source.'
  }
)

export type UsersConfig = Static<typeof usersSchema>

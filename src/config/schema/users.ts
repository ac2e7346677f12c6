import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

/** Two are computed at once: at a higher cost sign-ins fail, or memory runs out. */
const cost = 'm=(?:[1-9]\\d{3,5}|1\\d{6}|20\\d{5}),t=(?:[1-9]\\d?|100),p=(?:[1-9]|[1-5]\\d|6[0-4])'
const hash = `\\$argon2id\\$v=19\\$${cost}\\$[A-Za-z0-9+/]{11,86}\\$[A-Za-z0-9+/]{22,86}`

const user = s.closed('A user.', {
  password: s.text('The hash of the password. `console-gateway hash-password` makes one.', {
    pattern: `^${hash}$`,
    format: 'x-hash',
    expected:
      'an argon2id hash of at most 2 GiB, 100 passes and 64 lanes; make one with ' +
      '`console-gateway hash-password`'
  }),
  id: s.may.text('The user’s id, as upstreams get it. Default: the user name.'),
  name: s.may.text('The display name. Default: the user name.'),
  roles: s.list('The user’s roles; common menus know `admin` and `user`.', s.text()),
  disabled: s.flag('Refuse sign-in of this user.'),
  profile: s.pairs('More members of the profile.', Type.Unknown(), {
    examples: [{ email: 'alice@example.com', title: 'Administrator' }]
  })
})

export const usersSchema = s.closed('Users of a `users-file`. A change needs no restart.', {
  users: s.byUserName('The users, by the name with which they sign in.', user, {
    default: undefined
  })
})

export type UsersConfig = Static<typeof usersSchema>

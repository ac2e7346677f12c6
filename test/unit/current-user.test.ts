import t from 'tap'
import { authorityOf, fillCurrentUser } from '../../src/shaping/answer.ts'
import type { Identity } from '../../src/session/types.ts'

const identity: Identity = {
  id: '7',
  username: 'alice',
  name: 'Alice Admin',
  roles: ['user', 'admin'],
  profile: {}
}
const user = { ...identity, roles: ['user'] }
/** The session’s user, for a back-end that says nothing: no console waits for a name. */
const filled = {
  id: '7',
  userid: '7',
  username: 'alice',
  name: 'Alice Admin',
  avatar: '',
  access: 'admin',
  role: 'Admin'
}
const whole = {
  id: 12,
  userid: 'u12',
  username: 'bob',
  name: 'Bob',
  avatar: '/b.png',
  access: 'editor',
  role: 'Writer',
  tags: [{ key: '1' }]
}
const names = ['id', 'userid', 'username', 'name', 'access', 'role']
const useless = [null, '', {}, [], true].map(value =>
  Object.fromEntries(names.map(name => [name, value]))
)

const profiles: ReadonlyArray<readonly [profile: unknown, expected: object, of?: Identity]> = [
  ...[{}, null, 'text', [{ username: 'x' }], ...useless].map(each => [each, filled] as const),
  ...[null, 5, {}].map(avatar => [{ avatar }, filled] as const),
  [whole, whole],
  [{ id: 12 }, { ...filled, id: 12, userid: '12' }],
  [{ id: 0 }, { ...filled, id: 0, userid: '0' }],
  [{ userid: 'u1' }, { ...filled, id: 'u1', userid: 'u1' }],
  [{ role: 'Admin' }, filled, user],
  [{ access: 'admin' }, filled, user],
  [{ access: 'user' }, { ...filled, access: 'user', role: 'User' }],
  // A word that is no plain role stays as it is in both.
  [{ role: 'ORDER_READ' }, { ...filled, access: 'ORDER_READ', role: 'ORDER_READ' }],
  [{ access: 'orders:read' }, { ...filled, access: 'orders:read', role: 'orders:read' }],
  [{ role: '管理员' }, { ...filled, access: '管理员', role: '管理员' }]
]

t.test('either family’s name of a thing is filled from the other’s, else the session', async t => {
  for (const [profile, expected, of = identity] of profiles) {
    t.strictSame(fillCurrentUser(profile, of), expected, JSON.stringify(profile))
  }
})

t.test('menus get admin where it is among the roles, else the first role, else user', async t => {
  for (const [access, ...roles] of [
    ['admin', 'user', 'admin'],
    ['admin', 'ADMIN', 'x'],
    ['clerk', 'clerk', 'user'],
    ['administrator', 'administrator'],
    ['user']
  ]) {
    t.equal(authorityOf({ ...identity, roles }), access)
  }
})

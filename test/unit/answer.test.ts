/** Names in answers of config, and the current user. By HTTP: http/answers and http/profile. */
import t from 'tap'
import { type AnswerFacts, createAnswer, fillCurrentUser } from '../../src/shaping/answer.ts'
import type { Config } from '../../src/config/schema/config.ts'
import { rawNumber } from '../../src/json/values.ts'
import { steadyClock } from '../../src/steady-clock.ts'

Object.assign(steadyClock, { now: () => 1_000_000, aheadMs: () => 0 })

const config = {
  gateway: { envelope: { inertToken: 'inert' } },
  routes: { permissions: { admin: ['order:read', 'order:write'], user: ['order:read', 'me'] } }
} as unknown as Config

const facts = {
  session: {
    identity: {
      id: '9007199254740993',
      username: 'alice',
      name: 'Alice',
      roles: ['user', 'admin', 'toString'],
      profile: {
        age: 5,
        text: '{username}',
        deep: { list: [1, '{id}'] },
        big: rawNumber('9007199254740993')
      }
    },
    createdAt: 1_000_000
  },
  idleEnd: 1_200_000,
  absoluteEnd: 1_500_999
} as unknown as AnswerFacts

const render = (json: unknown, given = facts) => createAnswer(config, { json }).render(given)

t.test('a text that is exactly {name} becomes the value, with its type', async t => {
  for (const [name, value] of Object.entries({
    'id': '9007199254740993',
    'username': 'alice',
    'name': 'Alice',
    'roles': ['user', 'admin', 'toString'],
    'role': 'admin',
    'access': 'admin',
    'permissions': ['order:read', 'me', 'order:write'],
    'token': 'inert',
    'refreshToken': 'inert',
    'issuedAt': 1_000_000,
    'idleEndsAt': 1_200_000,
    'absoluteEndsAt': 1_500_999,
    'expiresIn': 500,
    'profile.age': 5,
    // What was filled in is not expanded again.
    'profile.text': '{username}',
    'profile.deep.list': [1, '{id}'],
    // What the profile does not have is null, also a member of its prototype.
    'profile.none': null,
    'profile.age.x': null,
    'profile.constructor': null
  })) {
    t.strictSame(render({ in: [`{${name}}`] }), { in: [value] }, name)
  }
  t.equal(JSON.stringify(render('{profile.big}')), '9007199254740993')
  const literals = ['{}', 'a {id}', '{id} ', '{{id}}', '{id}{name}', 5, null, true, [], {}]
  t.strictSame(render(literals), literals)
  t.equal(render(undefined), null)
  const json: unknown = JSON.parse('{"__proto__": {"polluted": "{name}"}}')
  t.equal(JSON.stringify(render(json)), '{"__proto__":{"polluted":"Alice"}}')
})

t.test('the clock, the profile and the roles are those of the request', async t => {
  const times = ['{issuedAt}', '{idleEndsAt}', '{absoluteEndsAt}', '{expiresIn}']
  const wallClock = [1_000_000, 1_250_000, 1_550_999, 500]
  const { aheadMs } = steadyClock
  steadyClock.aheadMs = () => 50_000
  t.after(() => (steadyClock.aheadMs = aheadMs))
  t.strictSame(render(times), wallClock)
  const profile = { nick: 'al' }
  t.strictSame(render(['{profile.nick}'], { ...facts, profile }), ['al'])
  const identity = { ...facts.session.identity, roles: [] }
  const nobody = { ...facts, session: { ...facts.session, identity } }
  t.strictSame(render(['{role}', '{access}', '{permissions}'], nobody), ['', 'user', []])
})

const { identity } = facts.session
const having = (...roles: string[]) => ({ ...identity, roles })
/** The session’s user, for a back-end that says nothing: no console waits for a name. */
const filled = {
  id: identity.id,
  userid: identity.id,
  username: 'alice',
  name: 'Alice',
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

const profiles: ReadonlyArray<readonly [profile: unknown, expected: object, of?: typeof identity]> =
  [
    ...[{}, null, 'text', [{ username: 'x' }], ...useless].map(each => [each, filled] as const),
    ...[null, 5, {}].map(avatar => [{ avatar }, filled] as const),
    [whole, whole],
    [{ id: 12 }, { ...filled, id: 12, userid: '12' }],
    [{ id: 0 }, { ...filled, id: 0, userid: '0' }],
    [{ userid: 'u1' }, { ...filled, id: 'u1', userid: 'u1' }],
    [{ role: 'Admin' }, filled, having('user')],
    [{ access: 'admin' }, filled, having('user')],
    [{}, filled, having('ADMIN', 'x')],
    [{}, { ...filled, access: 'admins', role: 'Admins' }, having('admins', 'user')],
    [{}, { ...filled, access: 'user', role: 'User' }, having()],
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

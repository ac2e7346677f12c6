/** The names in answers of config. Where they stand: http/answers.test.ts. */
import t from 'tap'
import { type AnswerFacts, createAnswer } from '../../src/shaping/answer.ts'
import type { Config } from '../../src/config/schema/config.ts'
import { rawNumber } from '../../src/json/values.ts'
import { steadyClock } from '../../src/steady-clock.ts'

const config = {
  gateway: { envelope: { inertToken: 'inert' } },
  routes: { permissions: { admin: ['order:read', 'order:write'], user: ['order:read', 'me'] } }
} as unknown as Config

const facts: AnswerFacts = {
  session: {
    id: 'public',
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
    source: 'users-file',
    remembered: false,
    createdAt: 1_000_000,
    idleMs: 200_000,
    address: '',
    agent: ''
  },
  idleEnd: 1_200_000,
  absoluteEnd: 1_500_999,
  now: 1_000_000
}

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

import t from 'tap'
import { type AnswerFacts, createAnswer } from '../../src/shaping/answer.ts'
import type { AnswerConfig } from '../../src/config/schema/answer.ts'
import type { Config } from '../../src/config/schema/config.ts'
import { rawNumber } from '../../src/json/values.ts'

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
    absoluteEnd: 1_500_999,
    idleMs: 200_000,
    address: '',
    agent: ''
  },
  idleEnd: 1_200_000,
  now: 1_000_000,
  aheadMs: 0
}

const render = (json: unknown, more: Partial<AnswerConfig> = {}, given = facts) =>
  createAnswer(config, { json, ...more }).render(given)

t.test('times are those of the wall clock', async t => {
  const json = {
    from: '{issuedAt}',
    idle: '{idleEndsAt}',
    end: '{absoluteEndsAt}',
    left: '{expiresIn}'
  }
  t.same(render(json, {}, { ...facts, aheadMs: 50_000 }), {
    from: 1_050_000,
    idle: 1_250_000,
    end: 1_550_999,
    left: 500
  })
})

t.test('a text that is exactly {name} becomes the value, with its type', async t => {
  t.same(
    render({
      id: '{id}',
      username: '{username}',
      name: '{name}',
      roles: '{roles}',
      role: '{role}',
      access: '{access}',
      permissions: '{permissions}',
      token: '{token}',
      refreshToken: '{refreshToken}',
      issuedAt: '{issuedAt}',
      idleEndsAt: '{idleEndsAt}',
      absoluteEndsAt: '{absoluteEndsAt}',
      expiresIn: '{expiresIn}',
      nested: [{ age: '{profile.age}' }, '{profile.deep.list}']
    }),
    {
      id: '9007199254740993',
      username: 'alice',
      name: 'Alice',
      roles: ['user', 'admin', 'toString'],
      role: 'admin',
      access: 'admin',
      permissions: ['order:read', 'me', 'order:write'],
      token: 'inert',
      refreshToken: 'inert',
      issuedAt: 1_000_000,
      idleEndsAt: 1_200_000,
      absoluteEndsAt: 1_500_999,
      expiresIn: 500,
      nested: [{ age: 5 }, [1, '{id}']]
    }
  )
})

t.test('everything else stays as it is', async t => {
  const literals = ['{}', 'a {id}', '{id} ', '{{id}}', '{id}{name}', 5, null, true, [], {}]
  t.same(render(literals), literals)
  t.same(render(undefined), null)
})

t.test('what was filled in is not expanded again, and its digits stay', async t => {
  t.same(render('{profile.text}'), '{username}')
  t.equal(JSON.stringify(render('{profile.big}')), '9007199254740993')
  t.equal((render('{profile}') as { text: string }).text, '{username}')
})

t.test('a member that the profile does not have is null, also one of its prototype', async t => {
  t.same(render(['{profile.none}', '{profile.age.x}', '{profile.constructor}']), [null, null, null])
})

t.test('a profile of the request stands in for that of sign-in', async t => {
  t.same(render(['{profile.nick}', '{id}'], {}, { ...facts, profile: { nick: 'al' } }), [
    'al',
    '9007199254740993'
  ])
})

t.test('__proto__ is a member like others', async t => {
  const json: unknown = JSON.parse('{"__proto__": {"polluted": "{id}"}, "b": {"__proto__": 1}}')
  const value = render(json) as Record<string, unknown>
  t.equal(
    JSON.stringify(value),
    '{"__proto__":{"polluted":"9007199254740993"},"b":{"__proto__":1}}'
  )
  t.equal(Object.getPrototypeOf(value), Object.prototype)
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
})

t.test('byRole: the first of its roles that the user has wins', async t => {
  const byRole = { root: 'r', admin: { who: '{username}' }, user: 'u' }
  t.same(render('other', { byRole }), { who: 'alice' })
  t.same(render('other', { byRole: { root: 'r' } }), 'other')
  t.same(render('other', { byRole: { user: 'u', admin: 'a' } }), 'u')
})

t.test('an answer without names of the session needs none', async t => {
  const { status, placement, render: value } = createAnswer(config, { json: { a: [1] } })
  t.same([status, placement, value()], [200, 'data', { a: [1] }])
  t.throws(() => createAnswer(config, { json: ['{id}'] }).render(), /{id} of an answer/)
  t.match(createAnswer(config, { status: 404, inEnvelope: 'none' }), {
    status: 404,
    placement: 'none'
  })
})

t.test('a user without roles: {role} is empty, {access} is user', async t => {
  const identity = { ...facts.session.identity, roles: [] }
  const given = { ...facts, session: { ...facts.session, identity } }
  t.same(render(['{role}', '{access}', '{permissions}'], {}, given), ['', 'user', []])
})

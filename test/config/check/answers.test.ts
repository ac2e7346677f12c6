import t from 'tap'
import { loadConfig } from '../../../src/config/load/load.ts'
import { ConfigError } from '../../../src/config/schema/faults.ts'
import { configFolder } from '../../support/gateway.ts'

async function faultsOf(routes: Record<string, unknown>): Promise<string[]> {
  const folder = await configFolder({ routes })
  try {
    loadConfig(folder, {})
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults
      .filter(({ severity }) => severity === 'fault')
      .map(({ path, message }) => `${path}: ${message}`)
  }
}

const login = (answer: unknown) => ({ endpoints: { login: { answer } } })

t.test('a name that is not in the list is a fault, with the nearest one', async t => {
  t.same(await faultsOf(login({ json: { user: '{username}', a: ['{profile.b.c}'] } })), [])
  t.match(await faultsOf(login({ json: { list: [{ user: '{user_name}' }] } })), [
    /^endpoints\.login\.answer\.json\.list\.0\.user: there is no name \{user_name\}\. Did you mean "username"\?/
  ])
  t.match(await faultsOf(login({ json: 1, byRole: { admin: '{sessionId}' } })), [
    /^endpoints\.login\.answer\.byRole\.admin: there is no name \{sessionId\}/
  ])
  t.match(await faultsOf(login({ json: ['{id.x}', '{profile.}', '{__proto__}'] })), [
    /json\.0: \{id\} has no members: only \{profile\.MEMBER\} names one/,
    /json\.1: a name is missing between the dots of \{profile\.\}/,
    /json\.2: there is no name \{__proto__\}/
  ])
})

t.test('a name in a member called __proto__ is checked too', async t => {
  t.match(await faultsOf(login({ json: JSON.parse('{"__proto__": {"a": "{nobody}"}}') })), [
    /there is no name \{nobody\}/
  ])
})

t.test('a sign-in answers with a success that has a body', async t => {
  t.same(await faultsOf(login({ json: 1, status: 201 })), [])
  t.match(await faultsOf(login({ json: 1, status: 401 })), [/from 200 to 299/])
  for (const status of [204, 205, 302, 304]) {
    t.match(await faultsOf(login({ json: 1, status })), [/a status with a body/], String(status))
  }
})

t.test('`inEnvelope: flat` needs members', async t => {
  t.same(await faultsOf(login({ json: '{profile}', inEnvelope: 'flat' })), [])
  t.match(await faultsOf(login({ json: '{roles}', inEnvelope: 'flat' })), [/must be a mapping/])
  t.match(await faultsOf(login({ json: {}, byRole: { admin: [] }, inEnvelope: 'flat' })), [
    /byRole\.admin: must be a mapping/
  ])
})

const route = (more: object) => ({ routes: { r: { path: '/api/r', ...more } } })

t.test('without a session only constants are allowed', async t => {
  const json = { id: '{id}' }
  t.same(await faultsOf(route({ answer: { json, byRole: { admin: 1 } } })), [])
  t.match(await faultsOf(route({ access: 'public', answer: { json } })), [
    /^routes\.r\.answer\.json\.id: \{id\} needs a session/
  ])
  t.match(await faultsOf(route({ access: 'public', answer: { json: 1, byRole: { admin: 1 } } })), [
    /byRole: has no effect: no session/
  ])
  t.match(await faultsOf({ endpoints: { logout: { answer: { json } } } }), [/needs a session/])
})

t.test('keys without effect beside an answer are faults', async t => {
  const answer = { json: 1 }
  t.same(await faultsOf(route({ answer, methods: ['POST'], touch: 'never' })), [])
  for (const [key, value] of Object.entries({
    shape: 's',
    timeout: '3s',
    cache: 'browser',
    passCookies: ['a'],
    query: { drop: ['a'] }
  })) {
    t.ok(
      (await faultsOf(route({ answer, [key]: value }))).includes(
        `routes.r.${key}: has no effect beside \`answer\``
      ),
      key
    )
  }
  t.ok(
    (
      await faultsOf({
        upstreams: { b: { url: 'http://127.0.0.1:9' } },
        ...route({ answer, upstream: 'b' })
      })
    ).includes('routes.r.upstream: has no effect beside `answer`')
  )
  t.match(await faultsOf(route({})), [/needs an upstream, parts or an answer/])
})

t.test('an error as a constant answer has no success envelope', async t => {
  t.same(await faultsOf(route({ answer: { json: {}, status: 410, inEnvelope: 'none' } })), [])
  t.match(await faultsOf(route({ answer: { json: {}, status: 410 } })), [/inEnvelope: none/])
})

t.test('a profile has one place in the envelope, and the status of its upstream', async t => {
  const profile = (more: object) => ({
    upstreams: { b: { url: 'http://127.0.0.1:9' } },
    endpoints: { profile: { from: 'upstream', upstream: 'b', ...more } }
  })
  t.same(await faultsOf(profile({ inEnvelope: 'flat' })), [])
  t.same(await faultsOf(profile({ answer: { json: '{profile}', inEnvelope: 'flat' } })), [])
  t.match(await faultsOf(profile({ answer: { json: 1, status: 201 }, inEnvelope: 'none' })), [
    /profile\.inEnvelope: has no effect: set `answer\.inEnvelope`/,
    /profile\.answer\.status: has no effect/
  ])
})

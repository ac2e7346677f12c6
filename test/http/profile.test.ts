/** The current user, as consoles ask for it: from the session, from a back-end, and from both. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const path = '/api/account/profile'
const alias = '/api/currentUser'

const users: Readonly<Record<string, object>> = {
  '/me': { code: 200, result: { uid: 42, loginName: 'al', roleName: 'Admin' } },
  '/nick': { result: { nick: '{id}', avatar: 'a.png' } }
}
const backend = await testUpstream(t.teardown, (incoming, response, seen) => {
  if (seen.url === '/broken') incoming.socket.destroy()
  const user = users[seen.url]
  if (user !== undefined) json(200, user)(incoming, response, seen)
})

/** Asks as alice for the profile of a gateway of its own. */
async function profileOf(t: Test, profile: object, steps: readonly object[] = []) {
  const gateway = await testGateway(t.after, {
    backend: backend.url,
    routes: {
      aliases: { [alias]: path },
      permissions: { admin: ['*'] },
      endpoints: { profile },
      shapes: { me: steps.length > 0 ? steps : [{ unwrap: 'result' }] }
    }
  })
  const cookie = await gateway.signIn()
  return async (method = 'GET', more: object = {}, asked = path) =>
    await gateway.call(asked, { method, cookie, ...more })
}

t.test('from the session: both families of console find their names', async t => {
  const ask = await profileOf(t, {})
  const answer = await ask()
  t.match(answer, {
    status: 200,
    json: {
      ok: true,
      success: true,
      data: {
        id: '1',
        userid: '1',
        username: 'alice',
        name: 'Alice Admin',
        role: 'Admin',
        access: 'admin',
        avatar: '',
        email: 'alice@example.com'
      }
    }
  })
  t.equal(answer.headers.get('cache-control'), 'no-store')
  for (const more of [{}, { cookie: '' }]) {
    const [get, head] = [await ask('GET', more), await ask('HEAD', more)]
    t.same([head.status, head.text], [get.status, ''])
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      t.equal(head.headers.get(name), get.headers.get(name), name)
    }
  }
})

t.test('from an upstream: shaped, filled up, enveloped', async t => {
  const rename = { rename: { uid: 'id', loginName: 'username', roleName: 'role' } }
  const steps = [{ unwrap: 'result' }, rename]
  const ask = await profileOf(t, { upstream: 'b', rewrite: '/me', shape: 'me' }, steps)
  const data = {
    id: 42,
    userid: '42',
    username: 'al',
    name: 'Alice Admin',
    role: 'Admin',
    access: 'admin',
    avatar: ''
  }
  const expected = { ok: true, code: 0, message: 'OK', success: true, data }
  for (const each of [path, alias]) t.same((await ask('GET', {}, each)).json, expected)
  t.match(backend.seen.at(-1), {
    method: 'GET',
    url: '/me',
    headers: { 'x-user-id': '1', 'x-user-name': 'alice', 'x-user-roles': 'admin,user' }
  })
})

t.test('an upstream at fault is 504 or 502, never 401, and keeps the cookie', async t => {
  for (const [status, errorCode, at] of [
    [504, 'upstream.timeout', { rewrite: '/silent', timeout: '80ms' }],
    [502, 'upstream.reset', { rewrite: '/broken' }]
  ] as const) {
    const ask = await profileOf(t, { upstream: 'b', ...at })
    const failed = await ask()
    t.match(failed, { status, json: { errorCode } })
    t.same(failed.headers.getSetCookie(), [])
  }
})

t.test('an answer from both: {profile} is the user of the upstream', async t => {
  const json = { userInfo: '{profile}', name: '{profile.nick}', codes: '{permissions}' }
  const at = { upstream: 'b', rewrite: '/nick', shape: 'me' }
  const ask = await profileOf(t, { ...at, methods: ['GET', 'POST'], answer: { json } })
  const data = { userInfo: { nick: '{id}', avatar: 'a.png' }, name: '{id}', codes: ['*'] }
  const before = backend.seen.length
  for (const [method, more] of [
    ['GET', {}],
    ['POST', {}],
    ['POST', { json: { a: 1 } }],
    ['POST', { body: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } }]
  ] as const) {
    t.same((await ask(method, more)).json.data, data, JSON.stringify(more))
    const seen = backend.seen.at(-1)
    const headers = { 'content-type': undefined, 'content-length': undefined }
    t.match(seen, { method: 'GET', url: '/nick', headers })
    t.equal(seen?.body.length, 0)
  }
  t.equal((await ask('HEAD')).status, 200)
  t.equal((await ask('POST', { headers: { 'sec-fetch-site': 'cross-site' } })).status, 403)
  t.equal(backend.seen.length, before + 5, 'the refused one did not reach it')
})

/** Users whose ids have more digits than a JavaScript number holds. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { signInAt } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'

/** Alike to JavaScript: both are the double 1234567890123456800. */
const ids = { ann: '1234567890123456789', ben: '1234567890123456790' }
const names = ['ann', 'ben'] as const

const backend = await testUpstream(t.after, (_request, response, { url, body }) => {
  response.setHeader('content-type', 'application/json')
  if (url !== '/login') return response.end('{}')
  const { username } = JSON.parse(body.toString()) as { username: keyof typeof ids }
  const id = ids[username]
  return response.end(
    `{"token":"t-${username}","user":{"id":${id},"team":{"lead":${id},"size":3}}}`
  )
})
const { gateway: source, routes } = signInAt(backend.url, {
  body: { username: '{username}', password: '{password}' },
  passExtra: true,
  user: { id: 'user.id', profile: 'user.team' },
  token: 'token'
})
const gateway = await testGateway(t.after, {
  gateway: { ...source, session: { perUser: { max: 2 } } },
  routes: {
    ...routes,
    routes: {
      orders: { path: '/api/orders', upstream: 'b' },
      once: { path: '/api/once', upstream: 'b' }
    }
  },
  limits: { limits: { once: { by: 'user', max: 1, window: '1h', routes: ['once'] } } }
})
const signIn = async (member: string) =>
  await gateway.call('/api/auth/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"username":"ann","password":"${password}",${member}}`
  })
const both = async () => [await gateway.signIn('ann'), await gateway.signIn('ben')] as const
/** What becomes of a call with each of these cookies. */
const statuses = async (cookies: readonly string[], path = '/api/orders') => {
  const found: number[] = []
  for (const cookie of cookies) found.push((await gateway.call(path, { cookie })).status)
  return found
}

t.test('back-end, session and profile are told each user’s own id, digit by digit', async t => {
  for (const [index, cookie] of (await both()).entries()) {
    const id = ids[names[index] as keyof typeof ids]
    await gateway.call('/api/orders', { cookie })
    t.equal(backend.seen.at(-1)?.headers['x-user-id'], id)
    t.equal((await gateway.call('/api/session', { cookie })).json.data.user.id, id)
    const profile = await gateway.call('/api/account/profile', { cookie })
    t.match(profile.text, `"lead":${id},"size":3`)
    t.equal(profile.json.data.userid, id)
  }
})

t.test('each lists and closes their own sessions only', async t => {
  const [ann, ben] = await both()
  await gateway.call('/api/session/close', { cookie: ann, json: { others: true } })
  t.equal((await gateway.call('/api/session/list', { cookie: ann })).json.total, 1)
  const closed = await gateway.call('/api/session/close', { cookie: ann, json: { all: true } })
  t.equal(closed.json.data.closed, 1)
  t.same(await statuses([ann, ben]), [401, 200])
})

t.test('operators list and close the sessions of one of them only', async t => {
  const [ann, ben] = await both()
  const listed = await (await gateway.ops(`/ops/api/sessions?user=${ids.ann}`)).json()
  t.equal((listed as { sessions: unknown[] }).sessions.length, 1)
  const closed = await gateway.ops('/ops/api/sessions/close', { json: { user: ids.ann } })
  t.match(await closed.json(), { closed: 1 })
  t.same(await statuses([ann, ben]), [401, 200])
})

t.test('a limit by user counts each of them alone', async t => {
  const [ann, ben] = await both()
  t.same(await statuses([ann, ann, ben], '/api/once'), [200, 429, 200])
})

t.test('sign-ins of one evict no session of the other', async t => {
  const [ann] = await both()
  await both()
  await gateway.signIn('ben')
  t.same(await statuses([ann]), [200])
})

t.test('a sign-in passes on other members with all their digits', async t => {
  t.equal((await signIn(`"tenant":${ids.ann}`)).status, 200)
  t.match(backend.seen.at(-1)?.body.toString(), `"tenant":${ids.ann}`)
})

const malformed = [
  '"__proto__":{"a":1}',
  '"\\u005f_proto__":1',
  '"a":[1,{"b":[{"__proto__":null}]}]',
  '"constructor":{"prototype":{"a":1}}',
  '"const\\u0072uctor":{"prototype":1}',
  `"a":${'['.repeat(2000)}{"__proto__":1}${']'.repeat(2000)}`
]
const sound = ['"a":"__proto__"', '"constructor":{"name":"Gaudí"}', '"prototype":1']

t.test('a sign-in body that would replace a prototype is malformed', async t => {
  for (const member of malformed) {
    const answer = await signIn(member)
    t.match(answer, { status: 400, json: { errorCode: 'request.malformed' } }, member)
  }
  for (const member of sound) t.equal((await signIn(member)).status, 200, member)
})

t.end()

/** Users whose ids have more digits than a JavaScript number holds. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

/** Alike to JavaScript: both are the double 1234567890123456800. */
const ids = { ann: '1234567890123456789', ben: '1234567890123456790' }
const names = ['ann', 'ben'] as const

const backend = await testUpstream(t.teardown, (_request, response, { url, body }) => {
  response.setHeader('content-type', 'application/json')
  if (url !== '/login') return response.end('{}')
  const { username } = JSON.parse(body.toString()) as { username: keyof typeof ids }
  const id = ids[username]
  return response.end(
    `{"token":"t-${username}","user":{"id":${id},"team":{"lead":${id},"size":3}}}`
  )
})
const gateway = await testGateway(t.teardown, {
  gateway: { session: { perUser: { max: 2 } } },
  backend: backend.url,
  source: {
    body: { username: '{username}', password: '{password}' },
    passExtra: true,
    user: { id: 'user.id', profile: 'user.team' },
    token: 'token'
  },
  routes: { routes: { orders: {}, once: {} } },
  limits: { limits: { once: { by: 'user', max: 1, window: '1h', routes: ['once'] } } }
})
const both = async () => [await gateway.signIn('ann'), await gateway.signIn('ben')] as const
/** What becomes of a call with each of these cookies. */
const statuses = async (cookies: readonly string[], path = '/api/orders') =>
  await Array.fromAsync(cookies, async cookie => await gateway.status(path, { cookie }))

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

t.test('each lists and closes their own sessions only, and so do operators', async t => {
  const [ann, ben] = await both()
  const { call, opsJson } = gateway
  await call('/api/session/close', { cookie: ann, json: { others: true } })
  t.match((await call('/api/session/list', { cookie: ann })).json, { total: 1 })
  t.match(await opsJson(`sessions?user=${ids.ann}`), { sessions: { length: 1 } })
  t.match(await opsJson('sessions/close', { user: ids.ann }), { closed: 1 })
  t.same(await statuses([ann, ben]), [401, 200])
})

t.test('a limit counts each alone, and sign-ins of one evict none of the other', async t => {
  const [ann, ben] = await both()
  t.same(await statuses([ann, ann, ben], '/api/once'), [200, 429, 200])
  for (let times = 0; times < 2; times++) await gateway.signIn('ben')
  t.same(await statuses([ann]), [200])
})

t.test('a sign-in passes on other members with all their digits', async t => {
  const headers = { 'content-type': 'application/json' }
  const body = `{"username":"ann","password":"${password}","tenant":${ids.ann}}`
  await gateway.call('/api/auth/admin/login', { method: 'POST', headers, body })
  t.match(backend.seen.at(-1)?.body.toString(), `"tenant":${ids.ann}`)
})

import t, { type Test } from 'tap'
import { password, testGateway, type TestGateway } from '../support/gateway.ts'
import { signInAt } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'

/** Alike to JavaScript: both are the double 1234567890123456800. */
const ids: Record<string, string> = { ann: '1234567890123456789', ben: '1234567890123456790' }

/** A gateway before a back-end with its own sign-in, whose users have ids of 19 digits. */
async function longIds(
  t: Test,
  { limits = {}, session = {} }: { limits?: object; session?: object } = {}
): Promise<{ gateway: TestGateway; toldIds: () => unknown[] }> {
  const backend = await testUpstream(t.after, (_request, response, { url, body }) => {
    response.setHeader('content-type', 'application/json')
    if (url !== '/login') return response.end('{}')
    const { username } = JSON.parse(body.toString()) as { username: string }
    response.end(
      `{"token":"t-${username}","user":{"id":${ids[username]},"team":{"lead":${ids[username]},"size":3}}}`
    )
  })
  const gateway = await testGateway(t.after, {
    gateway: {
      session,
      login: {
        sources: {
          b: {
            kind: 'upstream-login',
            upstream: 'b',
            path: '/login',
            body: { username: '{username}', password: '{password}' },
            user: { id: 'user.id', profile: 'user.team' },
            token: 'token'
          }
        }
      }
    },
    routes: {
      upstreams: { b: { url: backend.url, credential: 'bearer' } },
      routes: { orders: { path: '/api/orders', upstream: 'b' } }
    },
    limits: { limits: { 'signed-in': { by: 'user', max: 1000, window: '1m' }, ...limits } }
  })
  const toldIds = () =>
    backend.seen
      .filter(({ url }) => url === '/api/orders')
      .map(({ headers }) => headers['x-user-id'])
  return { gateway, toldIds }
}

const orders = '/api/orders'
const opsClose = (gateway: TestGateway, body: object) =>
  gateway.ops('/ops/api/sessions/close', { json: body })

t.test('the back-end is told each user’s own id, digit by digit', async t => {
  const { gateway, toldIds } = await longIds(t)
  for (const name of ['ann', 'ben']) {
    await gateway.call(orders, { cookie: await gateway.signIn(name) })
  }
  t.same(toldIds(), [ids['ann'], ids['ben']])
})

t.test('the session and the profile tell each user’s own id and numbers', async t => {
  const { gateway } = await longIds(t)
  for (const name of ['ann', 'ben']) {
    const cookie = await gateway.signIn(name)
    const session = await gateway.call('/api/session', { cookie })
    t.equal(session.json.data.user.id, ids[name])
    const profile = await gateway.call('/api/account/profile', { cookie })
    t.match(profile.text, `"lead":${ids[name]},"size":3`)
    t.equal(profile.json.data.userid, ids[name])
  }
})

t.test('each lists and closes their own sessions only', async t => {
  const { gateway } = await longIds(t)
  const [ann, ben] = [await gateway.signIn('ann'), await gateway.signIn('ben')]
  t.equal((await gateway.call('/api/session/list', { cookie: ann })).json.total, 1)
  const closed = await gateway.call('/api/session/close', { cookie: ann, json: { all: true } })
  t.equal(closed.json.data.closed, 1)
  t.same(
    [
      (await gateway.call(orders, { cookie: ann })).status,
      (await gateway.call(orders, { cookie: ben })).status
    ],
    [401, 200]
  )
})

t.test('operators list and close the sessions of one of them only', async t => {
  const { gateway } = await longIds(t)
  const [ann, ben] = [await gateway.signIn('ann'), await gateway.signIn('ben')]
  const listed = (await (await gateway.ops(`/ops/api/sessions?user=${ids['ann']}`)).json()) as {
    sessions: unknown[]
  }
  t.equal(listed.sessions.length, 1)
  t.match(await (await opsClose(gateway, { user: ids['ann'] })).json(), { closed: 1 })
  t.same(
    [
      (await gateway.call(orders, { cookie: ann })).status,
      (await gateway.call(orders, { cookie: ben })).status
    ],
    [401, 200]
  )
})

t.test('a limit by user counts each of them alone', async t => {
  const { gateway } = await longIds(t, { limits: { user: { by: 'user', max: 1, window: '1h' } } })
  const [ann, ben] = [await gateway.signIn('ann'), await gateway.signIn('ben')]
  const statuses = []
  for (const cookie of [ann, ann, ben]) {
    statuses.push((await gateway.call(orders, { cookie })).status)
  }
  t.same(statuses, [200, 429, 200])
})

t.test('a sign-in of one evicts no session of the other', async t => {
  const { gateway } = await longIds(t, { session: { perUser: { max: 1 } } })
  const [ann] = [await gateway.signIn('ann'), await gateway.signIn('ben')]
  t.equal((await gateway.call(orders, { cookie: ann })).status, 200)
})

t.test('a sign-in passes on other members with all their digits', async t => {
  const seen: string[] = []
  const backend = await testUpstream(t.after, (_request, response, { body }) => {
    seen.push(body.toString())
    response.setHeader('content-type', 'application/json').end('{"user":{"id":1}}')
  })
  const gateway = await testGateway(
    t.after,
    signInAt(backend.url, {
      passExtra: true,
      body: { username: '{username}', password: '{password}' },
      user: { id: 'user.id' }
    })
  )
  const answer = await gateway.call('/api/auth/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: `{"username":"ann","password":"${password}","tenant":${ids['ann']}}`
  })
  t.equal(answer.status, 200)
  t.match(seen[0], `"tenant":${ids['ann']}`)
})

t.test('a sign-in body that would replace a prototype is malformed', async t => {
  const { gateway } = await longIds(t)
  const signIn = (member: string) =>
    gateway.call('/api/auth/admin/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"username":"ann","password":"${password}",${member}}`
    })
  for (const member of [
    '"__proto__":{"a":1}',
    '"\\u005f_proto__":1',
    '"a":[1,{"b":[{"__proto__":null}]}]',
    '"constructor":{"prototype":{"a":1}}',
    '"const\\u0072uctor":{"prototype":1}',
    `"a":${'['.repeat(2000)}{"__proto__":1}${']'.repeat(2000)}`
  ]) {
    const answer = await signIn(member)
    t.match(answer, { status: 400, json: { errorCode: 'request.malformed' } }, member)
  }
  for (const member of ['"a":"__proto__"', '"constructor":{"name":"Gaudí"}', '"prototype":1']) {
    t.equal((await signIn(member)).status, 200, member)
  }
})

/** A back-end whose own session of the user has ended: the console's session ends with it. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

type Answer = readonly [status: number, headers: Record<string, string>, body: string]
const json = { 'content-type': 'application/json' }
const fine: Answer = [200, json, '{"code":0,"data":[1]}']
/** What it answers to ordinary calls, one after the other; the last one goes on. */
let answers: Answer[] = [fine]
const backend = await testUpstream(t.teardown, ({ url }, response) => {
  const login: Answer = [200, json, '{"code":0,"token":"t","user":{"id":"1","name":"anna"}}']
  const [status, headers, body] =
    url === '/login' ? login : ((answers.length > 1 ? answers.shift() : answers[0]) ?? fine)
  response.writeHead(status, headers).end(body)
})
/** What says of each upstream that its session is over. */
const tests = {
  code: { path: 'code', in: [401, 'EXPIRED'] },
  status: { status: [401, 419] },
  page: { status: [302], location: ['/login', '/sso/'] },
  none: undefined
}
const { url } = backend
const upstreams = Object.entries(tests).map(([name, sessionEnded]) => {
  return [name, { url, credential: 'bearer', sessionEnded }] as const
})
const routes = Object.keys(tests).flatMap(upstream => [
  [upstream, { upstream, methods: ['GET', 'POST'] }] as const,
  [`${upstream}-shaped`, { upstream, shape: 'unwrapped' }] as const
])
const gateway = await testGateway(t.teardown, {
  backend: url,
  source: {
    upstream: 'code',
    outcomes: [
      { is: 'refused', path: 'code', in: [1] },
      { is: 'success', path: 'code', in: [0] }
    ],
    token: 'token',
    user: { id: 'user.id', username: 'user.name' }
  },
  routes: {
    upstreams: Object.fromEntries(upstreams),
    shapes: { unwrapped: [{ unwrap: 'data' }] },
    routes: {
      ...Object.fromEntries(routes),
      // Of a part alone, which may even be missing.
      parts: { parts: { a: { upstream: 'status', rewrite: '/a', required: false } } }
    }
  }
})
const signIn = async () => await gateway.signIn('anna')
const calls = async (path: string, cookie: string, method = 'GET') => {
  const before = backend.seen.length
  const more = method === 'POST' && { json: {} }
  const { status, json: body } = await gateway.call(`/api${path}`, { method, cookie, ...more })
  return { status, code: body?.errorCode, asked: backend.seen.length - before }
}
const over = { status: 401, code: 'session.upstream' }
const kept = { status: 200, code: undefined }

const ended: ReadonlyArray<readonly [name: string, path: string, answer: Answer]> = [
  ['a code in a 200', '/code', [200, json, '{"code":401,"msg":"认证失败"}']],
  ['a code as text', '/code', [200, json, '{"code":"EXPIRED"}']],
  ['a code on a shaped route', '/code-shaped', [200, json, '{"code":401}']],
  ['its own 401', '/status', [401, json, '{"message":"Unauthenticated."}']],
  ['a part’s 401', '/parts', [401, json, '{}']],
  ['a 419 that is a page', '/status-shaped', [419, { 'content-type': 'text/html' }, '<p>expired']],
  ['a redirect to its sign-in page', '/page', [302, { location: '/login?next=/x' }, '']],
  ['one with its own address', '/page-shaped', [302, { location: `${backend.url}/sso/in` }, '']]
]
for (const [name, path, answer] of ended) {
  t.test(`case 8, U1: the session ends, once, with 401: ${name}`, async t => {
    answers = [fine]
    const [cookie, other] = [await signIn(), await signIn()]
    answers = [answer]
    t.match(await calls(path, cookie), { ...over, asked: 2 }, 'after it was asked once more')
    t.match(await calls(path, cookie), { ...over, asked: 0 })
    const session = await gateway.call('/api/account/profile', { cookie })
    t.equal(session.status, 401, 'nothing says that the user is signed in')
    answers = [fine]
    t.match(await calls(path, other), kept, 'another session goes on')
    t.match(await calls(path, await signIn()), kept)
  })
}

t.test('case 8: a response that is contradicted ends nothing', async t => {
  answers = [fine]
  const cookie = await signIn()
  const [, , gone] = ended[3] as (typeof ended)[number]
  for (let count = 0; count < 3; count++) {
    answers = [gone, fine]
    t.match(await calls('/status', cookie), { ...kept, asked: 2 })
  }
  // As of a back-end that cannot look up its sessions for a moment, while a page makes many calls.
  answers = [gone]
  t.match(await calls('/status', cookie, 'POST'), { status: 503, asked: 1 })
  answers = [gone, fine]
  t.match(await calls('/status', cookie), { ...kept, asked: 2 })
})

t.test('case 8: what may not be sent twice is not: the second such response counts', async t => {
  answers = [fine]
  const cookie = await signIn()
  answers = [[401, json, '{}']]
  t.match(await calls('/status', cookie, 'POST'), { status: 503, asked: 1 })
  answers = [fine]
  t.match(await calls('/status', cookie), kept, 'the back-end knows the user')
  answers = [[401, json, '{}']]
  t.match(await calls('/status', cookie, 'POST'), { status: 503, asked: 1 })
  t.match(await calls('/status', cookie, 'POST'), { ...over, asked: 1 })
})

t.test('case 8: a back-end that fails signs nobody out', async t => {
  answers = [fine]
  const [cookie, other] = [await signIn(), await signIn()]
  answers = [
    [500, json, '{}'],
    [200, json, '{"code":401}']
  ]
  t.match(await calls('/code', other), { status: 500 })
  for (let count = 0; count < 4; count++) {
    t.match(await calls('/code', cookie), { status: 503, code: 'upstream.error', asked: 1 })
  }
  answers = [fine]
  t.match(await calls('/code', cookie), kept)
})

t.test('case 8: without the key nothing is recognised: a 401 is the back-end’s own', async t => {
  answers = [fine]
  const cookie = await signIn()
  const body = { code: 401, message: 'no such licence' }
  answers = [[401, json, JSON.stringify(body)]]
  const passed = await gateway.call('/api/none', { cookie })
  t.match(passed, { status: 401, json: body })
  t.ok(passed.headers.get('x-session-idle-in'), 'what the session has left is told')
  const shaped = await gateway.call('/api/none-shaped', { cookie })
  t.match(shaped, { status: 401, json: { errorCode: 'upstream.error', showType: 2 } })
  answers = [fine]
  t.match(await calls('/none', cookie), kept)
  for (const path of ['/api/none', '/api/none-shaped']) {
    const signedOut = await gateway.call(path)
    t.match(signedOut, { status: 401, json: { errorCode: /^session\./, showType: 9 } })
    t.notOk(signedOut.headers.get('x-session-idle-in'))
  }
})

for (const [what, expiresIn] of [['nears its end', 30] as const, ['is over', undefined] as const]) {
  t.test(`case 8: a token that ${what} is renewed once, and no call sees it`, async t => {
    let [valid, refused] = [expiresIn === undefined ? 't2' : 't1', 0]
    const [begun, all] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    if (expiresIn === undefined) begun.resolve()
    // As yudao and GitLab, it ends the former token before it answers with the new one.
    const { url, seen } = await testUpstream(t.after, async (call, response) => {
      const isRenewal = call.url === '/renew'
      if (isRenewal) {
        valid = 't2'
        begun.resolve()
        await all.promise
      } else if (call.url !== '/login') await begun.promise
      const isFine = call.url !== '/orders' || call.headers.authorization === `Bearer ${valid}`
      if (!isFine && ++refused === 6) all.resolve()
      const token = isRenewal ? { token: 't2', expiresIn: 3600 } : { token: 't1', expiresIn }
      response.writeHead(isFine ? 200 : 401, json)
      response.end(JSON.stringify({ id: '1', refresh: 'r', ...token }))
    })
    const { signIn: enter, status } = await testGateway(t.after, {
      backend: { url, credential: 'bearer', sessionEnded: { status: [401] } },
      source: {
        token: 'token',
        refreshToken: 'refresh',
        ...(expiresIn && { expires: { path: 'expiresIn' } }),
        refresh: { path: '/renew', body: { refresh: '{refreshToken}' }, token: 'token' }
      },
      routes: { routes: { orders: { path: '/orders', methods: ['GET', 'POST'] } } }
    })
    const cookie = await enter('anna')
    const made = [{}, { json: {} }, {}, { json: {} }, {}, {}].map(more =>
      status('/orders', { cookie, ...more })
    )
    t.same(await Promise.all(made), [200, 200, 200, 200, 200, 200])
    t.equal(seen.filter(each => each.url === '/renew').length, 1)
  })
}

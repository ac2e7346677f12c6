import { Signer } from '@fastify/cookie'
import t from 'tap'
import { hashOf } from '../../support/users.ts'
import { stopClock, wallClock } from '../../support/clock.ts'
import { cookieOf, password, testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const path = '/api/auth/admin/login'
const right = { username: 'alice', password }

t.test('a right password opens a session and answers as both kinds of console expect', async t => {
  const gateway = await testGateway(t.after)
  const answer = await gateway.call(path, {
    json: { ...right, type: 'mobile-or-so', autoLogin: false }
  })
  t.equal(answer.status, 200)
  t.match(answer.json, {
    ok: true,
    code: 0,
    message: 'OK',
    success: true,
    data: { authToken: '', status: 'ok' },
    status: 'ok',
    type: 'mobile-or-so',
    currentAuthority: 'admin'
  })
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.match((await gateway.call('/api/account/profile', { cookie: cookieOf(answer) })).json, {
    data: { username: 'alice', userid: '1' }
  })
  t.match(
    gateway.log.find(({ event }) => event === 'login'),
    { user: 'alice', source: 'users-file' }
  )
})

t.test(
  'the cookie is opaque, HttpOnly, SameSite=Strict, without Domain, and ends with the browser',
  async t => {
    const gateway = await testGateway(t.after)
    const cookie =
      (await gateway.call(path, { json: right })).headers
        .getSetCookie()
        .find(each => each.startsWith('console_sid=')) ?? ''
    t.match(cookie, /^console_sid=[A-Za-z0-9_-]{48}\.[^;]+; Path=\/; HttpOnly; SameSite=Strict$/)
  }
)

t.test('over https it is __Host- and Secure', async t => {
  const gateway = await testGateway(t.after, { gateway: { session: { cookie: { secure: true } } } })
  const cookie =
    (await gateway.call(path, { json: right })).headers
      .getSetCookie()
      .find(each => each.includes('console_sid=')) ?? ''
  t.match(cookie, /^__Host-console_sid=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
  t.match(
    (await gateway.call('/api/account/profile', { cookie: cookie.split(';')[0] ?? '' })).json,
    { data: { username: 'alice' } }
  )
  t.ok((await gateway.call('/api/account/profile')).headers.get('strict-transport-security'))
})

t.test('a sign-in that asks to be remembered gets a cookie that outlives the browser', async t => {
  stopClock(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { session: { remembered: { absolute: '7d', idle: '1d' } } }
  })
  const answer = await gateway.call(path, { json: { ...right, autoLogin: true } })
  const cookie = answer.headers.getSetCookie().find(each => each.startsWith('console_sid=')) ?? ''
  const expires = Date.parse(/Expires=([^;]+)/.exec(cookie)?.[1] ?? '')
  t.equal(expires, Math.floor((Date.now() + 7 * 86_400_000) / 1000) * 1000, cookie)
})

t.test('a remembered cookie ends by the wall clock, also after that was set', async t => {
  const setClock = wallClock(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { session: { remembered: { absolute: '7d', idle: '1d' } } }
  })
  setClock(30 * 86_400_000)
  const answer = await gateway.call(path, { json: { ...right, autoLogin: true } })
  const cookie = answer.headers.getSetCookie().find(each => each.startsWith('console_sid=')) ?? ''
  const left = Date.parse(/Expires=([^;]+)/.exec(cookie)?.[1] ?? '') - Date.now()
  t.ok(Math.abs(left - 7 * 86_400_000) < 60_000, cookie)
})

t.test('sign-in expires the readable token cookies that consoles keep', async t => {
  const gateway = await testGateway(t.after)
  t.ok(
    (await gateway.call(path, { json: right })).headers
      .getSetCookie()
      .some(each => each.startsWith('TOKEN__=; Max-Age=0; Path=/'))
  )
})

t.test('a second sign-in ends the first session of this browser', async t => {
  const gateway = await testGateway(t.after)
  const first = await gateway.signIn()
  const second = cookieOf(await gateway.call(path, { json: right, cookie: first }))
  t.not(first, second)
  const old = await gateway.call('/api/account/profile', { cookie: first })
  t.match(old, { status: 401, json: { errorCode: 'session.replaced' } })
  t.same(old.headers.getSetCookie(), [], 'the new cookie of another tab is not cleared')
  t.equal((await gateway.call('/api/account/profile', { cookie: second })).status, 200)
})

t.test('a failed sign-in keeps a cookie that an older secret signed', async t => {
  const [young, old] = [
    'a newer secret of at least 32 characters',
    'an older secret of at least 32 characters'
  ]
  const session = { secrets: ['${YOUNG}', '${OLD}'], cookie: { secure: false } }
  const environment = { YOUNG: young, OLD: old }
  const gateway = await testGateway(t.after, { gateway: { session } }, environment)
  const [, value = ''] = (await gateway.signIn()).split('=')
  const [id = ''] = decodeURIComponent(value).split('.')
  const cookie = `console_sid=${encodeURIComponent(new Signer(old).sign(id))}`
  const isIn = async () => (await gateway.call('/api/account/profile', { cookie })).status === 200
  t.ok(await isIn())
  const json = { ...right, password: 'wrong' }
  const { status, headers } = await gateway.call(path, { json, cookie })
  t.same({ status, set: headers.getSetCookie() }, { status: 401, set: [] })
  t.ok(await isIn())
})

t.test('the fields have the names that config gives them', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { login: { fields: { username: 'account', password: 'pwd' } } }
  })
  t.equal((await gateway.call(path, { json: { account: 'alice', pwd: password } })).status, 200)
  t.equal((await gateway.call(path, { json: right })).status, 400)
})

t.test('a refused sign-in body is told the first member that is wrong', async t => {
  const fields = { username: 'user/na~me', password: 'pass.word', remember: 'keep it' }
  const gateway = await testGateway(t.after, { gateway: { login: { fields } } })
  const needs = {
    object: 'Sign-in needs a JSON object.',
    username: 'Sign-in needs "user/na~me", a text of 1 to 255 characters.',
    password: 'Sign-in needs "pass.word", a text of 1 to 1024 characters.',
    remember: '"keep it" is true or false.'
  }
  const named = { 'user/na~me': 'alice' }
  const whole = { ...named, 'pass.word': 'wrong' }
  // Two units of JavaScript, one character of Unicode.
  const wide = '😀'
  for (const [need, body] of [
    [needs.object, []],
    [needs.object, 'text'],
    [needs.object, null],
    [needs.username, {}],
    [needs.username, { 'user/na~me': 5, 'keep it': 'x' }],
    [needs.username, { ...whole, 'user/na~me': wide.repeat(128) }],
    [needs.password, { ...named, 'keep it': 'x' }],
    [needs.password, { ...whole, 'pass.word': wide.repeat(513) }],
    [needs.remember, { ...whole, 'keep it': 1 }],
    [needs.remember, { ...whole, 'keep it': 'true' }]
  ] as const) {
    t.match(
      await gateway.call(path, { method: 'POST', json: body }),
      { status: 400, json: { errorCode: 'request.malformed', message: need } },
      JSON.stringify(body).slice(0, 60)
    )
  }
  for (const body of [
    { ...whole, 'keep it': null },
    { ...whole, 'type': 5, 'user/na~me': wide.repeat(127) }
  ]) {
    t.match(await gateway.call(path, { json: body }), {
      status: 401,
      json: { errorCode: 'login.refused' }
    })
  }
})

t.test(
  'sources are asked in their order: who is not in the file is asked of the back-end',
  async t => {
    const backend = await testUpstream(t.after, (_request, response, { body }) => {
      const { login, secret } = JSON.parse(body.toString() || '{}')
      json(
        200,
        login === 'carol' && secret === 'pw'
          ? { code: 200, user: { id: 7, roles: 'ADMIN' }, token: 'backend-token' }
          : { code: 401 }
      )(_request, response, {} as never)
    })
    const gateway = await testGateway(t.after, {
      gateway: {
        login: {
          sources: {
            'users-file': { kind: 'users-file', file: 'users.yaml' },
            'backend': {
              kind: 'upstream-login',
              upstream: 'backend',
              path: '/login',
              body: { login: '{username}', secret: '{password}' },
              outcomes: [
                { is: 'refused', path: 'code', in: [401] },
                { is: 'success', path: 'code', in: [200] }
              ],
              user: { id: 'user.id', roles: 'user.roles', roleMap: { ADMIN: 'admin' } },
              token: 'token'
            }
          }
        },
        identity: { prefix: true }
      },
      routes: {
        upstreams: { backend: { url: backend.url, credential: 'bearer' } },
        routes: { echo: { path: '/api/echo', upstream: 'backend' } }
      }
    })
    t.equal((await gateway.call(path, { json: right })).status, 200)
    t.equal(backend.seen.length, 0, 'the file knew her')
    const answer = await gateway.call(path, {
      json: { username: 'carol', password: 'pw', tenant: 'acme' }
    })
    t.match(answer.json, { success: true, currentAuthority: 'admin' })
    t.notMatch(answer.text, 'backend-token')
    t.match(JSON.parse(backend.seen[0]?.body.toString() ?? ''), { login: 'carol', tenant: 'acme' })
    await gateway.call('/api/echo', {
      cookie: cookieOf(answer),
      headers: { authorization: 'Bearer forged' }
    })
    t.equal(backend.seen.at(-1)?.headers.authorization, 'Bearer backend-token')
    t.match(backend.seen.at(-1)?.headers, {
      'x-user-id': 'backend/7',
      'x-user-name': 'carol'
    })
    t.match(await gateway.call(path, { json: { username: 'carol', password: 'no' } }), {
      status: 401,
      json: { errorCode: 'login.refused' }
    })
  }
)

t.test(
  'a file decides on the names in it: no other source sees such a name, nor its password',
  async t => {
    const backend = await testUpstream(t.after, json(200, { id: '9' }))
    const { alice, bob } = {
      alice: { password: hashOf(password) },
      bob: { password: hashOf(password), disabled: true }
    }
    const backEnd = { kind: 'upstream-login', upstream: 'backend', path: '/login' }
    const gateway = await testGateway(t.after, {
      gateway: {
        login: {
          sources: {
            file: { kind: 'users-file' },
            backend: { ...backEnd, user: { id: 'id' } }
          }
        },
        identity: { prefix: true }
      },
      routes: { upstreams: { backend: { url: backend.url } } },
      users: { users: { alice, bob } }
    })
    const signIn = async (username: string, typed: string) =>
      (await gateway.call(path, { json: { username, password: typed } })).status
    t.same([await signIn('alice', 'mistyped'), await signIn('bob', password)], [401, 401])
    t.equal(backend.seen.length, 0)
    t.equal(
      await signIn('carol', 'x'),
      200,
      'a name that the file does not hold is asked of the next'
    )
  }
)

t.test(
  'a back-end gets the token of its own sessions, and a session of another source is refused',
  async t => {
    const [orders, stock] = [
      await testUpstream(t.after, json(200, { id: '1', token: 'of-orders' })),
      await testUpstream(t.after, json(200, { id: '1', token: 'of-stock' }))
    ]
    const source = (name: string) => ({
      kind: 'upstream-login',
      upstream: name,
      path: '/login',
      user: { id: 'id' },
      token: 'token',
      body: { user: `${name}:{username}`, password: '{password}' }
    })
    const gateway = await testGateway(t.after, {
      gateway: {
        login: { sources: { orders: source('orders'), stock: source('stock') } },
        identity: { prefix: true }
      },
      routes: {
        upstreams: {
          orders: { url: orders.url, credential: { from: 'orders', as: 'bearer' } },
          stock: { url: stock.url, credential: { from: 'stock', as: 'header:x-token' } }
        },
        routes: {
          orders: { path: '/api/orders', upstream: 'orders', methods: ['GET', 'POST'] },
          stock: { path: '/api/stock', upstream: 'stock' },
          both: {
            path: '/api/both',
            parts: {
              own: { upstream: 'orders', rewrite: '/a' },
              others: { upstream: 'stock', rewrite: '/b', required: false }
            }
          }
        }
      }
    })
    const cookie = await gateway.signIn('carol')
    t.equal((await gateway.call('/api/orders', { cookie })).status, 200)
    t.equal(orders.seen.at(-1)?.headers.authorization, 'Bearer of-orders')
    t.equal((await gateway.call('/api/orders', { cookie, json: {} })).status, 200)
    t.match(await gateway.call('/api/stock', { cookie }), {
      status: 403,
      json: { errorCode: 'route.credential' }
    })
    await gateway.call('/api/both', { cookie })
    t.equal(stock.seen.length, 0, 'the other back-end is not even asked')
  }
)

t.test('a back-end that cannot be asked is 502, never "wrong password"', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    gateway: {
      login: {
        sources: {
          'users-file': { kind: 'users-file', file: 'users.yaml' },
          'backend': {
            kind: 'upstream-login',
            upstream: 'backend',
            path: '/login',
            user: { id: 'id' }
          }
        }
      },
      identity: { prefix: true }
    },
    routes: { upstreams: { backend: { url: backend.url } } }
  })
  await backend.close()
  t.match(await gateway.call(path, { json: { username: 'carol', password: 'pw' } }), {
    status: 502,
    json: { errorCode: 'upstream.refused' }
  })
  t.equal(
    (await gateway.call(path, { json: right })).status,
    200,
    'whom the file knows is not affected'
  )
})

t.test(
  'the dialects: Ant Design Pro finds its members at the top, a base-response console in data',
  async t => {
    const ant = await testGateway(t.after, { gateway: { envelope: { dialect: 'ant-design-pro' } } })
    t.match((await ant.call(path, { json: right })).json, {
      success: true,
      status: 'ok',
      type: 'account',
      currentAuthority: 'admin'
    })
    t.match((await ant.call('/api/account/profile')).json, {
      success: false,
      errorCode: 'session.none',
      errorMessage: /\w/,
      showType: 9,
      data: { isLogin: false }
    })
    const base = await testGateway(t.after, {
      gateway: { envelope: { dialect: 'base-response', successCode: 200 } }
    })
    t.match((await base.call(path, { json: right })).json, {
      ok: true,
      code: 200,
      message: 'OK',
      data: { authToken: '' }
    })
    t.match((await base.call('/api/account/profile')).json, { ok: false, code: 401, message: /\w/ })
  }
)

t.test('of the cookies that a sign-in sets, the session’s stands first', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { tokenCookies: ['token'] } },
    limits: { lockout: {} }
  })
  const answer = await gateway.call('/api/auth/admin/login', {
    json: { username: 'alice', password },
    headers: { cookie: 'token=old' }
  })
  t.same(
    answer.headers.getSetCookie().map(field => field.split('=')[0]),
    ['console_sid', 'console_known', 'token']
  )
})

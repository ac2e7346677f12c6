/** Sign-in and sign-out: what they take, what they answer in which language, and their cookies. */
import { Signer } from '@fastify/cookie'
import t from 'tap'
import { wallClock } from '../support/clock.ts'
import { type Called, cookieOf, password, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { testUsers } from '../support/users.ts'

const path = '/api/auth/admin/login'
const logout = '/api/account/logout'
const profile = '/api/account/profile'
const right = { username: 'alice', password }
const form = 'application/x-www-form-urlencoded'

const session = { remembered: { absolute: '7d', idle: '1d' } }
const gateway = await testGateway(t.teardown, {
  gateway: { session, envelope: { tokenCookies: ['TOKEN__', 'token'] } },
  limits: { lockout: {} }
})
const secure = await testGateway(t.teardown, { gateway: { session: { cookie: { secure: true } } } })

const written = ({ headers }: Called) =>
  headers.getSetCookie().find(each => each.split('=')[0]?.endsWith('console_sid')) ?? ''

t.test('a right password opens a session and answers as both kinds of console expect', async t => {
  const body = { ...right, type: 'mobile-or-so', autoLogin: false }
  const answer = await gateway.call(path, { json: body })
  t.match(answer, {
    status: 200,
    json: {
      ok: true,
      code: 0,
      message: 'OK',
      success: true,
      data: { authToken: '', status: 'ok' },
      status: 'ok',
      type: 'mobile-or-so',
      currentAuthority: 'admin'
    }
  })
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.match((await gateway.call(profile, { cookie: cookieOf(answer) })).json, {
    data: { username: 'alice', userid: '1' }
  })
  const line = await gateway.logged(({ event }) => event === 'login')
  t.match(line, { user: 'alice', source: 'users-file' })
})

t.test('case U7: a dialect of the console’s own starts from nothing', async t => {
  const off = { errorCode: false, requestId: false }
  const members = { code: 'c', message: 'm', data: 'd', success: false, ...off }
  const user = { uid: 7, nick: 'al' }
  const backend = await testUpstream(t.after, json(200, user))
  for (const [envelope, success, wrong] of [
    [{ dialect: 'custom', custom: { members } }, { c: 0, m: 'OK', d: {} }, ['c', 'm']],
    [{ dialect: 'none' }, {}, ['code', 'message', 'requestId']]
  ] as const) {
    const { call, signIn } = await testGateway(t.after, { gateway: { envelope } })
    t.strictSame((await call(path, { json: right })).json, success)
    const { json: of } = await call(profile, { cookie: await signIn() })
    const names = ['email', 'id', 'name', 'roles', 'username']
    t.strictSame(Object.keys(of.d ?? of).toSorted(), names, 'as the users file has it')
    const refused = await call(path, { json: { ...right, password: 'x' } })
    t.strictSame([refused.status, Object.keys(refused.json).toSorted()], [401, wrong])
    t.match(refused.headers.get('content-type'), /^application\/json/)
  }
  for (const dialect of ['none', 'problem']) {
    const { call, signIn } = await testGateway(t.after, {
      gateway: { envelope: { dialect } },
      backend: backend.url,
      routes: { endpoints: { profile: { upstream: 'b' } } }
    })
    t.strictSame((await call(profile, { cookie: await signIn() })).json, user, 'as it says')
  }
})

t.test('case 17: a console may post its sign-in as a form', async t => {
  const typed = new URLSearchParams(right).toString()
  const send = async (body: string, more: object = {}) =>
    await secure.call(path, { method: 'POST', body, headers: { 'content-type': form, ...more } })
  for (const [body, status, more] of [
    [typed, 200],
    [`${typed}&remember=on`, 200],
    [`${typed}&__proto__=x&constructor=y`, 200],
    [typed, 200, { 'content-type': `${form}; charset=UTF-8` }],
    ['username=alice&password=wrong', 401],
    ['username=alice', 400],
    [typed, 403, { origin: 'https://evil.example' }]
  ] as const) {
    t.equal((await send(body, more)).status, status, body)
  }
  const cookie = cookieOf(await send(typed))
  t.equal((await secure.call(profile, { cookie })).status, 200)
})

t.test('the cookie is opaque and bound; readable tokens are expired, behind it', async t => {
  const answer = await gateway.call(path, { json: right, headers: { cookie: 'token=old' } })
  const cookies = answer.headers.getSetCookie()
  const names = cookies.map(field => field.split('=')[0])
  t.same(names, ['console_sid', 'console_known', 'TOKEN__', 'token'])
  const random = '[A-Za-z0-9_-]{48}\\.[^;]+'
  const session = new RegExp(`^console_sid=${random}; Path=/; HttpOnly; SameSite=Strict$`)
  t.match(cookies, [session, /./, /^TOKEN__=; Max-Age=0; Path=\//])
})

t.test('over https it is __Host- and Secure, also when it is cleared', async t => {
  const answer = await secure.call(path, { json: right })
  t.match(written(answer), /^__Host-console_sid=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Strict$/)
  const cookie = cookieOf(answer)
  t.match((await secure.call(profile, { cookie })).json, { data: { username: 'alice' } })
  t.ok((await secure.call(profile)).headers.get('strict-transport-security'))
  const cleared = /^__Host-console_sid=; Max-Age=0; Path=\/;.* HttpOnly; Secure; SameSite=Strict$/
  t.match(written(await secure.call(logout, { cookie })), cleared)
})

t.test('who is remembered has a cookie that ends by the wall clock, set or not', async t => {
  const setClock = wallClock(t.after)
  for (const shift of [0, 30 * 86_400_000]) {
    setClock(shift)
    const answer = await gateway.call(path, { json: { ...right, autoLogin: true } })
    const expires = Date.parse(/Expires=([^;]+)/.exec(written(answer))?.[1] ?? '')
    t.ok(Math.abs(expires - Date.now() - 7 * 86_400_000) < 60_000, written(answer))
    const { json: list } = await gateway.call('/api/session/list', { cookie: cookieOf(answer) })
    const [{ lastUsedAt }] = list.data
    t.ok(Math.abs(Date.parse(lastUsedAt) - Date.now()) < 60_000, 'so do the times for people')
  }
})

t.test('a failed sign-in keeps a cookie that an older secret signed', async t => {
  const OLD = 'an older secret of at least 32 characters'
  const session = { secrets: ['file:session-secret', '${OLD}'] }
  const rotated = await testGateway(t.after, { gateway: { session } }, { OLD })
  const [, value = ''] = (await rotated.signIn()).split('=')
  const [id = ''] = decodeURIComponent(value).split('.')
  const cookie = `console_sid=${encodeURIComponent(new Signer(OLD).sign(id))}`
  const isIn = async () => (await rotated.call(profile, { cookie })).status === 200
  t.ok(await isIn())
  const wrong = await rotated.call(path, { json: { ...right, password: 'wrong' }, cookie })
  t.same([wrong.status, wrong.headers.getSetCookie()], [401, []])
  t.ok(await isIn())
})

t.test('fields have their names of config, and a faulty body is told what they need', async t => {
  const fields = { username: 'user/na~me', password: 'pass.word', remember: 'keep it' }
  const { call } = await testGateway(t.after, { gateway: { login: { fields } } })
  const message =
    'Sign-in needs a JSON object with "user/na~me", a text of 1 to 255 characters, and ' +
    '"pass.word", one of 1 to 1024; "keep it" is true or false.'
  const named = { 'user/na~me': 'alice' }
  const whole = { ...named, 'pass.word': 'wrong' }
  // Two units of JavaScript, one character of Unicode.
  const wide = '😀'
  for (const body of [
    null,
    right,
    { 'user/na~me': 5, 'keep it': 'x' },
    { ...whole, 'user/na~me': wide.repeat(128) },
    { ...named, 'keep it': 'x' },
    { ...whole, 'pass.word': wide.repeat(513) },
    { ...whole, 'keep it': 'true' }
  ]) {
    const refused = await call(path, { method: 'POST', json: body })
    const expected = { status: 400, json: { errorCode: 'request.malformed', message } }
    t.match(refused, expected, JSON.stringify(body).slice(0, 60))
  }
  for (const [status, body] of [
    [200, { ...named, 'pass.word': password }],
    [401, { ...whole, 'keep it': null }],
    [401, { ...whole, 'type': 5, 'user/na~me': wide.repeat(127) }]
  ] as const) {
    t.equal((await call(path, { json: body })).status, status)
  }
})

t.test('sources are asked in their order; a file decides on the names in it', async t => {
  const backend = await testUpstream(t.after, (...exchange) => {
    const { login, secret } = JSON.parse(String(exchange[2].body)) as Record<string, string>
    const isRight = login === 'carol' && secret === 'pw'
    const user = { code: 200, user: { id: 7, roles: 'ADMIN' }, token: 'backend-token' }
    json(200, isRight ? user : { code: 401 })(...exchange)
  })
  const { call } = await testGateway(t.after, {
    gateway: {
      login: { sources: { 'users-file': { kind: 'users-file' } } },
      identity: { prefix: true }
    },
    backend: backend.url,
    source: {
      body: { login: '{username}', secret: '{password}' },
      outcomes: [
        { is: 'refused', path: 'code', in: [401] },
        { is: 'success', path: 'code', in: [200] }
      ],
      user: { id: 'user.id', roles: 'user.roles', roleMap: { ADMIN: 'admin' } },
      token: 'token'
    },
    users: { users: { ...testUsers, bob: { ...testUsers.bob, disabled: true } } }
  })
  const signIn = async (username: string, typed: string, more: object = {}) =>
    await call(path, { json: { username, password: typed, ...more } })
  t.equal((await signIn('alice', password)).status, 200)
  t.equal((await signIn('alice', 'mistyped')).status, 401)
  t.equal((await signIn('bob', password)).status, 401, 'who is disabled there')
  t.equal(backend.seen.length, 0, 'no other source sees such a name, nor its password')
  const answer = await signIn('carol', 'pw', { tenant: 'acme' })
  t.match(answer.json, { success: true, currentAuthority: 'admin' })
  t.notMatch(answer.text, 'backend-token')
  t.match(JSON.parse(String(backend.seen[0]?.body)), { login: 'carol', tenant: 'acme' })
  const { json: session } = await call('/api/session', { cookie: cookieOf(answer) })
  t.match(session.data.user, { id: '7', username: 'carol' })
  t.match(await signIn('carol', 'no'), { status: 401, json: { errorCode: 'login.refused' } })
  await backend.close()
  const down = { status: 502, json: { errorCode: 'upstream.refused' } }
  t.match(await signIn('carol', 'pw'), down, 'never "wrong password"')
  t.equal((await signIn('alice', password)).status, 200, 'whom the file knows is not affected')
})

t.test('a back-end gets the token of its own sessions, no other source’s', async t => {
  const of = async (name: string) =>
    await testUpstream(t.after, json(200, { id: '1', token: `of-${name}` }))
  const [orders, stock] = [await of('orders'), await of('stock')]
  const source = (upstream: string) => ({
    ...{ kind: 'upstream-login', upstream, path: '/login', user: { id: 'id' }, token: 'token' },
    body: { user: `${upstream}:{username}`, password: '{password}' }
  })
  const others = { upstream: 'stock', rewrite: '/b', required: false }
  const { call, signIn } = await testGateway(t.after, {
    gateway: {
      login: { sources: { orders: source('orders'), stock: source('stock') } },
      identity: { prefix: true }
    },
    backend: { url: orders.url, credential: { from: 'orders', as: 'bearer' } },
    routes: {
      upstreams: {
        orders: { url: orders.url },
        stock: { url: stock.url, credential: { from: 'stock', as: 'header:x-token' } }
      },
      routes: {
        orders: { methods: ['GET', 'POST'] },
        stock: { upstream: 'stock' },
        both: { parts: { own: { upstream: 'b', rewrite: '/a' }, others } }
      }
    }
  })
  const cookie = await signIn('carol')
  for (const method of ['GET', 'POST']) {
    t.equal((await call('/api/orders', { cookie, method })).status, 200)
    t.equal(orders.seen.at(-1)?.headers.authorization, 'Bearer of-orders')
  }
  const refused = { status: 403, json: { errorCode: 'route.credential' } }
  t.match(await call('/api/stock', { cookie }), refused)
  await call('/api/both', { cookie })
  t.equal(orders.seen.at(-1)?.url, '/a')
  t.equal(stock.seen.length, 0, 'the other back-end is not even asked')
})

t.test('GET and POST sign out, whatever body a console sends with it', async t => {
  const bodies: ReadonlyArray<readonly [method: string, body?: string, type?: string]> = [
    ['GET'],
    ['POST'],
    ...['', '{}', 'not json'].map(body => ['POST', body] as const),
    ['POST', 'a=1', form],
    ['POST', 'x', 'text/plain']
  ]
  for (const [method, body, type = 'application/json'] of bodies) {
    const cookie = await gateway.signIn()
    const sent = body !== undefined && { body, headers: { 'content-type': type } }
    const answer = await gateway.call(logout, { method, cookie, ...sent })
    t.match(answer, { status: 200, json: { ok: true, success: true, data: {} } }, type)
    t.match(answer.headers.getSetCookie(), [
      /^console_sid=; Max-Age=0; Path=\/.*HttpOnly; SameSite=Strict$/,
      /^TOKEN__=; Max-Age=0/
    ])
    t.match(await gateway.call(profile, { cookie }), {
      status: 401,
      json: { errorCode: 'session.revoked' }
    })
  }
  const lines = gateway.log.filter(({ event, user }) => event === 'logout' && user === 'alice')
  t.equal(lines.length, 7)
})

const none = { en: 'Please sign in.', zh: '请先登录。' }
const refused = { en: 'The user name or the password is wrong.', zh: '用户名或密码错误。' }
const own = '请到登录页'
const wrong = { json: { ...right, password: 'wrong' } }

t.test('case C3: the gateway speaks the language of the browser', async t => {
  const said = async (language?: string, at = '/api/session', more: object = {}) => {
    const headers = language === undefined ? {} : { 'accept-language': language }
    return (await gateway.call(at, { headers, ...more })).json.message
  }
  for (const language of ['zh-CN,zh;q=0.9,en;q=0.8', 'zh', ' ZH-tw']) {
    t.equal(await said(language), none.zh, language)
  }
  for (const language of ['en-US,en;q=0.9,zh;q=0.8', 'fr, zh', 'zhuang', '*', '', undefined]) {
    t.equal(await said(language), none.en, String(language))
  }
  t.equal(await said('zh-CN', path, wrong), refused.zh)
})

for (const [envelope, language, signIn, no, status] of [
  [{ errorStatus: 'ok' }, 'zh-CN', none.zh, refused.zh, 200],
  [{ language: 'en' }, 'zh-CN', none.en, refused.en, 401],
  [{ language: 'zh', messages: { 'session.none': own } }, 'en', own, refused.zh, 401]
] as const) {
  t.test(`case C3: what config says wins: ${Object.keys(envelope).join()}`, async t => {
    const { call } = await testGateway(t.after, { gateway: { envelope } })
    const headers = { 'accept-language': language }
    t.equal((await call('/api/session', { headers })).json.message, signIn)
    const answer = await call(path, { ...wrong, headers })
    t.match(answer, { status, json: { message: no } })
  })
}

/** Answers of config, of routes and of the gateway's own endpoints. */
import t from 'tap'
import { cookieOf, testGateway } from '../support/gateway.ts'
import { beginMaintenance } from '../support/ops.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const open = (path: string, answer: object) => ({ path: `/api/${path}`, access: 'public', answer })

const bye = { json: { msg: 'bye', code: 'mine' }, inEnvelope: 'flat' }
const gateway = await testGateway(t.teardown, {
  gateway: { envelope: { inertToken: 'inert' } },
  routes: {
    permissions: { user: ['a', 'b'], admin: ['b', 'c'] },
    aliases: { '/api/menu': '/api/menus', '/auth/renew': '/auth/refresh' },
    endpoints: {
      login: {
        answer: {
          json: {
            accessToken: '{token}',
            user: { id: '{id}', roles: '{roles}', mail: '{profile.email}' },
            codes: '{permissions}',
            expires: '{absoluteEndsAt}'
          }
        }
      },
      logout: { path: '/logout', methods: ['POST'], answer: bye },
      refresh: {
        path: '/auth/refresh',
        answer: { json: { accessToken: '{token}', user: '{username}', expires: '{idleEndsAt}' } }
      },
      profile: {
        path: '/api/user/info',
        methods: ['POST'],
        answer: { json: { user: { userId: '{id}' }, roles: '{roles}' }, inEnvelope: 'flat' }
      }
    },
    routes: {
      menus: { path: '/api/menus', answer: { json: [{ path: '/home', roles: '{roles}' }] } },
      codes: { path: '/api/codes', answer: { json: '{permissions}' } },
      admins: { path: '/api/admins', access: { roles: ['admin'] }, answer: { json: 1 } },
      first: {
        path: '/api/first',
        answer: { json: [], byRole: { user: ['u'], admin: ['a'] }, inEnvelope: 'none' }
      },
      others: { path: '/api/others', answer: { json: ['other'], byRole: { guest: 1 } } },
      captcha: open('captcha', { json: { captchaEnabled: false }, inEnvelope: 'flat' }),
      text: open('text', { json: 'x', inEnvelope: 'none' }),
      gone: open('gone/*', { json: { code: 410 }, status: 410, inEnvelope: 'none' }),
      user: { path: '/api/user/menu', methods: ['POST'], answer: { json: '{id}' } },
      open: { ...open('open', { json: 1 }), methods: ['POST'] },
      flag: open('flag', { json: { on: true } }),
      closed: open('closed', { json: 1 })
    }
  },
  limits: { limits: { flags: { by: 'address', max: 1, window: '1m', routes: ['flag'] } } }
})
const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
const envelope = '"ok":true,"code":0,"message":"OK","success":true'

t.test('each stands where config says, with the values of its user, for GET and HEAD', async t => {
  for (const [path, cookie, expected] of [
    ['/api/menus', alice, `{${envelope},"data":[{"path":"/home","roles":["admin","user"]}]}`],
    ['/api/menus', bob, `{${envelope},"data":[{"path":"/home","roles":["user"]}]}`],
    ['/api/menu', bob, `{${envelope},"data":[{"path":"/home","roles":["user"]}]}`],
    ['/api/codes', bob, `{${envelope},"data":["a","b"]}`],
    ['/api/first', alice, '["u"]'],
    ['/api/others', alice, `{${envelope},"data":["other"]}`],
    ['/api/captcha', '', `{${envelope},"captchaEnabled":false}`],
    ['/api/text', '', '"x"'],
    ['/api/gone/and/more', '', '{"code":410}']
  ] as const) {
    const { status, text, headers } = await gateway.call(path, { cookie })
    t.equal(text, expected, path)
    t.equal(status, expected.includes('410') ? 410 : 200)
    t.match(headers.get('content-type'), /^application\/json/)
    t.equal(headers.get('cache-control'), 'no-store')
    const head = await gateway.call(path, { method: 'HEAD', cookie })
    const length = head.headers.get('content-length')
    t.same([head.status, head.text, length], [status, '', `${text.length}`])
    const refused = await gateway.call(path, { method: 'DELETE', cookie })
    t.same([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD'])
  }
  const line = await gateway.logged(({ path, user }) => path === '/api/menus' && user === 'bob')
  t.match(line, { route: 'menus', status: 200 })
})

t.test('sign-in, profile, refresh and sign-out have theirs', async t => {
  const signedIn = await gateway.attempt('alice')
  const { expires, ...data } = signedIn.json.data
  t.same(data, {
    accessToken: 'inert',
    user: { id: '1', roles: ['admin', 'user'], mail: 'alice@example.com' },
    codes: ['b', 'c', 'a']
  })
  t.ok(expires > Date.now())
  t.match(signedIn.json, { ok: true, code: 0, status: undefined, currentAuthority: undefined })
  t.match(signedIn.headers.get('content-type'), /^application\/json/)

  const cookie = cookieOf(signedIn)
  const post = async (path: string, more: object = { cookie }) =>
    await gateway.call(path, { method: 'POST', ...more })
  for (const path of ['/auth/refresh', '/auth/renew']) {
    const refreshed = await post(path)
    t.match(refreshed.json.data, { accessToken: 'inert', user: 'alice', expires: Number })
    t.ok(refreshed.json.data.expires > Date.now())
    t.same(refreshed.headers.getSetCookie(), [], 'the cookie stays')
  }
  const user = '"user":{"userId":"1"},"roles":["admin","user"]'
  t.equal((await post('/api/user/info')).text, `{${envelope},${user}}`)
  for (const more of [{ cookie }, {}]) {
    t.equal((await post('/logout', more)).text, `{${envelope},"msg":"bye"}`)
  }
  t.equal(await gateway.status('/api/session', { cookie }), 401)
})

t.test('that of a sign-in may stand beside the code, or be the whole body', async t => {
  for (const [answer, expected] of [
    [{ json: { code: 'mine', token: 't' }, inEnvelope: 'flat' }, `{${envelope},"token":"t"}`],
    [{ json: '{username}', inEnvelope: 'none' }, '"alice"'],
    [{ json: 'x', byRole: { user: 'u', admin: 'a' }, inEnvelope: 'none' }, '"u"'],
    [{ inEnvelope: 'none' }, 'null']
  ] as const) {
    const { attempt } = await testGateway(t.after, { routes: { endpoints: { login: { answer } } } })
    t.match(await attempt('alice'), { status: 200, text: expected })
  }
})

t.test('by POST any body is ignored, another origin and another method are refused', async t => {
  const ask = { method: 'POST', cookie: alice }
  for (const path of ['/api/user/menu', '/api/user/info', '/auth/refresh', '/api/open']) {
    for (const [name, body] of [
      ['application/json', ''],
      ['application/json', '{broken'],
      ['application/x-www-form-urlencoded', 'a=b'],
      ['image/png', '\0\0\0']
    ] as const) {
      const answer = await gateway.call(path, { ...ask, headers: { 'content-type': name }, body })
      t.equal(answer.status, 200, `${path} ${name} ${body}`)
    }
    t.equal(await gateway.status(path, ask), 200, path)
    const foreign = await gateway.call(path, {
      ...ask,
      headers: { origin: 'https://evil.example' }
    })
    t.match(foreign, { status: 403, json: { errorCode: 'origin.refused' } })
    const { status, headers } = await gateway.call(path, { cookie: alice })
    t.same([status, headers.get('allow')], [405, 'POST'], path)
  }
})

t.test('session, roles, limits and maintenance hold as for other routes', async t => {
  await beginMaintenance(gateway.opsUrl, { routes: ['closed'] })
  for (const [path, cookie, status, errorCode] of [
    ['/api/menus', '', 401, 'session.none'],
    ['/api/admins', bob, 403, 'route.forbidden'],
    ['/api/closed', '', 503, 'maintenance'],
    ['/api/flag', '', 200, undefined],
    ['/api/flag', '', 429, 'limit.exceeded']
  ] as const) {
    const { status: actual, json: body } = await gateway.call(path, { cookie })
    t.same([actual, body.errorCode], [status, errorCode], path)
  }
})

const secrets = { token: 'the-back-end-token-0', refresh: 'back-end-refresh' }

/** A back-end whose user holds a text with a secret, deep within. */
async function leaking(hidden: string, { endpoints = {}, ...routes }: Record<string, object>) {
  const backend = await testUpstream(t.after, (incoming, response, seen) => {
    response.setHeader('set-cookie', 'sid=s%3A42; Path=/')
    const user = { id: 7, more: { nick: 'al', deep: [{ hidden }] } }
    json(200, { ...secrets, user })(incoming, response, seen)
  })
  const leaky = await testGateway(t.after, {
    backend: { url: backend.url, credential: 'bearer' },
    source: {
      token: 'token',
      refreshToken: 'refresh',
      cookies: ['sid'],
      user: { id: 'user.id', profile: 'user.more' },
      logout: { path: '/bye' }
    },
    routes: { endpoints, routes: { nick: { answer: { json: '{profile.nick}' } }, ...routes } }
  })
  return { backend, gateway: leaky }
}

t.test('a sign-in whose answer holds a secret fails, and opens no session', async t => {
  const answer = { json: { id: '{id}', extra: '{profile.deep}' } }
  for (const secret of [secrets.token, secrets.refresh, 's%3A42']) {
    const { backend, gateway: leaky } = await leaking(secret, { endpoints: { login: { answer } } })
    const refused = await leaky.attempt('alice')
    t.match(refused, { status: 502, json: { errorCode: 'upstream.invalid' } }, secret)
    t.same(refused.headers.getSetCookie(), [])
    t.notMatch(refused.text + JSON.stringify(leaky.log), secret)
    t.match(await leaky.opsJson('sessions'), { sessions: [] })
    t.notOk(leaky.log.some(({ event }) => event === 'login'))
    const hasEnded = () => backend.seen.some(({ url }) => url === '/bye')
    await until('the back-end’s session was ended', hasEnded)
  }
})

const path = '/api/hiding'
const me = { path, upstream: 'b', rewrite: '/me' }
const whole = { json: '{profile}' }
const posted = { path, methods: ['POST'], answer: { ...whole, inEnvelope: 'flat' } }
const bare = { json: ['{profile.deep}'], inEnvelope: 'none' }

t.test('an answer with a credential of the back-end is refused', async t => {
  for (const [place, method, routes] of [
    ['endpoints.profile', 'GET', { endpoints: { profile: { path } } }],
    ['endpoints.profile', 'GET', { endpoints: { profile: me } }],
    [
      'endpoints.profile',
      'GET',
      { endpoints: { profile: { ...me, answer: { ...whole, inEnvelope: 'none' } } } }
    ],
    ['endpoints.profile', 'POST', { endpoints: { profile: posted } }],
    ['endpoints.refresh.answer', 'POST', { endpoints: { refresh: { path, answer: whole } } }],
    ['routes.deep.answer', 'GET', { deep: { path, answer: bare } }]
  ] as const) {
    const { gateway: leaky } = await leaking(`Bearer ${secrets.token}`, routes)
    const cookie = await leaky.signIn()
    t.match(await leaky.call('/api/nick', { cookie }), { status: 200, json: { data: 'al' } })
    const refused = await leaky.call(path, { method, cookie })
    t.match(refused, { status: 502, json: { errorCode: 'upstream.invalid' } }, place)
    await leaky.logged(({ reason }) => String(reason).startsWith(`${place} would give`))
    t.notMatch(refused.text + JSON.stringify(leaky.log), secrets.token)
  }
})

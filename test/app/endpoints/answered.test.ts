import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { beginMaintenance } from '../../support/ops.ts'
import { raw } from '../../support/raw.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const menu = { json: [{ path: '/home', roles: '{roles}' }] }

t.test(
  'a route with an answer needs no upstream, but the session that its access asks',
  async t => {
    const gateway = await testGateway(t.after, {
      routes: {
        permissions: { user: ['a', 'b'], admin: ['b', 'c'] },
        aliases: { '/api/menu': '/api/menus' },
        routes: {
          menus: { path: '/api/menus', answer: menu },
          codes: { path: '/api/codes', answer: { json: '{permissions}' } },
          admins: { path: '/api/admins', access: { roles: ['admin'] }, answer: { json: 1 } }
        }
      }
    })
    const cookie = await gateway.signIn('bob')
    const data = [{ path: '/home', roles: ['user'] }]
    const expected = { ok: true, code: 0, message: 'OK', success: true, data }
    for (const path of ['/api/menus', '/api/menu']) {
      t.same((await gateway.call(path, { cookie })).json, expected)
    }
    t.match((await gateway.call('/api/menus', { cookie: await gateway.signIn() })).json, {
      data: [{ roles: ['admin', 'user'] }]
    })
    t.same((await gateway.call('/api/codes', { cookie })).json.data, ['a', 'b'])
    t.match(await gateway.call('/api/menus'), { status: 401, json: { errorCode: 'session.none' } })
    t.match(await gateway.call('/api/admins', { cookie }), {
      status: 403,
      json: { errorCode: 'route.forbidden' }
    })
    const logged = await gateway.logged(
      ({ msg, path, status }) => msg === 'request' && path === '/api/menus' && status === 200
    )
    t.match(logged, { route: 'menus', user: 'bob' })
  }
)

t.test('byRole: the first role in config that the user has', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      routes: {
        codes: {
          path: '/api/codes',
          answer: { json: [], byRole: { user: ['u'], admin: ['a'] }, inEnvelope: 'none' }
        },
        none: { path: '/api/none', answer: { json: ['other'], byRole: { guest: 1 } } }
      }
    }
  })
  const cookie = await gateway.signIn('alice')
  t.equal((await gateway.call('/api/codes', { cookie })).text, '["u"]')
  t.same((await gateway.call('/api/none', { cookie })).json.data, ['other'])
})

t.test('a public answer: its status, its place in the envelope', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      routes: {
        captcha: {
          path: '/api/captcha',
          access: 'public',
          answer: { json: { captchaEnabled: false }, inEnvelope: 'flat' }
        },
        text: { path: '/api/text', access: 'public', answer: { json: 'x', inEnvelope: 'none' } },
        gone: {
          path: '/api/gone/*',
          access: 'public',
          answer: { json: { code: 410 }, status: 410, inEnvelope: 'none' }
        }
      }
    }
  })
  const bodyOf = async (path: string) => {
    const { status, text, headers } = await gateway.call(path)
    t.match(headers.get('content-type'), /^application\/json/)
    t.equal(headers.get('cache-control'), 'no-store')
    return `${status} ${text}`
  }
  t.equal(
    await bodyOf('/api/captcha'),
    '200 {"ok":true,"code":0,"message":"OK","success":true,"captchaEnabled":false}'
  )
  t.equal(await bodyOf('/api/text'), '200 "x"')
  t.equal(await bodyOf('/api/gone/and/more'), '410 {"code":410}')
})

t.test('POST, by config: any body is ignored, another origin is refused', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      routes: {
        menu: { path: '/api/user/menu', methods: ['POST'], answer: { json: '{id}' } },
        open: { path: '/api/open', access: 'public', methods: ['POST'], answer: { json: 1 } }
      }
    }
  })
  const cookie = await gateway.signIn()
  const post = (path: string, more: object) => gateway.call(path, { method: 'POST', ...more })
  for (const path of ['/api/user/menu', '/api/open']) {
    for (const more of [
      {},
      { headers: { 'content-type': 'application/json' } },
      { body: '{broken', headers: { 'content-type': 'application/json' } },
      { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      { body: new Uint8Array(5), headers: { 'content-type': 'image/png' } }
    ]) {
      t.equal((await post(path, { cookie, ...more })).status, 200, JSON.stringify(more))
    }
    t.match(await post(path, { cookie, headers: { origin: 'https://evil.example' } }), {
      status: 403,
      json: { errorCode: 'origin.refused' }
    })
  }
  const refused = await gateway.call('/api/user/menu', { cookie })
  t.match(refused, { status: 405, json: { errorCode: 'route.method' } })
  t.equal(refused.headers.get('allow'), 'POST')
})

t.test('over a raw socket: HEAD is GET without a body, other methods are 405', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      routes: {
        flag: { path: '/api/flag', access: 'public', answer: { json: { on: true } } },
        mine: { path: '/api/mine', answer: { json: '{id}' } }
      }
    }
  })
  const cookie = await gateway.signIn()
  const ask = (method: string, path: string) =>
    raw(
      gateway.url,
      `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`,
      { enough: () => false }
    )
  for (const path of ['/api/flag', '/api/mine']) {
    const [get, head] = [await ask('GET', path), await ask('HEAD', path)]
    t.match([get.status, head.status], [200, 200])
    t.equal(head.body, '')
    const lengthOf = (text: string) => /^content-length: (\d+)/im.exec(text)?.[1]
    t.equal(lengthOf(head.head), lengthOf(get.head))
    t.equal(Number(lengthOf(get.head)), get.body.length)
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PROPFIND']) {
      const refused = await ask(method, path)
      t.ok([400, 403, 405, 501].includes(refused.status), `${method} ${refused.status}`)
      t.notMatch(refused.body, '"success":true')
    }
    t.match((await ask('PUT', path)).head, /^HTTP\/1\.1 405 /)
    t.match((await ask('PUT', path)).head, /^allow: GET, HEAD\r?$/im)
  }
})

t.test('limits and maintenance hold as for other routes', async t => {
  const route = { path: '/api/flag', access: 'public', answer: { json: 1 } }
  const gateway = await testGateway(t.after, {
    routes: {
      routes: { flag: route, closed: { ...route, path: '/api/closed' } }
    },
    limits: {
      limits: { flags: { by: 'address', max: 2, window: '1m', routes: ['flag'] } }
    }
  })
  await beginMaintenance(gateway.opsUrl, { routes: ['closed'] })
  const statuses = []
  for (let count = 0; count < 3; count++) statuses.push((await gateway.call('/api/flag')).status)
  t.same(statuses, [200, 200, 429])
  t.match(await gateway.call('/api/closed'), { status: 503, json: { errorCode: 'maintenance' } })
})

t.test('an answer with a credential of the back-end is refused', async t => {
  const login = { id: 7, token: 't-1', more: { nick: 'al', deep: [{ key: 't-1' }] } }
  const backend = await testUpstream(t.after, json(200, login))
  const source = { token: 'token', user: { id: 'id', profile: 'more' } }
  const { gateway: files, routes } = signInAt(backend.url, source)
  const gateway = await testGateway(t.after, {
    gateway: files,
    routes: {
      ...routes,
      routes: {
        nick: { path: '/api/nick', answer: { json: '{profile.nick}' } },
        deep: { path: '/api/deep', answer: { json: { a: '{profile.deep}' }, inEnvelope: 'none' } }
      }
    }
  })
  const cookie = await gateway.signIn()
  t.match(await gateway.call('/api/nick', { cookie }), { status: 200, json: { data: 'al' } })
  const refused = await gateway.call('/api/deep', { cookie })
  t.match(refused, { status: 502, json: { errorCode: 'upstream.invalid' } })
  t.notMatch(refused.text, 't-1')
  t.ok(gateway.log.some(({ reason }) => String(reason).startsWith('routes.deep.answer would give')))
})

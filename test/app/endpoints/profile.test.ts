import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const path = '/api/account/profile'

t.test('from the session: both families of console find their names', async t => {
  const gateway = await testGateway(t.after)
  const answer = await gateway.call(path, { cookie: await gateway.signIn() })
  t.equal(answer.status, 200)
  t.match(answer.json, {
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
  })
  t.equal(answer.headers.get('cache-control'), 'no-store')
})

t.test('HEAD gets the status and headers of GET, without the body', async t => {
  const gateway = await testGateway(t.after)
  const cookie = await gateway.signIn()
  for (const headers of [{ cookie }, {}]) {
    const [get, head] = [
      await gateway.call(path, headers),
      await gateway.call(path, { ...headers, method: 'HEAD' })
    ]
    t.equal(head.status, get.status)
    t.equal(head.text, '')
    for (const name of ['content-type', 'content-length', 'cache-control']) {
      t.equal(head.headers.get(name), get.headers.get(name), name)
    }
  }
})

t.test(
  '/api/currentUser is the same endpoint: same answer, same name in the log, same limit',
  async t => {
    const gateway = await testGateway(t.after, {
      routes: { aliases: { '/api/currentUser': path } },
      limits: { limits: { profile: { by: 'user', max: 3, window: '1m', routes: ['profile'] } } }
    })
    const cookie = await gateway.signIn()
    t.same(
      (await gateway.call('/api/currentUser', { cookie })).json,
      (await gateway.call(path, { cookie })).json
    )
    t.equal((await gateway.call('/api/currentUser', { cookie })).status, 200)
    t.equal((await gateway.call(path, { cookie })).status, 429, 'the fourth, whichever the path')
    const logged = () =>
      gateway.log
        .filter(
          ({ msg, path: asked }) =>
            msg === 'request' && String(asked).startsWith('/api/currentUser')
        )
        .map(({ route }) => route)
    await until('two lines were logged', () => logged().length >= 2)
    t.same(logged(), ['profile', 'profile'])
    t.match(await gateway.call('/api/currentUser', { method: 'POST', cookie }), { status: 405 })
  }
)

t.test('from an upstream: shaped, filled up, enveloped', async t => {
  const backend = await testUpstream(
    t.after,
    json(200, { code: 200, result: { uid: 42, loginName: 'al', roleName: 'Admin' } })
  )
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { account: { url: backend.url } },
      aliases: { '/api/currentUser': path },
      endpoints: {
        profile: { upstream: 'account', rewrite: '/me', shape: 'me' }
      },
      shapes: {
        me: [
          { unwrap: 'result' },
          { rename: { uid: 'id', loginName: 'username', roleName: 'role' } }
        ]
      }
    }
  })
  const cookie = await gateway.signIn()
  for (const each of [path, '/api/currentUser']) {
    const answer = await gateway.call(each, { cookie })
    t.same(answer.json, {
      ok: true,
      code: 0,
      message: 'OK',
      success: true,
      data: {
        id: 42,
        userid: '42',
        username: 'al',
        name: 'Alice Admin',
        role: 'Admin',
        access: 'admin',
        avatar: ''
      }
    })
  }
  t.match(backend.seen[1], {
    method: 'GET',
    url: '/me',
    headers: { 'x-user-id': '1', 'x-user-name': 'alice', 'x-user-roles': 'admin,user' }
  })
})

t.test(
  'an account upstream at fault is 502, 503 or 504, never 401, and keeps the cookie',
  async t => {
    const backend = await testUpstream(t.after, () => {})
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { account: { url: backend.url } },
        endpoints: {
          profile: { upstream: 'account', rewrite: '/me', timeout: '80ms' }
        }
      }
    })
    const cookie = await gateway.signIn()
    const late = await gateway.call(path, { cookie })
    t.match(late, { status: 504, json: { errorCode: 'upstream.timeout' } })
    t.same(late.headers.getSetCookie(), [])
    await backend.close()
    // So short a time-out may strike by itself where this machine stands still.
    await until('it refuses', async () => {
      const refused = await gateway.call(path, { cookie })
      return refused.status === 502 && refused.json.errorCode === 'upstream.refused'
    })
  }
)
t.test(
  'the profile of an upstream is enveloped: what is enveloped already needs unwrap',
  async t => {
    const enveloped = { success: true, data: { nick: 'al' } }
    const backend = await testUpstream(t.after, (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(enveloped))
    })
    const profileWith = async (steps: object[]) => {
      const gateway = await testGateway(t.after, {
        routes: {
          upstreams: { account: { url: backend.url } },
          endpoints: { profile: { upstream: 'account', shape: 'me' } },
          shapes: { me: steps }
        }
      })
      const cookie = await gateway.signIn()
      return (await gateway.call('/api/account/profile', { cookie })).json.data
    }
    t.match(await profileWith([{ unwrap: 'data' }]), { nick: 'al', data: undefined })
    t.match(await profileWith([{ drop: ['success'] }]), { data: { nick: 'al' } })
  }
)

t.test('an answer of config: another path, POST, any place in the envelope', async t => {
  const profileWith = async (profile: object) => {
    const gateway = await testGateway(t.after, {
      routes: { endpoints: { profile: { path: '/api/user/info', ...profile } } }
    })
    const cookie = await gateway.signIn()
    return (method: string, more: object = {}) =>
      gateway.call('/api/user/info', { method, cookie, ...more })
  }
  const flat = await profileWith({
    methods: ['POST'],
    answer: {
      json: { user: { userId: '{id}', mail: '{profile.email}' }, roles: '{roles}' },
      inEnvelope: 'flat'
    }
  })
  const expected = { user: { userId: '1', mail: 'alice@example.com' }, roles: ['admin', 'user'] }
  for (const more of [
    {},
    { headers: { 'content-type': 'application/json' } },
    { body: 'no JSON', headers: { 'content-type': 'application/json' } }
  ]) {
    const answer = await flat('POST', more)
    t.match(answer, { status: 200, json: { code: 0, ...expected } })
    t.notOk(Object.hasOwn(answer.json, 'data'))
  }
  t.match(await flat('GET'), { status: 405 })
  t.match(await flat('POST', { headers: { origin: 'https://evil.example' } }), {
    status: 403,
    json: { errorCode: 'origin.refused' }
  })
  t.match(await flat('POST', { cookie: '' }), { status: 401, json: { errorCode: 'session.none' } })

  const bare = await profileWith({
    methods: ['GET', 'POST'],
    answer: { json: '{profile}', inEnvelope: 'none' }
  })
  for (const method of ['GET', 'POST']) {
    t.match((await bare(method)).json, { email: 'alice@example.com', ok: undefined })
  }
  t.match(await bare('HEAD'), { status: 200, text: '' })
})

t.test(
  'an answer from both: {profile} is the user of the upstream, the rest the session',
  async t => {
    const backend = await testUpstream(
      t.after,
      json(200, { result: { nick: '{id}', avatar: 'a.png' } })
    )
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { account: { url: backend.url } },
        permissions: { admin: ['*'] },
        endpoints: {
          profile: {
            methods: ['GET', 'POST'],
            upstream: 'account',
            rewrite: '/me',
            shape: 'me',
            answer: {
              json: { userInfo: '{profile}', name: '{profile.nick}', codes: '{permissions}' }
            }
          }
        },
        shapes: { me: [{ unwrap: 'result' }] }
      }
    })
    const cookie = await gateway.signIn()
    const data = { userInfo: { nick: '{id}', avatar: 'a.png' }, name: '{id}', codes: ['*'] }
    t.same((await gateway.call(path, { cookie })).json.data, data)
    const body = new URLSearchParams({ a: '1' })
    const posted = await gateway.call(path, { cookie, method: 'POST', body: String(body) })
    t.same(posted.json.data, data)
    t.same((await gateway.call(path, { cookie, method: 'POST', json: { a: 1 } })).json.data, data)
    t.same((await gateway.call(path, { cookie, method: 'POST' })).json.data, data)
    const head = await gateway.call(path, { cookie, method: 'HEAD' })
    t.match(head, { status: 200, text: '' })
    for (const { method, url, body: sent, headers } of backend.seen.slice(0, 4)) {
      t.match({ method, url, sent: sent.length }, { method: 'GET', url: '/me', sent: 0 })
      t.equal(headers['content-type'], undefined)
      t.equal(headers['content-length'], undefined)
    }
    t.match(
      await gateway.call(path, {
        cookie,
        method: 'POST',
        headers: { 'sec-fetch-site': 'cross-site' }
      }),
      { status: 403 }
    )
    t.equal(backend.seen.length, 5, 'the refused one did not reach it')
  }
)

t.test('an answer from the session and parts, also by POST', async t => {
  const backend = await testUpstream(t.after, json(200, { count: 3 }))
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { notes: { url: backend.url } },
      endpoints: {
        profile: {
          methods: ['POST'],
          parts: { notes: { upstream: 'notes', rewrite: '/count', into: 'notes' } },
          answer: { json: { mail: '{profile.email}', unread: '{profile.notes.count}', id: '{id}' } }
        }
      }
    }
  })
  const cookie = await gateway.signIn()
  const answer = await gateway.call(path, { cookie, method: 'POST', json: {} })
  t.same(answer.json.data, { mail: 'alice@example.com', unread: 3, id: '1' })
})

t.test('a profile that holds the credential of the back-end never reaches the browser', async t => {
  const token = 'tok-0123456789abcdef'
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const user = { id: 7, more: { nick: 'al', auth: `Bearer ${token}` } }
    json(200, request.url === '/login' ? { token, ...user } : user.more)(request, response, seen)
  })
  const source = { token: 'token', user: { id: 'id', profile: 'more' } }
  const { gateway: files, routes } = signInAt(backend.url, source)
  const upstream = { upstream: 'b', rewrite: '/me' }
  for (const profile of [
    {},
    upstream,
    { answer: { json: '{profile}', inEnvelope: 'flat' }, methods: ['POST'] },
    { ...upstream, answer: { json: { user: ['{profile.auth}'] }, inEnvelope: 'none' } }
  ]) {
    const gateway = await testGateway(t.after, {
      gateway: files,
      routes: { ...routes, endpoints: { profile } }
    })
    const method = 'methods' in profile ? 'POST' : 'GET'
    const called = await gateway.call(path, { cookie: await gateway.signIn(), method })
    t.match(called, { status: 502, json: { errorCode: 'upstream.invalid' } })
    t.notMatch(called.text, token)
    t.notMatch(JSON.stringify(gateway.log), token)
    t.ok(
      gateway.log.some(({ reason }) => String(reason).startsWith('endpoints.profile would give'))
    )
  }
})

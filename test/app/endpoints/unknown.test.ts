/** What no route takes, and which route takes what several could. */
import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

t.test(
  'the nearer path decides alone: what it does not take is 405 with its methods, whatever is around it',
  async t => {
    const backend = await testUpstream(t.after)
    const route = (path: string, methods: string[]) => ({
      path,
      methods,
      access: 'public',
      upstream: 'b'
    })
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { b: { url: backend.url } },
        aliases: { '/api/currentUser': '/api/account/profile' },
        routes: {
          wide: route('/api/*', ['POST', 'DELETE']),
          narrow: route('/api/v1/*', ['GET', 'DELETE']),
          one: route('/api/v1/one', ['GET']),
          same: route('/api/v1/one', ['PUT']),
          other: route('/api/two', ['PATCH'])
        }
      }
    })
    const expected: Array<readonly [method: string, path: string, allow: string | number]> = [
      ['POST', '/api/x', 200],
      ['GET', '/api/x', 'POST, DELETE'],
      ['GET', '/api/v1/x', 200],
      ['DELETE', '/api/v1/x?q=1', 200],
      ['POST', '/api/v1/x', 'GET, HEAD, DELETE'],
      ['PATCH', '/api/v1/x', 'GET, HEAD, DELETE'],
      ['GET', '/api/v1/one', 200],
      ['PUT', '/api/v1/one', 200],
      ['DELETE', '/api/v1/one', 'GET, HEAD, PUT'],
      ['POST', '/api/v1/one?q=/api/x', 'GET, HEAD, PUT'],
      ['PATCH', '/api/v1/one', 'GET, HEAD, PUT'],
      ['PATCH', '/api/two', 200],
      ['POST', '/api/two', 'PATCH'],
      ['GET', '/api/two', 'PATCH'],
      ['GET', '/api/auth/admin/login', 'POST'],
      ['DELETE', '/api/auth/admin/login', 'POST'],
      ['POST', '/api/currentUser', 'GET, HEAD'],
      ['POST', '/api/account/profile', 'GET, HEAD'],
      ['PROPFIND', '/api/v1/one', 'GET, HEAD, PUT'],
      ['OPTIONS', '/api/x', 'POST, DELETE']
    ]
    for (const [method, path, allow] of expected) {
      const { status, headers, json } = await gateway.call(path, { method })
      t.same(
        [status, headers.get('allow')],
        typeof allow === 'number' ? [allow, null] : [405, allow],
        `${method} ${path}`
      )
      if (typeof allow !== 'number') t.match(json, { ok: false, errorCode: 'route.method' })
    }
    t.equal(
      backend.seen.filter(
        ({ method }) => !['GET', 'PUT', 'PATCH', 'POST', 'DELETE'].includes(method)
      ).length,
      0
    )
    for (const path of ['/', '/ap', '/api', '/apix/x']) {
      t.equal((await gateway.call(path)).status, 404, path)
    }
  }
)

t.test('a doubled /api gets a hint', async t => {
  const gateway = await testGateway(t.after)
  const answer = await gateway.call('/api/api/account/profile')
  t.match(answer, { status: 404, json: { errorCode: 'route.unknown', message: /base URL/ } })
})

t.test('of paths with :name segments the nearest decides alone, and its access counts', async t => {
  const backend = await testUpstream(t.after)
  const route = (path: string, methods: string[], more: object = {}) => ({
    path,
    methods,
    access: 'public',
    upstream: 'b',
    ...more
  })
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      aliases: { '/api/old/:id/reset': '/api/users/:id/reset' },
      routes: {
        all: route('/api/users/*', ['GET', 'DELETE']),
        one: route('/api/users/:id', ['GET'], { rewrite: '/one/:id' }),
        reset: route('/api/users/:id/reset', ['POST'], {
          access: { roles: ['admin'] },
          rewrite: '/accounts/:id/password'
        }),
        me: route('/api/users/me/reset', ['POST'], { rewrite: '/me' })
      }
    }
  })
  const tries: Array<readonly [method: string, path: string, expected: string | number]> = [
    ['GET', '/api/users/7', '/one/7'],
    ['GET', '/api/users/a%20b?q=1', '/one/a%20b?q=1'],
    ['GET', '/api/users/', '/api/users/'],
    ['DELETE', '/api/users/7', 405],
    ['GET', '/api/users/7/x', '/api/users/7/x'],
    ['GET', '/api/users/7/reset', 405],
    ['DELETE', '/api/users/7/reset', 405],
    ['POST', '/api/users/7/reset', 401],
    ['POST', `/api/users/${'7'.repeat(3000)}/reset`, 401],
    ['POST', '/api/users/me/reset', '/me'],
    ['GET', '/api/users/me/reset', 405],
    ['POST', '/api/old/7/reset', 401],
    ['POST', '/api/users//reset', 400],
    ['GET', '/api/users/%252e', 400],
    ['GET', '/api/users/a%2Fb', 400],
    ['GET', '/api/users/a%5cb', 400],
    ['GET', '/api/users/a%00b', 400],
    ['POST', '/api/users/a%2fb/reset', 400],
    ['POST', '/api/users/%37/reset', 400]
  ]
  for (const [method, path, expected] of tries) {
    backend.seen.length = 0
    const { status } = await gateway.call(path, { method })
    const url = backend.seen[0]?.url
    t.equal(url ?? status, expected, `${method} ${path.slice(0, 60)}`)
  }
})

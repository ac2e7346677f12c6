/** What no route takes, and which route takes what several could. */
import Fastify from 'fastify'
import t from 'tap'
import { noteMethods } from '../../../src/app/endpoints/known-paths.ts'
import { growthOf } from '../../support/growth.ts'
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
      ['POST', '/api/currentUser', 'GET'],
      ['POST', '/api/account/profile', 'GET'],
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

t.test('a path of many slashes costs CPU in proportion to its length', async t => {
  const app = Fastify()
  const known = noteMethods(app)
  const config = { route: 'r', access: 'public' } as const
  for (const url of ['/api/*', '/api/orders/*', '/api/orders/:id/items', '/', '/*']) {
    app.route({ method: 'GET', url, config, handler: () => '' })
  }
  await app.ready()
  for (const path of ['/a', '/', '/api/orders/x']) {
    const growth = growthOf(length => {
      const target = `/nope${path.repeat(length / path.length)}`
      return () => known.at(target)
    })
    t.ok(growth.isLinear, `${path}: ${growth.figures}`)
  }
  t.same([...(known.at('/api/orders/7/8/9') ?? [])], ['GET', 'HEAD'])
})

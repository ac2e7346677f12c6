/** A refused request's log line says which rule refused it. */
import { mkdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { beginMaintenance } from '../support/ops.ts'
import { raw, request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'

const login = '/api/auth/admin/login'
const route = (more: object) => ({ upstream: 'b', access: 'public', ...more })

t.test(
  'each 4xx and 5xx that the gateway decided has its code in the log line; what passes has none',
  async t => {
    const backend = await testUpstream(t.after, (asked, response, seen) => {
      if (seen.url.startsWith('/broken')) return void response.socket?.destroy()
      if (seen.url.startsWith('/own')) return json(418, { error: 'teapot' })(asked, response, seen)
      if (seen.url.startsWith('/page')) {
        return void response.writeHead(500, { 'content-type': 'text/html' }).end('<p>')
      }
      json(200, {})(asked, response, seen)
    })
    const folder = await configFolder({
      gateway: { console: { root: 'console' }, server: { hosts: ['127.0.0.1', 'gateway.test'] } },
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: {
          admins: route({
            path: '/api/admins',
            access: { roles: ['admin'] },
            methods: ['GET', 'POST']
          }),
          mine: route({
            path: '/api/mine',
            access: 'session',
            methods: ['GET', 'POST'],
            maxBody: '16B'
          }),
          rare: route({ path: '/api/rare' }),
          broken: route({ path: '/api/broken', rewrite: '/broken' }),
          own: route({ path: '/api/own', rewrite: '/own' }),
          page: route({ path: '/api/page', rewrite: '/page' }),
          closed: route({ path: '/api/closed' }),
          quiet: route({ path: '/api/quiet', rewrite: '/broken', errorStatus: 'ok' })
        }
      },
      limits: { limits: { rare: { by: 'address', max: 1, window: '1h', routes: ['rare'] } } }
    })
    mkdirSync(`${folder}/console`)
    writeFileSync(`${folder}/console/index.html`, 'x')
    const gateway = await testGateway(t.after, folder)
    const cookie = await gateway.signIn('bob')
    const evil = { origin: 'https://evil.example' }
    await gateway.call('/api/rare')
    await beginMaintenance(gateway.opsUrl, { routes: ['closed'] })
    const cases = [
      [403, 'route.forbidden', '/api/admins', { cookie }],
      [403, 'origin.refused', '/api/admins', { cookie, method: 'POST', headers: evil }],
      [403, 'origin.refused', '/api/mine', { cookie, method: 'POST', headers: evil }],
      [401, 'session.none', '/api/mine', {}],
      [401, 'session.none', '/api/account/profile', { cookie: 'console_sid=forged' }],
      [
        413,
        'request.too-large',
        '/api/mine',
        { cookie, method: 'POST', json: { more: 'than sixteen bytes' } }
      ],
      [401, 'login.refused', login, { json: { username: 'bob', password: 'wrong' } }],
      [400, 'request.malformed', login, { json: { username: 1 } }],
      [
        415,
        'request.type',
        login,
        { method: 'POST', body: password, headers: { 'content-type': 'text/x' } }
      ],
      [429, 'limit.exceeded', '/api/rare', {}],
      [404, 'route.unknown', '/api/nowhere', {}],
      [404, 'route.unknown', '/nowhere.js', {}],
      [405, 'route.method', '/api/own', { method: 'DELETE' }],
      [400, 'request.path', '/api//x', {}],
      [502, 'upstream.reset', '/api/broken', {}],
      [500, 'upstream.error', '/api/page', {}],
      [503, 'maintenance', '/api/closed', {}],
      [200, 'upstream.reset', '/api/quiet', {}],
      [418, undefined, '/api/own', {}],
      [200, undefined, '/api/account/profile', { cookie }]
    ] as const
    for (const [status, code, path, options] of cases) {
      const from = gateway.log.length
      const { status: answered, json: envelope } = await gateway.call(path, options)
      t.equal(answered, status, path)
      if (code !== undefined) t.match(envelope, { errorCode: code }, path)
      const line = await gateway.logged(({ msg }) => msg === 'request', from)
      t.same([line['status'], line['code']], [status, code], `${path} ${code}`)
    }
  }
)

t.test('what never became a request has one line with its code', async t => {
  const gateway = await testGateway(t.after)
  const cases = [
    [417, 'request.expectation', request('GET /api/x', ['Expect: x'])],
    [400, 'request.path', request('GET /api/%zz')],
    [400, 'request.malformed', 'GARBAGE\r\n\r\n'],
    [431, 'request.headers', request('GET /', [`X-Long: ${'x'.repeat(20_000)}`])]
  ] as const
  for (const [status, code, bytes] of cases) {
    const from = gateway.log.length
    t.match((await raw(gateway.url, bytes)).head, new RegExp(`^HTTP/1.1 ${status} `), code)
    const line = await gateway.logged(({ code: logged }) => logged !== undefined, from)
    t.match(line, { status, code, address: '127.0.0.1' })
  }
})

/** Which route takes what several could, and what none takes. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const backend = await testUpstream(t.after)
const route = (path: string, methods: string[], more: object = {}) => ({
  path,
  methods,
  access: 'public',
  ...more
})
const roles = { access: { roles: ['admin'] } }
const admins = { ...roles, rewrite: '/accounts/:id/password' }
const slashes = { passEncodedSlashes: true }
const { call } = await testGateway(t.after, {
  backend: backend.url,
  routes: {
    aliases: {
      '/api/currentUser': '/api/account/profile',
      '/users/old/:id/reset': '/users/:id/reset'
    },
    routes: {
      wide: route('/api/*', ['POST', 'DELETE']),
      narrow: route('/api/v1/*', ['GET', 'DELETE']),
      one: route('/api/v1/one', ['GET']),
      same: route('/api/v1/one', ['PUT']),
      other: route('/api/two', ['PATCH']),
      users: route('/users/*', ['GET', 'DELETE']),
      user: route('/users/:id', ['GET'], { rewrite: '/one/:id' }),
      reset: route('/users/:id/reset', ['POST'], admins),
      me: route('/users/me/reset', ['POST'], { rewrite: '/me' }),
      queues: route('/queues/:vhost/:name', ['GET'], slashes),
      objects: route('/objects/*', ['GET'], { ...slashes, rewrite: '/o/*' }),
      secret: route('/objects/secret/*', ['GET'], roles),
      at: route('/users/@admins', ['GET'], roles),
      signs: route('/api/v1/a$b&c+d,e=f/*', ['GET'], roles),
      both: route('/api/v1/(x)/@y', ['GET'], roles)
    }
  }
})

/** What the back-end gets, the methods of a 405, or the status. */
const rows: ReadonlyArray<readonly [method: string, path: string, expected: string | number]> = [
  ['POST', '/api/x', '> /api/x'],
  ['GET', '/api/x', 'POST, DELETE'],
  ['GET', '/api/v1/x', '> /api/v1/x'],
  ['DELETE', '/api/v1/x?q=1', '> /api/v1/x?q=1'],
  ['POST', '/api/v1/x', 'GET, HEAD, DELETE'],
  ['GET', '/api/v1/one', '> /api/v1/one'],
  ['PUT', '/api/v1/one', '> /api/v1/one'],
  ['DELETE', '/api/v1/one', 'GET, HEAD, PUT'],
  ['POST', '/api/v1/one?q=/api/x', 'GET, HEAD, PUT'],
  ['PROPFIND', '/api/v1/one', 'GET, HEAD, PUT'],
  ['PATCH', '/api/two', '> /api/two'],
  ['POST', '/api/two', 'PATCH'],
  ...['LOCK', 'PURGE', 'SOURCE', 'OPTIONS'].map(name => [name, '/api/two', 'PATCH'] as const),
  ['GET', '/api/auth/admin/login', 'POST'],
  ['POST', '/api/currentUser', 'GET, HEAD'],
  ['GET', '/', 404],
  ['GET', '/api', 404],
  ['GET', '/apix/x', 404],
  ['GET', '/users/7', '> /one/7'],
  ['GET', '/users/a%20b?q=1', '> /one/a%20b?q=1'],
  ['GET', '/users/', '> /users/'],
  ['DELETE', '/users/7', 'GET, HEAD'],
  ['GET', '/users/7/x', '> /users/7/x'],
  ['GET', '/users/7/reset', 'POST'],
  ['POST', '/users/7/reset', 401],
  ['POST', `/users/${'7'.repeat(3000)}/reset`, 401],
  ['POST', '/users/me/reset', '> /me'],
  ['GET', '/users/me/reset', 'POST'],
  ['POST', '/users/old/7/reset', 401],
  ['POST', '/users//reset', 400],
  ['GET', '/users/%252e', 400],
  ['GET', '/users/a%2Fb', 400],
  ['GET', '/users/a%5cb', 400],
  ['GET', '/users/a%00b', 400],
  ['POST', '/users/a%2fb/reset', 400],
  ['POST', '/users/%37/reset', 400],
  // Case 21: a route may take an encoded slash, and sends it as it came.
  ['GET', '/queues/%2F/tasks', '> /queues/%2F/tasks'],
  ['GET', '/queues/a%2fb/tasks?x=%2F', '> /queues/a%2fb/tasks?x=%2F'],
  ['GET', '/objects/2024%2F01%2Freport.pdf', '> /o/2024%2F01%2Freport.pdf'],
  ...['..%2F..%2Fetc', 'a%2F..%2Fb', 'a%2F.%2Fb', 'a%252Fb', 'a%5Cb', 'secret%2Fx%2fy'].map(
    path => ['GET', `/objects/${path}`, 400] as const
  ),
  // No escape leads past a nearer route that holds the character itself.
  ['GET', '/users/@admins', 401],
  ['GET', '/users/%40admins?q=1', 400],
  ...[
    ...['a%24b&c+d,e=f/1', 'a$b%26c+d,e=f/1', 'a$b&c%2Bd,e=f/1', 'a$b&c%2bd,e=f/1'],
    ...['a$b&c+d%2Ce=f/1', '(x)/%40y', '%28x%29/%40y', 'a$b&c+d,e%3Df/%E4%BD%A0'],
    'a%24b%26c%2Bd%2Ce%3Df/'
  ].map(path => ['GET', `/api/v1/${path}`, 400] as const),
  ['GET', '/users/a%40b', '> /one/a%40b'],
  ['GET', '/users/%40admins2', '> /one/%40admins2'],
  ...[
    '/users/%40admins/x',
    '/api/v1/%40admins',
    '/api/v1/a%24b',
    '/api/v1/q?u=/users/%40admins'
  ].map(path => ['GET', path, `> ${path}`] as const)
]

t.test('case 21: the nearest path decides alone, by its methods, access and slashes', async t => {
  for (const [method, path, expected] of rows) {
    const { status, headers, json } = await call(path, { method })
    const seen = backend.seen.pop()
    const title = `${method} ${path.slice(0, 60)}`
    t.equal(seen ? `> ${seen.url}` : (headers.get('allow') ?? status), expected, title)
    if (seen) t.same([seen.method, status], [method, 200], title)
    else if (typeof expected === 'string') t.same([status, json.errorCode], [405, 'route.method'])
  }
})

t.test('a doubled /api gets a hint', async t => {
  const plain = await testGateway(t.after)
  const answer = await plain.call('/api/api/account/profile')
  t.match(answer, { status: 404, json: { errorCode: 'route.unknown', message: /base URL/ } })
})

t.end()

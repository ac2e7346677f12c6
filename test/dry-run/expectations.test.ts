import t from 'tap'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/load/load.ts'
import { tryConfig } from '../../src/dry-run/try-config.ts'
import { faultsOf, textFolder } from '../support/config-files.ts'

const base = {
  upstreams: { backend: { url: 'http://127.0.0.1:1/base' }, other: { url: 'http://127.0.0.1:1' } },
  endpoints: { profile: { from: 'upstream', upstream: 'backend', rewrite: '/accounts/me' } },
  aliases: { '/api/currentUser': '/api/account/profile' },
  routes: {
    orders: {
      path: '/api/orders',
      methods: ['GET', 'POST'],
      access: { roles: ['admin'] },
      upstream: 'other',
      rewrite: '/orders'
    },
    files: { path: '/api/files/*', access: 'public', upstream: 'backend', rewrite: '/store/*' },
    told: { path: '/api/told', access: 'public', upstream: 'other', shape: 'told' }
  },
  shapes: { told: [{ status: { path: 'code', ok: [0] } }, { unwrap: 'data' }] }
}
const limits = {
  limits: {
    'guess': { by: 'address', max: 10, window: '1m', routes: ['login'] },
    'all': { by: 'address', max: 5, window: '1m', routes: ['files'] },
    'signed-in': { by: 'user', max: 3, window: '1m' }
  }
}

async function failures(
  cleanUp: (undo: () => unknown) => void,
  expect: object,
  more: object = {}
): Promise<string[]> {
  const folder = textFolder(cleanUp, {
    'gateway.yaml': stringify({
      session: { cookie: { secure: false } },
      server: { hosts: ['console.example'] }
    }),
    'routes.yaml': stringify({ ...base, ...more, expect }),
    'limits.yaml': stringify(limits)
  })
  return (await tryConfig(loadConfig(folder, {}))).map(
    ({ file, line, path, message }) =>
      `${file.split('/').at(-1)}:${line > 0 ? 'line' : 0} ${path}: ${message}`
  )
}

t.test('what holds gives no fault: access, roles, aliases, rewrites, limits, shapes', async t => {
  t.same(
    await failures(t.after, {
      'no-session': { request: 'GET /api/account/profile', status: 401, code: 'session.none' },
      'viewer-may-not': {
        request: 'POST /api/orders',
        roles: ['viewer'],
        body: { a: 1 },
        status: 403,
        code: 'route.forbidden'
      },
      'nobody-without-roles': { request: 'GET /api/orders', roles: [], status: 403 },
      'admin-may': {
        request: 'POST /api/orders?x=1',
        roles: ['admin'],
        body: { a: 1 },
        status: 200,
        upstream: 'other',
        upstreamPath: '/orders?x=1'
      },
      'alias': {
        request: 'GET /api/currentUser',
        roles: ['admin'],
        answer: { name: 'x' },
        status: 200,
        upstream: 'backend',
        upstreamPath: '/accounts/me'
      },
      'below': { request: 'GET /api/files/a/b', upstreamPath: '/store/a/b' },
      'unknown': { request: 'GET /api/nothing', status: 404 },
      'nothing-is-repaired': {
        request: 'GET /api/files/../files/a',
        status: 400,
        code: 'request.path'
      },
      'method': { request: 'DELETE /api/orders', status: 405 },
      'fifth-guess': {
        request: 'POST /api/auth/admin/login',
        body: { username: 'x', password: 'y' },
        times: 5,
        status: 401
      },
      'sixth-guess': {
        request: 'POST /api/auth/admin/login',
        body: { username: 'x', password: 'y' },
        times: 6,
        status: 429,
        code: 'login.locked'
      },
      'sixth-of-an-address': {
        request: 'GET /api/files/a',
        times: 6,
        address: '203.0.113.7',
        status: 429
      },
      'nothing-is-left-of-it': { request: 'GET /api/files/a', address: '203.0.113.7', status: 200 },
      'fourth-of-a-user': {
        request: 'GET /api/orders',
        roles: ['admin'],
        times: 4,
        code: 'limit.exceeded'
      },
      'true-status': { request: 'GET /api/told', answer: { code: 404 }, status: 404 },
      'shaped': { request: 'GET /api/told', answer: { code: 0, data: 1 }, status: 200 },
      'another-host': { request: 'GET /api/told', headers: { host: 'evil.example' }, status: 400 },
      'another-site': {
        request: 'POST /api/orders',
        roles: ['admin'],
        headers: { 'origin': 'https://evil.example', 'sec-fetch-site': 'cross-site' },
        status: 403,
        code: 'origin.refused'
      }
    }),
    []
  )
})

t.test('what does not hold is a fault with file and line, and says what came instead', async t => {
  t.same(
    await failures(t.after, {
      a: { request: 'GET /api/account/profile', status: 200 },
      b: { request: 'GET /api/orders', roles: ['admin'], upstream: 'backend', upstreamPath: '/o' },
      c: { request: 'GET /api/nothing', upstream: 'backend', code: 'session.none' },
      d: {
        request: 'POST /api/auth/admin/login',
        body: { username: 'x', password: 'y' },
        times: 5,
        status: 429
      }
    }),
    [
      'routes.yaml:line expect.a.status: expected 200, got 401 session.none',
      'routes.yaml:line expect.b.upstream: expected backend; other got /orders',
      'routes.yaml:line expect.b.upstreamPath: expected /o; other got /orders',
      'routes.yaml:line expect.c.code: expected session.none, got 404 route.unknown',
      'routes.yaml:line expect.c.upstream: expected backend; no upstream was called (got 404 route.unknown)',
      'routes.yaml:line expect.d.status: expected 429, got 401 login.refused'
    ]
  )
})

t.test('a response is compared by its members, and the first difference is told', async t => {
  const asked = {
    request: 'GET /api/told',
    answer: { code: 0, data: { a: 1, list: [{ b: 2 }, 3] } }
  }
  t.same(
    await failures(t.after, {
      some: { ...asked, response: { a: 1 } },
      whole: { ...asked, response: { a: 1, list: [{ b: 2 }, 3] } }
    }),
    []
  )
  for (const [response, message] of [
    [{ a: '1' }, 'expected "1" at a, got 1 (got 200)'],
    [{ list: [{ b: 2 }] }, 'expected 1 items at list, got 2 (got 200)'],
    [{ list: [{ b: 7 }, 3] }, 'expected 7 at list[0].b, got 2 (got 200)'],
    [{ more: { c: 1 } }, 'expected {"c":1} at more, got nothing (got 200)'],
    [[], 'expected [], got {"a":1,"list":[{"b":2},3]} (got 200)']
  ] as const) {
    t.same(await failures(t.after, { one: { ...asked, response } }), [
      `routes.yaml:line expect.one.response: ${message}`
    ])
  }
})

t.test('routes are judged as they are without maintenance', async t => {
  const login = { username: 'x', password: 'y' }
  const expect = {
    open: { request: 'GET /api/files/a', status: 200, upstream: 'backend' },
    guess: { request: 'POST /api/auth/admin/login', body: login, code: 'login.refused' }
  }
  t.same(await failures(t.after, expect, { maintenance: { routes: ['files', 'login'] } }), [])
})

t.test(
  'a request that cannot be sent is a fault of its case, and the others are tried',
  async t => {
    t.same(
      await failures(t.after, {
        header: { request: 'GET /api/files/a', headers: { 'x-a': 'line\nbreak' }, status: 200 },
        name: { request: 'GET /api/files/a', headers: { 'x a': 'b' }, status: 200 },
        wrong: { request: 'GET /api/files/a', status: 201 }
      }),
      [
        'routes.yaml:line expect.header: this request cannot be tried: Invalid character in header content ["x-a"]',
        'routes.yaml:line expect.name: this request cannot be tried: Header name must be a valid HTTP token ["x a"]',
        'routes.yaml:line expect.wrong.status: expected 201, got 200'
      ]
    )
    for (const letter of ['\u0001', 'ü', '\u{1f600}', '\u007f']) {
      t.match(
        faultsOf(
          textFolder(t.after, {
            'routes.yaml': stringify({
              ...base,
              expect: { a: { request: `GET /api/${letter}`, status: 404 } }
            })
          })
        ).join(),
        /expect.a.request: expected a method and a path/
      )
      t.match(
        faultsOf(
          textFolder(t.after, {
            'routes.yaml': stringify({
              ...base,
              expect: { a: { request: 'GET /api/a', upstreamPath: `/${letter}` } }
            })
          })
        ).join(),
        /expect.a.upstreamPath: expected a path/
      )
    }
  }
)

t.test('the line is that of the key', async t => {
  const text = 'expect:\n  one:\n    request: GET /api/session\n    status: 200\n'
  const [fault] = await tryConfig(loadConfig(textFolder(t.after, { 'routes.yaml': text }), {}))
  t.match(fault, { line: 4, path: 'expect.one.status', severity: 'fault' })
})

t.test('a case that makes no sense is a fault of the config', async t => {
  t.same(
    faultsOf(
      textFolder(t.after, {
        'routes.yaml': stringify({
          expect: {
            a: { request: 'GET /x' },
            b: { request: 'GET /x', code: 'sesion.none' },
            c: { request: 'GET /x', upstream: 'y' },
            d: { request: 'GET /x', status: 200, address: 'x' },
            e: { request: 'x', status: 200 }
          }
        })
      })
    )
      .filter(line => line.includes('expect'))
      .map(line => line.replace(/:\d+/, '')),
    [
      'routes.yaml expect.e.request: expected a method and a path, such as GET /api/orders?page=2, found "x"',
      'routes.yaml expect.a: expects nothing: set status, code, upstream, upstreamPath or response',
      'routes.yaml expect.b.code: there is no error code "sesion.none". Did you mean "session.none"?',
      'routes.yaml expect.c.upstream: there is no upstream "y".',
      'routes.yaml expect.d.address: is not a valid IP address: expected one such as 192.0.2.10, found "x"'
    ]
  )
})

/** What a config expects of itself. How `check` tells it: config.transcript.yaml. */
import t from 'tap'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import { tryConfig } from '../../src/dry-run/try-config.ts'
import { textFolder } from '../support/config-files.ts'

const base = parse(`
upstreams: { backend: { url: 'http://127.0.0.1:1/base' }, other: { url: 'http://127.0.0.1:1' } }
endpoints: { profile: { upstream: backend, rewrite: /accounts/me } }
aliases: { /api/currentUser: /api/account/profile }
routes:
  orders:
    path: /api/orders
    methods: [GET, POST]
    access: { roles: [admin] }
    upstream: other
    rewrite: /orders
  files: { path: /api/files/*, access: public, upstream: backend, rewrite: /store/* }
  told: { path: /api/told, access: public, upstream: other, shape: told }
shapes: { told: [{ status: { path: code, ok: [0] } }, { unwrap: data }] }
`) as object
const gateway = `
session: { cookie: { secure: false } }
server: { hosts: [console.example] }`
const limits = `
limits:
  guess: { by: address, max: 10, window: 1m, routes: [login] }
  all: { by: address, max: 5, window: 1m, routes: [files] }
  signed-in: { by: user, max: 3, window: 1m }`

/** Those of the expectations, by their paths. */
async function failures(expect: object, more: object = {}): Promise<string[]> {
  const folder = textFolder(t.after, {
    'gateway.yaml': gateway,
    'routes.yaml': stringify({ ...base, ...more, expect }),
    'limits.yaml': limits
  })
  const faults = await tryConfig(loadConfig(folder, {}))
  t.ok(faults.every(({ file, line }) => file.endsWith('routes.yaml') && line > 0))
  return faults.map(({ path, message }) => `${path.replace('expect.', '')}: ${message}`)
}

const own = { request: 'POST /api/orders', roles: ['admin'], body: { a: 1 } }
const guess = { request: 'POST /api/auth/admin/login', body: { username: 'x', password: 'y' } }
const files = { request: 'GET /api/files/a' }
const told = { request: 'GET /api/told' }
const evil = { 'origin': 'https://evil.example', 'sec-fetch-site': 'cross-site' }

t.test('what holds gives no fault: access, roles, aliases, rewrites, limits, shapes', async t => {
  const upstreamPath = '/orders?x=1'
  const whole = { request: 'POST /api/orders?x=1', status: 200, upstream: 'other', upstreamPath }
  const current = { request: 'GET /api/currentUser', roles: ['admin'], answer: { name: 'x' } }
  const profile = { status: 200, upstream: 'backend', upstreamPath: '/accounts/me' }
  const rows = [
    { request: 'GET /api/account/profile', status: 401, code: 'session.none' },
    { ...own, roles: ['viewer'], status: 403, code: 'route.forbidden' },
    { ...own, ...whole },
    { ...current, ...profile },
    { request: 'GET /api/files/a/b', upstreamPath: '/store/a/b' },
    { request: 'GET /api/nothing', status: 404 },
    { ...guess, times: 5, status: 401 },
    { ...guess, times: 6, status: 429, code: 'login.locked' },
    { ...files, times: 6, status: 429 },
    // Nothing is left of the case before.
    { ...files, status: 200 },
    { ...own, times: 4, code: 'limit.exceeded' },
    { ...told, answer: { code: 404 }, status: 404 },
    { ...told, answer: { code: 0, data: 1 }, status: 200 },
    { ...told, headers: { host: 'evil.example' }, status: 400 },
    { ...own, headers: evil, status: 403, code: 'origin.refused' }
  ]
  t.same(await failures(Object.fromEntries(rows.map((row, index) => [`case-${index}`, row]))), [])
})

t.test('what does not hold is a fault that says what came instead', async t => {
  const some = { ...told, answer: { code: 0, data: { a: 1, list: [{ b: 2 }, 3] } } }
  t.same(
    await failures({
      a: { request: 'GET /api/account/profile', status: 200 },
      b: { request: 'GET /api/orders', roles: ['admin'], upstream: 'backend', upstreamPath: '/o' },
      c: { request: 'GET /api/nothing', upstream: 'backend', code: 'session.none' },
      d: { ...guess, times: 5, status: 429 },
      e: { ...some, response: { a: 1 } },
      f: { ...some, response: { a: 1, list: [{ b: 2 }, 3] } },
      g: { ...some, response: { a: '1' } },
      h: { ...some, response: { list: [{ b: 2 }] } },
      i: { ...some, response: { list: [{ b: 7 }, 3] } },
      j: { ...some, response: { more: { c: 1 } } },
      k: { ...some, response: [] },
      // What cannot be sent is a fault of its case, and the others are tried.
      l: { ...told, headers: { 'x a': 'b' }, status: 200 },
      m: { ...files, status: 201 }
    }),
    [
      'a.status: expected 200, got 401 session.none',
      'b.upstream: expected backend; other got /orders',
      'b.upstreamPath: expected /o; other got /orders',
      'c.code: expected session.none, got 404 route.unknown',
      'c.upstream: expected backend; no upstream was called (got 404 route.unknown)',
      'd.status: expected 429, got 401 login.refused',
      'g.response: expected "1" at a, got 1 (got 200)',
      'h.response: expected 1 items at list, got 2 (got 200)',
      'i.response: expected 7 at list[0].b, got 2 (got 200)',
      'j.response: expected {"c":1} at more, got nothing (got 200)',
      'k.response: expected [], got {"a":1,"list":[{"b":2},3]} (got 200)',
      'l: this request cannot be tried: Header name must be a valid HTTP token ["x a"]',
      'm.status: expected 201, got 200'
    ]
  )
})

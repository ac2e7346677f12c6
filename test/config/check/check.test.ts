import { readFileSync } from 'node:fs'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { faultsOf, type Texts, textFolder } from '../../support/config-files.ts'

interface Files {
  readonly gateway?: object
  readonly routes?: object
  readonly limits?: object
}

const upstreams = { b: { url: 'http://backend.internal:81' } }
const route = (more: object = {}) => ({ path: '/api/r', upstream: 'b', ...more })
const withRoute = (more: object): Files => ({ routes: { upstreams, routes: { r: route(more) } } })
/** Two shapes, `s` and `t`, each used by a route. */
const withShapes = (shapes: { s: object[]; t: object[] }): Files => ({
  routes: {
    upstreams,
    routes: { r: route({ shape: 's' }), q: route({ shape: 't', path: '/api/q' }) },
    shapes
  }
})
const part = { upstream: 'b', rewrite: '/n' }
const source = { kind: 'upstream-login', upstream: 'b', path: '/in', user: { id: 'id' } }

/** What `check` says of a production config that is sound but for what is given. */
function said(
  cleanUp: (undo: () => unknown) => void,
  { gateway, routes, limits }: Files
): string[] {
  const { server = { hosts: ['console.example.com'] } } = (gateway ?? {}) as { server?: object }
  const texts: Texts = {
    'gateway.yaml': stringify({
      ...gateway,
      server: { trustedProxies: ['10.0.0.0/8'], ...server }
    }),
    'a.js': '',
    ...(routes && { 'routes.yaml': stringify(routes) }),
    ...(limits && { 'limits.yaml': stringify(limits) })
  }
  return faultsOf(textFolder(cleanUp, texts), { LONG: 'x'.repeat(32), SHORT: 'x'.repeat(31) }).map(
    line => line.replace(/^(\w+\.yaml):\d+/, '$1')
  )
}

interface Rule extends Files {
  readonly title: string
  readonly route?: object
  readonly each?: readonly string[]
  readonly faults?: readonly string[]
}

/** The cases of rules.yaml, in full. */
const rules = (parse(readFileSync('test/config/check/rules.yaml', 'utf8')) as Rule[])
  .flatMap(({ each = [''], ...rule }) =>
    each.map(text => JSON.parse(JSON.stringify(rule).replaceAll('{each}', text)) as Rule)
  )
  .map(({ title, faults = [], route: more, routes, ...files }) => ({
    title,
    faults,
    files: {
      ...files,
      ...(routes !== undefined && { routes: { upstreams, ...routes } }),
      ...(more !== undefined && withRoute(more))
    }
  }))

for (const { title, files, faults } of rules) {
  t.test(title, async t => {
    t.same(said(t.after, files), faults)
  })
}

t.test('an upstream has a hundred addresses at most', async t => {
  const urls = Array.from({ length: 101 }, (_, index) => `http://b${index}`)
  const routes = { upstreams: { b: { urls } }, routes: { r: route() } }
  t.same(said(t.after, { routes }), [
    'routes.yaml upstreams.b.urls: expected at most 100 items, found 101'
  ])
})

t.test('a clash of two routes is one fault, also where an alias stands for them', async t => {
  const clash = { r: route(), again: route() }
  t.same(said(t.after, { routes: { upstreams, aliases: { '/api/z': '/api/r' }, routes: clash } }), [
    'routes.yaml routes.again.path: GET /api/r is taken by routes.r (line 8)'
  ])
})

t.test('what hangs on a value that does not fit is not said twice', async t => {
  t.same(
    said(t.after, {
      routes: { upstreams: { b: { url: 5 } }, routes: { r: route({ upstream: 7, path: 8 }) } }
    }),
    [
      'routes.yaml upstreams.b.url: expected an http:// or https:// address without user, query or fragment, found 5',
      'routes.yaml routes.r.path: expected a path that begins with /, with :name as a whole segment, and /* at its end at most, found 8',
      'routes.yaml routes.r.upstream: expected a name in lower case with dashes, found 7'
    ]
  )
})

const namedBy: Readonly<Record<string, (name: string) => Files>> = {
  'the upstream of a route': name => withRoute({ upstream: name }),
  'the upstream of a part': name =>
    withRoute({ upstream: undefined, parts: { p: { ...part, upstream: name } } }),
  'the upstream of the profile': name => ({
    routes: { upstreams, endpoints: { profile: { upstream: name } } }
  }),
  'the upstream of a source': name => ({
    gateway: { login: { sources: { b: { ...source, upstream: name } } } },
    routes: { upstreams }
  }),
  'the upstream of an expectation': name => ({
    routes: { upstreams, expect: { e: { request: 'GET /a', upstream: name } } }
  }),
  'the shape of a route': name => withRoute({ shape: name }),
  'the shape of a part': name => withRoute({ parts: { p: { ...part, shape: name } } }),
  'the shape of a body': name => withRoute({ methods: ['POST'], body: { shape: name } }),
  'the shape of a body within another': name => ({
    routes: {
      upstreams,
      routes: { r: route({ methods: ['POST'], body: { shape: 's' } }) },
      shapes: { s: [{ use: name }] }
    }
  }),
  'the shape of the profile': name => ({
    routes: {
      upstreams,
      endpoints: { profile: { upstream: 'b', shape: name } }
    }
  }),
  'use in a shape': name => withShapes({ s: [{ use: name }], t: [{ each: [{ use: name }] }] }),
  'the routes of a limit': name => ({
    limits: {
      limits: { l: { by: 'user', max: 1, window: '1m', routes: [name], methods: ['GET'] } }
    }
  }),
  'the routes of a limit by role': name => ({
    limits: { limits: { l: { by: 'user', max: 1, window: '1m', routes: [name], roles: ['a'] } } }
  }),
  'a route in flight': name => ({ limits: { inFlightPerRoute: { [name]: 1 } } }),
  'a route in maintenance': name => ({ routes: { maintenance: { routes: [name] } } }),
  'a route in the ledger': name => ({
    gateway: { audit: { key: '${LONG}', fields: { [name]: { a: 'plain' } } } }
  }),
  'the source of a credential': name => ({
    routes: { upstreams: { b: { ...upstreams.b, credential: { from: name, as: 'bearer' } } } }
  }),
  'the source of operators': name => ({ gateway: { ops: { role: 'admin', sources: [name] } } })
}

for (const [key, files] of Object.entries(namedBy)) {
  t.test(`${key}: constructor is unknown like any other name`, async t => {
    const faults = said(t.after, files('nowhere'))
    t.ok(
      faults.some(fault => fault.includes('nowhere')),
      faults.join('\n')
    )
    t.same(
      said(t.after, files('constructor')),
      faults.map(fault => fault.replaceAll('nowhere', 'constructor'))
    )
  })
}

import t from 'tap'
import { stringify } from 'yaml'
import { risksOf } from '../../src/config/risks.ts'
import { configChanges } from '../../src/config/diff.ts'
import { loadConfig } from '../../src/config/read/load.ts'
import { textFolder } from '../support/config-files.ts'

interface Files {
  readonly gateway?: object
  readonly routes?: object
  readonly limits?: object
  readonly users?: object
}

const upstreams = { b: { url: 'https://b.internal' } }
const route = (more: object = {}) => ({
  upstreams,
  routes: { r: { path: '/api/r', upstream: 'b', ...more } }
})
const secrets = { OLD: 'o'.repeat(40), NEW: 'n'.repeat(40) }

function load(cleanUp: (undo: () => unknown) => void, { gateway, routes, limits, users }: Files) {
  return loadConfig(
    textFolder(cleanUp, {
      'gateway.yaml': stringify({
        server: { hosts: ['h'] },
        ...gateway,
        ...(users && {
          login: { sources: { 'users-file': { kind: 'users-file', file: 'users.yaml' } } }
        })
      }),
      'routes.yaml': stringify(routes ?? route()),
      'limits.yaml': stringify(limits ?? {}),
      ...(users && { 'users.yaml': stringify({ users }) })
    }),
    secrets
  )
}

t.test('what differs is said in words, with units, and never a secret', async t => {
  const said = (before: Files, after: Files) =>
    configChanges(load(t.after, before), load(t.after, after)).map(
      ({ file, text }) => `${file} ${text}`
    )
  const limit = (max: number, window = '1m') => ({
    limits: { login: { by: 'address', max, window, routes: ['login'] } }
  })
  t.same(said({}, {}), [])
  t.same(said({ limits: limit(5) }, { limits: limit(10, '2m') }), [
    'limits limits.login.max 5 → 10',
    'limits limits.login.window 1m → 2m'
  ])
  t.same(
    said({ limits: { sizes: { body: '1MiB' } } }, { limits: { sizes: { body: '1536KiB' } } }),
    ['limits sizes.body 1MiB → 1536KiB']
  )
  t.same(
    said({ gateway: { session: { idle: '30m' } } }, { gateway: { session: { idle: '90s' } } }),
    ['gateway session.idle 30m → 90s']
  )
  t.same(
    said(
      { gateway: { session: { secrets: ['${OLD}'] } } },
      { gateway: { session: { secrets: ['${NEW}', '${OLD}'] } } }
    ),
    ['gateway session.secrets changed']
  )
  const withKey = (key?: string) => ({
    routes: {
      ...route(),
      upstreams: { b: { ...upstreams.b, ...(key && { headers: { 'x-key': key } }) } }
    }
  })
  t.same(said(withKey('${OLD}'), withKey('${NEW}')), ['routes upstreams.b.headers.x-key changed'])
  t.notMatch(said(withKey(), withKey('${NEW}')).join(), /nnn/)
  t.same(
    said(
      {},
      { routes: { upstreams, routes: { ...route().routes, s: { path: '/api/s', upstream: 'b' } } } }
    ),
    ['routes routes.s added']
  )
  t.same(said({ routes: route({ timeout: '3s' }) }, {}), [
    'routes routes.r.timeout no longer set (was 3s)'
  ])
  t.same(said({}, { routes: route({ access: { roles: ['admin'] } }) }), [
    'routes routes.r.access session → {"roles":["admin"]}'
  ])
  t.same(said({}, { routes: { ...route({ shape: 's' }), shapes: { s: [{ pick: ['a'] }] } } }), [
    'routes routes.r.shape s (was not set)',
    'routes shapes.s added'
  ])
})

t.test('another authority of Redis is a change that needs a restart', t => {
  const config = load(t.after, { gateway: {} })
  const withCa = (redisCa: string) => ({ ...config, redisCa })
  const [difference, ...others] = configChanges(withCa('old'), withCa('new'))
  t.equal(difference?.text, 'redis.ca has other content')
  t.equal(difference?.restart, true)
  t.same(others, [])
  t.same(configChanges(withCa('old'), withCa('old')), [])
  t.end()
})

t.test('whom a limit counts is said as it is written: one, or a list', async t => {
  const limits = (by: string | string[]) => ({
    limits: { limits: { l: { by, max: 1, window: '1m' } } }
  })
  const textsOf = (before: string | string[], after: string | string[]) =>
    configChanges(load(t.after, limits(before)), load(t.after, limits(after))).map(
      ({ text }) => text
    )
  t.same(textsOf('user', 'address'), ['limits.l.by user → address'])
  t.same(textsOf('user', ['user', 'address']), ['limits.l.by user → ["user","address"]'])
  t.same(textsOf('user', ['user']), [])
})

t.test('what becomes open, loose, weak or slow is a risk', async t => {
  const risks = (before: Files, after: Files) =>
    risksOf(load(t.after, before), load(t.after, after))
  const limits = (max: number, routes = ['login']) => ({
    limits: { l: { by: 'address', max, window: '1m', routes } }
  })
  const admin = route({ access: { roles: ['admin'] } })
  const cases: Array<[Files, Files, RegExp]> = [
    [{}, { routes: route({ access: 'public' }) }, /^routes\.r \(\/api\/r\) becomes public/],
    [{ routes: admin }, {}, /open to every signed-in user; it was for admin/],
    [
      { routes: admin },
      { routes: route({ access: { roles: ['admin', 'viewer'] } }) },
      /more roles: viewer/
    ],
    [{}, { routes: route({ methods: ['GET', 'DELETE'] }) }, /more methods: DELETE/],
    [{}, { routes: route({ path: '/api/r/*' }) }, /takes more paths: \/api\/r\/\* instead of/],
    [
      {},
      { routes: route({ passHeaders: ['authorization'] }) },
      /passes the client's own authorization/
    ],
    [{}, { routes: route({ setCookies: ['a'] }) }, /set cookies: a/],
    [
      {},
      { routes: { ...route(), upstreams: { b: { url: 'https://other.internal' } } } },
      /has another host/
    ],
    [
      {},
      { routes: { ...route(), upstreams: { b: { url: 'http://b.internal' } } } },
      /without https/
    ],
    [{ limits: limits(5) }, { limits: limits(50) }, /^limits\.l is 10 times looser/],
    [{ limits: limits(5) }, { limits: limits(5, ['login', 'logout']) }, /^$/],
    [{ limits: limits(5) }, { limits: { limits: {} } }, /^limits\.l is removed/],
    [
      { gateway: { session: { secrets: ['${OLD}'] } } },
      { gateway: { session: { secrets: ['${NEW}'] } } },
      /everyone is signed out/
    ],
    [{}, { gateway: { session: { cookie: { secure: false } } } }, /without https/],
    [
      {},
      { gateway: { server: { hosts: ['h'], origins: ['https://a.example'] } } },
      /pages of https:\/\/a\.example may use/
    ],
    [{}, { gateway: { ops: { listen: '0.0.0.0:9090' } } }, /operators' port listens beyond/]
  ]
  for (const [before, after, expected] of cases) {
    t.match(risks(before, after).join('\n'), expected, String(expected))
  }
  t.same(risks({}, {}), [])
  t.same(
    risks({ routes: route({ access: 'public' }) }, { routes: admin }),
    [],
    'what becomes stricter is none'
  )
})

t.test('another name hides no risk: what callers can reach counts', t => {
  const risks = (before: object, after: object) =>
    risksOf(load(t.after, { routes: before }), load(t.after, { routes: after }))
  const admin = { upstream: 'b', access: { roles: ['admin'] } }
  const routes = (all: object, more: object = {}) => ({
    upstreams: { ...upstreams, ...more },
    routes: all
  })
  const before = routes({ orders: { ...admin, path: '/api/orders' } })
  t.same(risks(before, routes({ list: { path: '/api/orders', upstream: 'b' } })), [
    'routes.list (/api/orders) is open to every signed-in user; it was for admin'
  ])
  t.same(risks(before, routes({ list: { ...admin, path: '/api/orders' } })), [])
  const outer = { ...admin, path: '/api/*', access: 'session' }
  t.same(
    risks(routes({ outer, orders: { ...admin, path: '/api/orders' } }), routes({ outer })),
    ['routes.outer (/api/orders) is open to every signed-in user; it was for admin'],
    'a route that is gone leaves its path to another'
  )
  t.same(
    risks(
      routes({ outer }),
      routes({ outer, open: { ...outer, path: '/api/x', access: 'public' } })
    ),
    ['routes.open (/api/x) becomes public: anyone may call it']
  )
  const evil = { evil: { url: 'http://evil.example' } }
  t.same(
    risks(before, routes({ orders: { ...admin, path: '/api/orders', upstream: 'evil' } }, evil)),
    ['upstreams.evil has another host: identities and tokens go to evil.example']
  )
  const untold = { evil: { ...evil.evil, identity: false } }
  t.same(risks(before, { ...before, ...routes({ ...before.routes }, untold) }), [])
  t.end()
})

t.test('the order of keys is no change, but for credential sources', t => {
  const sources = (...all: Array<[string, object]>) =>
    load(t.after, {
      gateway: { identity: { prefix: true }, login: { sources: Object.fromEntries(all) } }
    })
  const file = { kind: 'users-file', file: 'users.yaml' }
  const same = { file: 'users.yaml', kind: 'users-file' }
  const before = sources(['a', file], ['b', file])
  t.same(configChanges(before, sources(['a', same], ['b', same])), [])
  const [change, ...others] = configChanges(before, sources(['b', file], ['a', file]))
  t.match(change, { text: 'login.sources are asked in another order: b, a', restart: true })
  t.same(others, [])
  t.match(
    configChanges(before, sources(['c', file], ['a', file], ['b', file])).map(({ path }) => path),
    ['login.sources.c']
  )
  t.end()
})

/** Which fields of a client an upstream believes, and how config closes or opens them. */
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { faultsOf, textFolder } from '../support/config-files.ts'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const ofProxies = [
  'Impersonate-User',
  'Impersonate-Group',
  'Impersonate-Extra-Scopes',
  'X-Goog-Authenticated-User-Email',
  'X-Goog-Iap-Jwt-Assertion',
  'X-Ms-Client-Principal',
  'X-Ms-Client-Principal-Name',
  'X-Amzn-Oidc-Data',
  'X-Amzn-Oidc-Identity',
  'Cf-Access-Authenticated-User-Email',
  'Cf-Access-Jwt-Assertion',
  'X-Consumer-Username',
  'X-Authentik-Username',
  'X-Scope-OrgID',
  'X-Middleware-Subrequest',
  'X-Vouch-User',
  'X-Pomerium-Jwt-Assertion'
]
const harmless = {
  'x-tenant-id': 'acme',
  'x-org-id': '7',
  'x-locale': 'de',
  'x-amzn-trace-id': 'Root=1',
  'x-scope': 'all'
}
const forged = { ...Object.fromEntries(ofProxies.map(name => [name, 'mallory'])), ...harmless }
const base = { path: '/api/r', access: 'public', upstream: 'b', methods: ['GET', 'POST'] }

async function gatewayOf(t: Test, routes: Record<string, object>, upstream: object = {}) {
  const backend = await testUpstream(t.after)
  const upstreams = { b: { url: backend.url, ...upstream } }
  const shapes = { s: [{ pick: ['ok'] }] }
  const gateway = await testGateway(t.after, { routes: { upstreams, routes, shapes } })
  /** What the upstream gets of a call of `path`. */
  return async (
    path: string,
    options: { json?: object; headers?: Record<string, string> } = {}
  ) => {
    const { status } = await gateway.call(path, {
      ...options,
      headers: { ...forged, ...options.headers }
    })
    t.equal(status, 200)
    return backend.seen.at(-1)?.headers ?? {}
  }
}

t.test(
  'fields by which other proxies name a user never reach an upstream; tenants of back-ends do',
  async t => {
    const got = await gatewayOf(t, {
      r: base,
      shaped: { ...base, path: '/api/shaped', shape: 's' },
      parts: {
        ...base,
        path: '/api/parts',
        methods: ['GET'],
        parts: { p: { upstream: 'b', rewrite: '/p' } }
      }
    })
    for (const path of ['/api/r', '/api/shaped', '/api/parts']) {
      const headers = await got(path)
      t.notMatch(JSON.stringify(headers), 'mallory', path)
      t.match(headers, harmless, path)
    }
  }
)

t.test(
  'with passHeaders only those fields of the client pass, beside the gateway’s own',
  async t => {
    const passHeaders = ['x-tenant-id', 'content-type', 'accept']
    const got = await gatewayOf(t, { r: base }, { passHeaders })
    const {
      host: _host,
      connection: _connection,
      ...headers
    } = await got('/api/r', {
      json: {},
      headers: {
        'accept': 'text/x',
        'user-agent': 'x',
        'cookie': 'a=b',
        'authorization': 'Basic x'
      }
    })
    t.same(Object.keys(headers).toSorted(), [
      'accept',
      'content-length',
      'content-type',
      'traceparent',
      'x-forwarded-for',
      'x-forwarded-proto',
      'x-request-id',
      'x-tenant-id'
    ])
    t.match(headers, {
      'accept': 'text/x',
      'x-tenant-id': 'acme',
      'content-type': 'application/json'
    })
  }
)

t.test('an empty passHeaders passes nothing', async t => {
  const {
    host: _host,
    connection: _connection,
    ...headers
  } = await (await gatewayOf(t, { r: base }, { passHeaders: [] }))('/api/r')
  t.same(Object.keys(headers).toSorted(), [
    'traceparent',
    'x-forwarded-for',
    'x-forwarded-proto',
    'x-request-id'
  ])
})

t.test('a route opens a refused field by its full name, for itself alone', async t => {
  for (const upstream of [{}, { passHeaders: ['x-locale'] }]) {
    const got = await gatewayOf(
      t,
      {
        r: base,
        tenants: {
          ...base,
          path: '/api/tenants',
          passHeaders: ['x-scope-orgid', 'x-consumer-username']
        }
      },
      upstream
    )
    const opened = await got('/api/tenants')
    t.match(opened, {
      'x-scope-orgid': 'mallory',
      'x-consumer-username': 'mallory',
      'x-locale': 'de'
    })
    t.equal(Object.values(opened).filter(value => value === 'mallory').length, 2)
    t.equal('x-tenant-id' in opened, !('passHeaders' in upstream))
    t.notMatch(JSON.stringify(await got('/api/r')), 'mallory')
  }
})

t.test(
  'check warns of what is opened, and refuses what is the gateway’s own or in the wrong place',
  t => {
    const files = (upstream: object, route: object) =>
      faultsOf(
        textFolder(t.after, {
          'gateway.yaml': stringify({ server: { hosts: ['h'] }, identity: { id: 'x-staff' } }),
          'routes.yaml': stringify({
            upstreams: { b: { url: 'http://b', ...upstream } },
            routes: { r: { ...base, access: 'session', methods: ['GET'], ...route } }
          })
        })
      )
        .filter(line => /passHeaders/.test(line))
        .map(line => line.replace(/^\S+ /, ''))
    t.same(files({ passHeaders: ['accept'] }, { passHeaders: ['x-scope-orgid'] }), [
      'routes.r.passHeaders.0: warning: clients can forge "x-scope-orgid", ' +
        'which back-ends trust as set by a proxy: make sure that this upstream does not trust it'
    ])
    t.same(files({ passHeaders: ['accept'] }, { methods: ['POST'] }), [
      'upstreams.b.passHeaders: warning: does not list content-type: the upstream cannot know the type of a body'
    ])
    for (const name of [
      'x-staff',
      'x-user-roles',
      'host',
      'transfer-encoding',
      'x-forwarded-for',
      'cookie'
    ]) {
      const message = `"${name}" is set by the gateway: a client’s value never goes to an upstream`
      t.same(files({ passHeaders: [name] }, {}), [`upstreams.b.passHeaders.0: ${message}`])
      t.same(files({}, { passHeaders: [name] }), [`routes.r.passHeaders.0: ${message}`])
    }
    t.match(files({ passHeaders: ['x-vouch-user'] }, {}), [/name it in passHeaders of each route/])
    t.match(files({}, { passHeaders: ['accept'] }), [/"accept" passes anyway/])
    t.end()
  }
)

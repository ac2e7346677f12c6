import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { faultsOf, textFolder } from '../../support/config-files.ts'
import { signInAt } from '../../support/sign-in.ts'

interface Over {
  readonly source?: object
  readonly gateway?: object
  readonly upstream?: object
}

/** Faults and warnings at the sources, without their place in the file. */
function faultsAtSources(t: Test, { source, gateway, upstream }: Over): string[] {
  const files = signInAt('http://127.0.0.1:9', source)
  const upstreams = { b: { ...files.routes.upstreams.b, ...upstream } }
  const folder = textFolder(t.after, {
    'gateway.yaml': stringify({ ...files.gateway, ...gateway }),
    'routes.yaml': stringify({ upstreams })
  })
  return faultsOf(folder)
    .filter(fault => fault.includes(' login.sources.'))
    .map(fault => fault.replace(/^\S+ /, ''))
}

t.test('names that are the console’s own to send pass', t => {
  const source = {
    passHeaders: ['tenant-id', 'accept-language', 'user-agent', 'x-sign'],
    passCookies: ['lang', 'theme']
  }
  t.same(faultsAtSources(t, { source }), [])
  t.end()
})

t.test('a header that the gateway builds, strips or trusts is a fault', t => {
  const faultOf = (name: string, over: Omit<Over, 'source'> = {}, source: object = {}) =>
    faultsAtSources(t, { source: { passHeaders: ['x-fine', name], ...source }, ...over })
  const own = [
    ...['host', 'cookie', 'authorization', 'content-length', 'x-request-id', 'connection'],
    ...['x-forwarded-for', 'accept', 'accept-encoding', 'content-type', 'transfer-encoding']
  ]
  for (const name of own) {
    const expected = `login.sources.b.passHeaders.1: "${name}" is set by the gateway itself: remove it`
    t.same(faultOf(name), [expected])
  }
  for (const name of ['x-real-ip', 'x-forwarded-prefix', 'x-user-name', 'x-scope-orgid']) {
    t.match(faultOf(name), [/clients could forge it$/], name)
  }
  t.match(faultOf('x-who', { gateway: { identity: { id: 'x-who' } } }), [/header of `identity`/])
  t.match(faultOf('x-token', { upstream: { credential: 'header:x-token' } }), [/the credential/])
  t.match(faultOf('x-app', {}, { headers: { 'X-App': '1' } }), [/fixed `headers`/])
  t.match(faultOf('x-app', { upstream: { headers: { 'x-app': '1' } } }), [/fixed `headers`/])
  const gateway = { envelope: { tokenHeaders: ['x-access-token'] } }
  t.match(faultOf('x-access-token', { gateway }), [/`envelope.tokenHeaders`/])
  t.end()
})

t.test('headers of its calls are such as HTTP can carry', t => {
  const [value, headers] = ['é\n', { 'x-é': '1', 'Host': 'b', 'Content-Length': '1', 'te': 'gzip' }]
  const call = { path: '/in', token: 'token' }
  const calls = (more: object) => ({
    refresh: { ...call, ...more },
    expires: { path: 'expires' },
    token: 'token'
  })
  const places = ['headers', 'refresh.headers']
  const upstream = { credential: 'bearer' }
  t.same(
    faultsAtSources(t, {
      source: { headers: { 'x-a': value }, ...calls({ headers: { b: value } }) },
      upstream
    }),
    [
      'login.sources.b.headers.x-a: expected printable ASCII, found "é\\n"',
      'login.sources.b.refresh.headers.b: expected printable ASCII, found "é\\n"'
    ]
  )
  t.same(
    faultsAtSources(t, { source: { headers, ...calls({ headers }) }, upstream }),
    places.flatMap(place => [
      `login.sources.b.${place}.x-é: "x-é" is no name of a header`,
      `login.sources.b.${place}.Host: "Host" is set by the gateway itself: remove it`,
      `login.sources.b.${place}.Content-Length: "Content-Length" is set by the gateway itself: remove it`,
      `login.sources.b.${place}.te: "te" is set by the gateway itself: remove it`
    ])
  )
  const sound = {
    'X-App_1': '',
    'content-type': 'application/vnd.api+json',
    'Authorization': 'Basic eA==',
    'cookie': 'rt={refreshToken}'
  }
  const source = { headers: sound, ...calls({ headers: sound }) }
  t.same(faultsAtSources(t, { source, upstream }), [])
  t.end()
})

t.test('a cookie of the gateway’s own, or of the back-end’s session, is a fault', t => {
  const source = { cookies: ['sid'] }
  for (const [name, expected] of [
    ['console_sid', /gateway itself/],
    ['__Host-console_sid', /gateway itself/],
    ['console_known', /gateway itself/],
    ['TOKEN__', /`envelope.tokenCookies`/],
    ['sid', /clients could choose it/]
  ] as const) {
    const faults = faultsAtSources(t, { source: { ...source, passCookies: [name] } })
    const fault = faults.find(each => each.includes('passCookies.0'))
    t.match(fault, expected, name)
  }
  t.end()
})

t.test('a cookie of the back-end’s session that a browser would get is pointed out', t => {
  const faultsOfRoute = (route: object) => {
    const files = signInAt('http://127.0.0.1:9', { cookies: ['SID'], passCookies: ['SID'] })
    const routes = { picture: { path: '/api/picture', upstream: 'b', access: 'public', ...route } }
    const folder = textFolder(t.after, {
      'gateway.yaml': stringify(files.gateway),
      'routes.yaml': stringify({ ...files.routes, routes })
    })
    return faultsOf(folder).filter(fault => fault.includes('SID'))
  }
  t.same(faultsOfRoute({ setCookies: [{ name: 'SID', sealed: true }] }), [])
  t.match(faultsOfRoute({ setCookies: ['x', 'SID'] }), [
    /routes\.picture\.setCookies\.1: warning: "SID" is in `cookies` of the sign-in: .*`sealed: true`/,
    /passCookies.0: "SID" is in `cookies`, the back-end’s session: clients could choose it/
  ])
  t.end()
})

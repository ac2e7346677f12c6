/** Request headers: what an upstream is told is the gateway's word, whatever a client sends. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'

/** What the back-end says of who signs in there. */
let user = '{"id":"7","username":"carol","roles":["admin","user"]}'
const backend = await testUpstream(t.teardown, (incoming, response, seen) => {
  if (seen.url !== '/login') return json(200, { ok: 1 })(incoming, response, seen)
  response.setHeader('set-cookie', ['sid=1', 'csrf=2'])
  response.setHeader('content-type', 'application/json')
  response.end(`{"token":"t1","user":${user}}`)
})
const { url } = backend
const methods = ['GET', 'POST']
const open = { methods, access: 'public' }
const upstreams = {
  'plain': { url },
  'quiet': { url, identity: false },
  'bearer': { url, credential: 'bearer' },
  'cookies': { url, credential: 'cookies' },
  'token': { url, credential: 'header:x-token' },
  'whole': { url, credential: 'header:authorization' },
  'listed': { url, passHeaders: ['x-tenant-id', 'content-type', 'accept'] },
  'closed': { url, passHeaders: [] },
  'locale': { url, passHeaders: ['x-locale'] },
  'of-profile': {
    url,
    headers: {
      'x-tenant': '{profile.tenant.id}',
      'x-dept': '{profile.dept}',
      'x-none': '{profile.missing}',
      'x-object': '{profile.tenant}',
      'x-fixed': 'yes'
    }
  }
}
const opened = { passHeaders: ['x-scope-orgid', 'x-consumer-username'] }
const gateway = await testGateway(t.teardown, {
  gateway: {
    server: { origins: ['https://console.example.com'] },
    identity: { id: 'x-staff', username: 'x-staff-login', roles: 'x-staff-may', source: 'x-from' },
    login: { sources: { file: { kind: 'users-file' } } }
  },
  backend: url,
  source: {
    token: 'token',
    cookies: ['sid', 'csrf'],
    user: {
      id: 'user.id',
      username: 'user.username',
      roles: 'user.roles',
      profile: 'user.profile'
    }
  },
  limits: { limits: {} },
  routes: {
    upstreams,
    shapes: { s: [{ pick: ['ok'] }] },
    routes: {
      ...Object.fromEntries(
        Object.keys(upstreams).flatMap(upstream => [
          [upstream, { methods, upstream }],
          [`${upstream}-open`, { ...open, path: `/api/open/${upstream}`, upstream }]
        ])
      ),
      'admin': { access: { roles: ['admin'] } },
      'shaped': { access: 'public', shape: 's' },
      'parts': { parts: { p: { upstream: 'of-profile', rewrite: '/p' } } },
      'tenants': opened,
      'tenants-locale': { ...opened, upstream: 'locale' },
      'theme': { passCookies: ['lang', 'theme'] },
      'theme-cookies': { upstream: 'cookies', passCookies: ['theme'] },
      'own-token': { upstream: 'bearer', passHeaders: ['authorization'] }
    }
  }
})
const cookie = await gateway.signIn()
/** Alice is of the file, so her session holds nothing of the back-end; carol is of the back-end. */
const alice = `Cookie: ${cookie}`
const carol = `Cookie: ${await gateway.signIn('carol')}`

const noHeaders: Readonly<Record<string, string | string[] | undefined>> = {}
const lastSeen = () => backend.seen.at(-1) ?? { rawHeaders: [], headers: noHeaders, url: '' }

/** The headers that the back-end gets of a request with these fields, which has to pass. */
async function sent(path: string, fields: readonly string[], line = `GET ${path}`) {
  const answer = await raw(gateway.url, Buffer.from(request(line, [...fields]), 'latin1'))
  t.equal(answer.status, 200, line)
  return lastSeen().headers
}

/** Without what differs from run to run, or is of the connection. */
function namesOf(headers: object): string[] {
  const others = new Set(['host', 'connection'])
  return Object.keys(headers)
    .filter(name => !others.has(name))
    .toSorted()
}

const words = (text: string) => text.trim().split(/\s+/)
const ofProxies = words(`
  Impersonate-User Impersonate-Group Impersonate-Extra-Scopes X-Goog-Authenticated-User-Email
  X-Goog-Iap-Jwt-Assertion X-Ms-Client-Principal X-Ms-Client-Principal-Name X-Amzn-Oidc-Data
  X-Amzn-Oidc-Identity Cf-Access-Authenticated-User-Email Cf-Access-Jwt-Assertion
  X-Consumer-Username X-Authentik-Username X-Scope-OrgID X-Middleware-Subrequest X-Vouch-User
  X-Pomerium-Jwt-Assertion
`)
const identity = words(`
  ${ofProxies.join(' ')}
  X-Staff X-Staff-Login X-Staff-May X-From X-User-Id X-User-Name X-User-Roles
  X-User X-Users X-User-Email User Username Role Groups X-Group X-Auth X-Auth-Roles
  X-Authenticated Authenticated-User Identity Principal X-Token-Subject Client-Cert
  SSL-Client-Verify X-Username X-Userid X-Role X-Roles X-Groups X-Auth-User
  X-Auth-Request-User X-Authenticated-User X-WebAuth-User X-Remote-User Remote-User
  Remote-Groups X-Forwarded-User X-Forwarded-Email X-Forwarded-Groups X-Account-Id
  X-Forwarded-Preferred-Username X-Forwarded-Access-Token X-Original-User X-Admin
  X-Principal X-Identity X-SSL-Client-S-DN X-SSL-Client-Verify X-Client-Cert
  X-Client-Verify X-Internal-User X-Authorization X-Envoy-Internal
`)
const forged = 'root-of-all-evil'

t.test('identity fields of the client never reach the back-end, in any spelling', async t => {
  const spellings = [
    (name: string) => name,
    (name: string) => name.toLowerCase(),
    (name: string) => name.toUpperCase(),
    (name: string) => name.replace('-', '_'),
    (name: string) => name.replaceAll('-', '_').toUpperCase(),
    // CGI-like servers (older Apache, PHP's own) make `_` of any of these.
    ...Array.from("_.!#$%&*+^`|~'", mark => (name: string) => name.replaceAll('-', () => mark)),
    (name: string) => name.replace('-', '.')
  ]
  for (const spell of spellings) {
    const fields = identity.map(name => `${spell(name)}: ${forged}`)
    for (const path of ['plain', 'open/plain', 'quiet', 'shaped', 'parts']) {
      await sent(`/api/${path}`, [alice, ...fields])
      t.notMatch(lastSeen().rawHeaders.join('\n'), forged, `${spell('X-User-Id')} to ${path}`)
    }
  }
})

t.test('a field sent twice does not slip through beside ours', async t => {
  const fields = ['X-Staff: 99', alice, 'x-staff: 98', 'X-STAFF-MAY: root', 'X-Staff-May: root']
  const told = { 'x-staff': '1', 'x-staff-login': 'alice', 'x-staff-may': 'admin,user' }
  t.match(await sent('/api/plain', fields), { ...told, 'x-from': 'file' })
  const names = lastSeen().rawHeaders.filter(text => text.toLowerCase() === 'x-staff')
  t.equal(names.length, 1)
  const { headers } = lastSeen()
  await sent('/api/quiet', fields)
  const untold = namesOf(headers).filter(name => !(name in lastSeen().headers))
  t.same(untold, ['x-from', 'x-staff', 'x-staff-login', 'x-staff-may'], 'where nothing may be told')
})

t.test('Connection cannot make the gateway drop what it adds', async t => {
  const host = new URL(backend.url).host
  const added = {
    'x-staff': /./,
    'x-staff-may': 'admin,user',
    'x-forwarded-for': '127.0.0.1',
    host
  }
  for (const listed of [
    'x-staff, x-staff-login, x-staff-may',
    'X-Staff-May',
    'close, X-Staff, x-staff-may , X-FORWARDED-FOR,x-request-id, authorization, cookie, x-token',
    'host',
    'content-length, cookie'
  ]) {
    const fields = [carol, `Connection: ${listed}`]
    t.match(await sent('/api/plain', fields), { ...added, 'x-request-id': /\w/ }, listed)
    t.match(await sent('/api/bearer', fields), { ...added, authorization: 'Bearer t1' }, listed)
    t.match(await sent('/api/token', fields), { ...added, 'x-token': 't1' }, listed)
    const theme = [`${carol}; theme=dark`, `Connection: ${listed}`]
    t.match(await sent('/api/theme', theme), { ...added, cookie: 'theme=dark' }, listed)
  }
})

const addresses = words(`
  X-Forwarded-For X_Forwarded_For X-Real-IP X-Client-IP True-Client-IP Client-IP CF-Connecting-IP
  X-Cluster-Client-IP X-Remote-Addr Remote-Addr
`)
const places = words(`
  X-Forwarded-Host X-Forwarded-Prefix X-Forwarded-Server X-Forwarded-By Proxy Via
  X-Forwarded-Scheme X-Original-Host X-Envoy-Original-Path X-Forwarded-Client-Cert
`)
t.test('what the client says of its way here is not believed and not passed on', async t => {
  const fields = [
    ...addresses.map(name => `${name}: 6.6.6.6`),
    ...places.map(name => `${name}: evil.example`),
    'X-Forwarded-Proto: https',
    'X-Forwarded-Port: 666',
    'Forwarded: for=6.6.6.6;host=evil.example'
  ]
  await sent('/api/plain', [alice, ...fields])
  // The port in `Host` and the ids are random: they may hold 666 by chance.
  const random = ['host', 'via', 'x-request-id', 'traceparent']
  const others = Object.entries(lastSeen().headers).filter(([name]) => !random.includes(name))
  t.notMatch(JSON.stringify(others), /6\.6\.6\.6|evil|666/)
  t.match(lastSeen().headers, {
    'host': new URL(url).host,
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    // A host that config does not list is not passed on.
    'x-forwarded-host': undefined
  })
  const line = gateway.log.findLast(({ msg }) => msg === 'request')
  t.match(line, { address: '127.0.0.1' })
})

const overrides = words('X-HTTP-Method-Override X-HTTP-Method X-Method-Override')
const paths = words(
  'X-Original-URL X_Original_URL X-Rewrite-URL X-Forwarded-Uri X-Forwarded-Path X-Original-Path'
)
t.test('no field makes a request another one, or one of somebody', async t => {
  const before = backend.begun()
  for (const trick of [
    ...[...identity, 'Authorization'].map(name => `${name}: admin`),
    ...paths.map(name => `${name}: /api/open/plain`),
    ...overrides.map(name => `${name}: GET`),
    'X-Forwarded-Method: GET',
    'User-Agent: kube-probe/1.30',
    'Referer: http://gateway.test/',
    'X-Custom-IP-Authorization: 127.0.0.1'
  ]) {
    for (const path of ['plain', 'admin']) {
      const answer = await raw(gateway.url, request(`GET /api/${path}`, [trick]))
      t.equal(answer.status, 401, trick)
    }
  }
  t.equal(backend.begun(), before)
  await sent('/api/open/plain', [
    ...paths.map(name => `${name}: /admin`),
    ...overrides.map(name => `${name}: DELETE`)
  ])
  t.match(lastSeen(), { method: 'GET', url: '/api/open/plain' })
  t.notMatch(lastSeen().rawHeaders.join('\n'), /\/admin|DELETE/)
})

const cookies: ReadonlyArray<readonly [given: string, passed: string | undefined]> = [
  ['theme=dark;TOKEN__=old; lang="de"; themes=x; =theme; theme', 'theme=dark; lang="de"'],
  ['other=1', undefined],
  // Of the operators' page, on a port of the same host.
  ['console_ops=x; __Host-console_ops=x;console_ops ="x"; theme=dark', 'theme=dark'],
  ['theme; =x; ;', undefined],
  [' \ttheme =dark\t ', 'theme =dark'],
  ...['\u00a0theme=x', 'theme\u00a0=x', 'Theme=x', '__Host-theme=x'].map(
    name => [name, undefined] as const
  )
]
t.test('no cookie of the client crosses, but those that the route names', async t => {
  for (const [given, passed] of cookies) {
    const headers = await sent('/api/theme', [`${alice};${given}`])
    t.equal(headers['cookie'], passed, JSON.stringify(given))
  }
})

/** The client's own fields, and what the upstream gets of them and of the session. */
const own = ['Authorization: Bearer stale', 'Proxy-Authorization: Basic x', 'X-Token: client']
const credentials: Readonly<Record<string, object>> = {
  'plain': { 'x-token': 'client' },
  'bearer': { 'x-token': 'client', 'authorization': 'Bearer t1' },
  'cookies': { 'x-token': 'client', 'cookie': 'sid=1; csrf=2' },
  'token': { 'x-token': 't1' },
  'whole': { 'x-token': 'client', 'authorization': 't1' },
  'theme-cookies': { 'x-token': 'client', 'cookie': 'theme=dark; sid=1; csrf=2' },
  'own-token': { 'x-token': 'client', 'authorization': 'Bearer stale' }
}
const ofCredentials = words('x-token authorization cookie proxy-authorization')
const credentialsIn = (headers: typeof noHeaders) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => ofCredentials.includes(name)))

t.test('the session’s credential goes out in the style of the upstream, alone', async t => {
  for (const [name, expected] of Object.entries(credentials)) {
    const asked = [`${carol}; theme=dark; sid=client`, ...own]
    t.same(credentialsIn(await sent(`/api/${name}`, asked)), expected, name)
    if (!(name in upstreams)) continue
    const nothing = name === 'token' ? {} : { 'x-token': 'client' }
    for (const path of [`/api/${name}`, `/api/open/${name}`]) {
      const got = credentialsIn(await sent(path, [`${alice}; sid=forged; TOKEN__=stale`, ...own]))
      t.same(got, nothing, 'nothing of the client’s takes its place')
    }
  }
  const headers = await sent('/api/own-token', [carol])
  t.equal(headers['authorization'], 'Bearer t1', 'where a client may send its own and has none')
})

/** What an upstream is told of a user whom the back-end describes so. */
async function toldOf(described: string, path = '/api/plain', fields: readonly string[] = []) {
  user = `{"id":"7","username":"carol",${described.slice(1)}`
  return await sent(path, [`Cookie: ${await gateway.signIn('carol')}`, ...fields])
}

t.test('a name in any script is percent-encoded; plain ASCII stays as it is', async t => {
  const names: Readonly<Record<string, string>> = {
    'O\'Neil, "A" <x>; y=z': 'O\'Neil, "A" <x>; y=z',
    '张伟': '%E5%BC%A0%E4%BC%9F',
    'Ünï': '%C3%9Cn%C3%AF',
    '100%': '100%25',
    '%41': '%2541',
    'a\r\nx-user-roles: admin': 'a%0D%0Ax-user-roles%3A%20admin',
    'a\u0000b\u007f': 'a%00b%7F',
    // A header would lose the blank: it does not become another's name.
    'admin ': 'admin%20',
    ' 7': '%207'
  }
  for (const [username, expected] of Object.entries(names)) {
    const value = (await toldOf(JSON.stringify({ username })))['x-staff-login']
    t.same([value, decodeURIComponent(String(value))], [expected, username])
  }
})

t.test('a role with a comma is one role', async t => {
  for (const roles of [['a,b', 'c'], ['a%2Cb'], ['管理员,x', 'y'], [' x y', 'z ']]) {
    const written = String((await toldOf(JSON.stringify({ roles })))['x-staff-may'])
    t.same(written.split(',').map(decodeURIComponent), roles, written)
  }
})

t.test('values of the profile are headers, no client’s own of these names are', async t => {
  const fields = ['X-Tenant: 1', 'X-Dept: all', 'X-None: y', 'x-tenant: 2', 'X-Object: z']
  const spelt = [...fields, 'X_Tenant: 3', 'x-fixed: no']
  const profile = '{"profile":{"tenant":{"id":12345678901234567890},"dept":"财务 , x"}}'
  for (const path of ['/api/of-profile', '/api/parts']) {
    const headers = await toldOf(profile, path, spelt)
    const told = { 'x-tenant': '12345678901234567890', 'x-dept': '%E8%B4%A2%E5%8A%A1%20%2C%20x' }
    t.match(headers, { ...told, 'x-fixed': 'yes' })
    for (const name of ['x-none', 'x-object']) t.notOk(name in headers, name)
  }
  const nobodys = await sent('/api/open/of-profile', spelt)
  t.notMatch(namesOf(nobodys).join(), /x[-_](?:tenant|dept|none|object)/)
})

t.test('fields that belong to one connection end at the gateway', async t => {
  const fields = [
    'Content-Type: text/plain',
    'Content-Length: 0',
    'Connection: keep-alive, X-Hop',
    'X-Hop: one',
    'Keep-Alive: timeout=5',
    'Proxy-Connection: keep-alive',
    'Proxy-Authenticate: x',
    'TE: trailers',
    'Trailer: X-Late',
    'HTTP2-Settings: AAMAAABkAAQAAP__',
    'X-Kept: yes',
    ...['__proto__: polluted', '__proto__: twice', 'constructor: c']
  ]
  await sent('/api/plain', [alice, ...fields], 'POST /api/plain')
  const names = namesOf(lastSeen().headers).join('\n')
  t.notMatch(names, /^(?:x-hop|keep-alive|proxy-.*|te|trailer|http2-settings|upgrade|expect)$/m)
  t.match(lastSeen().headers, { 'x-kept': 'yes', 'content-type': 'text/plain' })
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
  const read = await sent('/api/plain', [alice, 'Content-Type: text/plain', 'Content-Length: 0'])
  t.notMatch(namesOf(read).join(), /content-/, 'length and type of a body go with a body only')
})

/** Of consoles and tenants, and what each browser sends. */
const harmless = {
  'accept': 'application/json',
  'accept-language': 'zh-CN',
  'accept-encoding': 'gzip',
  'user-agent': 'Mozilla/5.0',
  'referer': 'https://console.example.com/',
  'origin': 'https://console.example.com',
  'x-csrf-token': 't',
  'x-tenant-id': '12',
  'x-amzn-trace-id': 'Root=1',
  'x-locale': 'de',
  'if-none-match': '"1"',
  'cache-control': 'no-cache',
  'traceparent': '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  'range': 'bytes=0-1'
}
const all = [
  ...Object.entries(harmless).map(([name, value]) => `${name}: ${value}`),
  ...ofProxies.map(name => `${name}: mallory`),
  ...words('x_request_id accept_language _ x-user_id content_length x.y').map(
    name => `${name}: mallory`
  )
]
const always = ['traceparent', 'x-forwarded-for', 'x-forwarded-proto', 'x-request-id']

t.test('a console’s own extra fields pass, and so does what every client sends', async t => {
  const headers = await sent('/api/open/plain', [...all, 'X-Request-Id: chosen'])
  t.match(headers, { ...harmless, 'x-request-id': /^[\da-f-]{36}$/ })
  t.same(namesOf(headers), [...new Set([...Object.keys(harmless), ...always])].toSorted())
})

t.test('with passHeaders only those fields pass, beside the gateway’s own', async t => {
  const fields = [...all, 'Cookie: a=b', 'Authorization: Basic x', 'Content-Length: 0']
  const more = [...fields, 'Content-Type: application/json']
  const headers = await sent('/api/open/listed', more, 'POST /api/open/listed')
  const listed = ['accept', 'content-length', 'content-type', 'x-tenant-id']
  t.same(namesOf(headers), [...listed, ...always].toSorted())
  t.match(headers, { 'x-tenant-id': '12', 'content-type': 'application/json' })
  t.same(namesOf(await sent('/api/open/closed', all)), always, 'an empty list passes nothing')
})

t.test('a route opens a refused field by its full name, for itself alone', async t => {
  for (const [path, others] of [
    ['/api/tenants', harmless],
    ['/api/tenants-locale', { 'x-locale': 'de' }]
  ] as const) {
    const headers = await sent(path, [alice, ...all])
    t.match(headers, {
      'x-scope-orgid': 'mallory',
      'x-consumer-username': 'mallory',
      ...others
    })
    t.equal(Object.values(headers).filter(value => value === 'mallory').length, 2)
    t.equal('x-tenant-id' in headers, path === '/api/tenants')
  }
})

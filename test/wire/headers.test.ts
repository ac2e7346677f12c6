/** Header fields: what the client says of itself is not believed, and what the inside says of itself is not told. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { inside, isEnvelope, loginPath, openWire, serves, wireRoutes } from './support.ts'

const wire = await openWire(
  t.after,
  {},
  {
    answer: (question, response, seen) => {
      if (!seen.url.startsWith('/public/banners')) {
        return json(200, { ok: 1 })(question, response, seen)
      }
      response
        .writeHead(
          200,
          [
            ['Content-Type', 'application/json'],
            ['Connection', 'X-Hop, keep-alive'],
            ['X-Hop', 'one'],
            ['Keep-Alive', 'timeout=99'],
            ['Server', 'Inner/1.2'],
            ['X-Powered-By', 'Inner'],
            ['Via', '1.1 inner.local'],
            ['X-AspNet-Version', '4'],
            ['X-Runtime', '0.1'],
            ['Proxy-Authenticate', 'Basic'],
            ['WWW-Authenticate', 'Basic realm="inner"'],
            ['X-Internal-Node', 'inner-7'],
            ['X-Envoy-Upstream-Service-Time', '3'],
            ['X-Amzn-Trace-Id', '1'],
            ['X-Debug-Token', '1'],
            ['New-Token', 'renewed'],
            ['X-Sendfile', '/etc'],
            ['Service-Worker-Allowed', '/'],
            ['Access-Control-Allow-Origin', '*'],
            ['Access-Control-Allow-Credentials', 'true'],
            ['Strict-Transport-Security', 'max-age=0'],
            ['X-Content-Type-Options', 'sniff'],
            ['Clear-Site-Data', '"*"'],
            ['Alt-Svc', 'h3=":1"'],
            ['Refresh', '0;url=http://evil.example'],
            ['Set-Cookie', 'inner=1'],
            ['Location', 'http://inner.local/'],
            ['X-Accel-Redirect', '/etc'],
            ['X-Request-Id', 'theirs'],
            ['X-Total-Count', '7'],
            ['Content-Language', 'zh-CN']
          ].flat()
        )
        .end('{}')
    }
  }
)
const { gateway, backend, signedIn, cookie } = wire

const identity = [
  'X-User-Id',
  'X-User-Name',
  'X-User-Roles',
  'X-User',
  'X-Users',
  'X-User-Email',
  'User',
  'Username',
  'Role',
  'Groups',
  'X-Group',
  'X-Auth',
  'X-Auth-Roles',
  'X-Authenticated',
  'Authenticated-User',
  'Identity',
  'Principal',
  'X-Token-Subject',
  'Client-Cert',
  'SSL-Client-Verify',
  'X-Username',
  'X-Userid',
  'X-Role',
  'X-Roles',
  'X-Groups',
  'X-Auth-User',
  'X-Auth-Request-User',
  'X-Authenticated-User',
  'X-WebAuth-User',
  'X-Remote-User',
  'Remote-User',
  'Remote-Groups',
  'X-Forwarded-User',
  'X-Forwarded-Email',
  'X-Forwarded-Groups',
  'X-Forwarded-Preferred-Username',
  'X-Forwarded-Access-Token',
  'X-Original-User',
  'X-Account-Id',
  'X-Principal',
  'X-Identity',
  'X-Admin',
  'X-SSL-Client-S-DN',
  'X-SSL-Client-Verify',
  'X-Client-Cert',
  'X-Client-Verify',
  'X-Internal-User',
  'X-Authorization',
  'X-Envoy-Internal'
]
const forged = 'root-of-all-evil'
const lastSeen = () =>
  backend.seen.at(-1) ?? {
    rawHeaders: [],
    headers: {} as Record<string, string | undefined>,
    url: '',
    method: ''
  }

t.test('identity fields without a session open nothing', async t => {
  const before = backend.begun()
  for (const name of identity) {
    const answer = await raw(gateway.url, request('GET /api/notices', [`${name}: 1`]))
    t.equal(answer.status, 401, name)
  }
  const all = await raw(
    gateway.url,
    request('GET /api/admin/x', [
      ...identity.map(name => `${name}: admin`),
      'Authorization: Basic YWRtaW46YWRtaW4='
    ])
  )
  t.equal(all.status, 401)
  t.equal(backend.begun(), before)
})

t.test(
  'identity fields of the client never reach the back-end, however they are spelt',
  async t => {
    const spellings = [
      (name: string) => name,
      (name: string) => name.toLowerCase(),
      (name: string) => name.toUpperCase(),
      (name: string) => name.replaceAll('-', '_'),
      (name: string) => name.replace('-', '_'),
      (name: string) => name.replaceAll('-', '_').toUpperCase(),
      // CGI-like servers (older Apache, PHP's own) make `_` of any of these.
      ...Array.from(".!#$%&*+^`|~'", mark => (name: string) => name.replaceAll('-', () => mark)),
      (name: string) => name.replace('-', '.')
    ]
    for (const spell of spellings) {
      for (const path of ['/api/notices', '/api/open/x']) {
        const fields = identity.map(name => `${spell(name)}: ${forged}`)
        const answer = await raw(gateway.url, request(`GET ${path}`, [signedIn, ...fields]))
        t.equal(answer.status, 200)
        t.same(
          lastSeen().rawHeaders.filter((_, index, all) =>
            all[index + 1 - (index % 2)]?.includes(forged)
          ),
          [],
          `${spell('X-User-Id')} to ${path}`
        )
      }
    }
  }
)

t.test('a field sent twice does not slip through beside ours', async t => {
  await raw(
    gateway.url,
    request('GET /api/notices', [
      'X-User-Id: 99',
      signedIn,
      'x-user-id: 98',
      'X-USER-ROLES: root',
      'X-User-Roles: root'
    ])
  )
  const { rawHeaders, headers } = lastSeen()
  t.equal(
    rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'x-user-id')
      .length,
    1
  )
  t.match(headers, { 'x-user-id': '1', 'x-user-name': 'alice', 'x-user-roles': 'admin,user' })
})

t.test('Connection cannot make the gateway drop what it adds', async t => {
  for (const listed of [
    'x-user-id, x-user-name, x-user-roles',
    'X-User-Roles',
    'close, x-forwarded-for, x-request-id, x-user-id',
    'host',
    'content-length, cookie'
  ]) {
    const answer = await raw(
      gateway.url,
      request('GET /api/notices', [signedIn, `Connection: ${listed}`])
    )
    t.equal(answer.status, 200, listed)
    const { headers } = lastSeen()
    t.match(
      headers,
      {
        'x-user-id': '1',
        'x-user-roles': 'admin,user',
        'x-forwarded-for': '127.0.0.1',
        'x-request-id': /\w/,
        'host': new URL(backend.url).host
      },
      listed
    )
  }
})

t.test('what the client says of its way here is not believed and not passed on', async t => {
  const fields = [
    'X-Forwarded-For: 6.6.6.6',
    'X-Forwarded-Host: evil.example',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Port: 666',
    'X-Forwarded-Prefix: /evil',
    'X-Forwarded-Server: evil.example',
    'X-Forwarded-By: evil.example',
    'X-Forwarded-Scheme: evil',
    'Forwarded: for=6.6.6.6;host=evil.example',
    'X-Real-IP: 6.6.6.6',
    'X-Client-IP: 6.6.6.6',
    'True-Client-IP: 6.6.6.6',
    'CF-Connecting-IP: 6.6.6.6',
    'X-Cluster-Client-IP: 6.6.6.6',
    'Client-IP: 6.6.6.6',
    'X-Remote-Addr: 6.6.6.6',
    'Remote-Addr: 6.6.6.6',
    'X-Original-Host: evil.example',
    'X-Envoy-Original-Path: /evil',
    'X-Forwarded-Client-Cert: evil',
    'Proxy: http://evil.example',
    'X_Forwarded_For: 6.6.6.6',
    'Via: 1.0 evil.example'
  ]
  const answer = await raw(gateway.url, request('GET /api/notices', [signedIn, ...fields]))
  t.equal(answer.status, 200)
  t.equal(lastSeen().headers['host'], new URL(backend.url).host)
  // The port in `Host` and the ids are random: they may hold 666 by chance.
  const random = ['host', 'via', 'x-request-id', 'traceparent']
  t.notMatch(
    JSON.stringify(Object.entries(lastSeen().headers).filter(([name]) => !random.includes(name))),
    /6\.6\.6\.6|evil|666/
  )
  t.equal(lastSeen().headers['x-forwarded-for'], '127.0.0.1')
  t.equal(lastSeen().headers['x-forwarded-proto'], 'http')
  t.notOk(
    lastSeen().headers['x-forwarded-host'],
    'a host that config does not list is not passed on'
  )
  t.match(
    gateway.log.findLast(({ msg }) => msg === 'request'),
    { address: '127.0.0.1' }
  )
})

t.test('no field makes a request another one', async t => {
  const before = backend.begun()
  const tricks = [
    'X-Original-URL: /api/open/x',
    'X-Rewrite-URL: /api/open/x',
    'X-Forwarded-Uri: /api/open/x',
    'X-Forwarded-Path: /healthz',
    'X-Forwarded-Method: GET',
    'X-HTTP-Method-Override: GET',
    'X-HTTP-Method: GET',
    'X-Method-Override: GET',
    'User-Agent: kube-probe/1.30',
    'User-Agent: GoogleHC/1.0',
    'Referer: http://gateway.test/',
    'X-Api-Version: 1',
    'X-Custom-IP-Authorization: 127.0.0.1',
    'X-Debug: 1'
  ]
  for (const trick of tricks) {
    t.equal((await raw(gateway.url, request('GET /api/notices', [trick]))).status, 401, trick)
  }
  t.equal(backend.begun(), before)
  await raw(
    gateway.url,
    request('GET /api/open/here', [
      'X-Original-URL: /admin',
      'X-Rewrite-URL: /admin',
      'X-HTTP-Method-Override: DELETE',
      'X-Method-Override: DELETE',
      'X-Forwarded-Uri: /admin',
      'X_Original_URL: /admin'
    ])
  )
  t.match(lastSeen(), { method: 'GET', url: '/public/here' })
  t.notMatch(lastSeen().rawHeaders.join('\n'), /\/admin|DELETE/)
})

t.test('the session’s cookie and the client’s Authorization stay at the gateway', async t => {
  for (const path of ['/api/notices', '/api/open/x']) {
    await raw(
      gateway.url,
      request(`GET ${path}`, [
        `Cookie: ${cookie}; theme=dark; TOKEN__=stale`,
        'Authorization: Bearer of-the-client',
        'Proxy-Authorization: Basic Zm9v',
        'Cookie2: $Version=1'
      ])
    )
    t.notMatch(
      lastSeen().rawHeaders.join('\n'),
      /console_sid|of-the-client|TOKEN__|theme|Zm9v/,
      path
    )
  }
})

t.test('a foreign Host is neither reflected nor told to the back-end', async t => {
  for (const path of ['/api/notices', '/api/open/x', '/api/nothing']) {
    const answer = await raw(
      gateway.url,
      `GET ${path} HTTP/1.1\r\nHost: evil.example\r\n${signedIn}\r\n\r\n`
    )
    t.notMatch(answer.whole, 'evil.example')
  }
  t.equal(lastSeen().headers['host'], new URL(backend.url).host)
  t.notMatch(lastSeen().rawHeaders.join('\n'), 'evil.example')
})

t.test('fields that belong to one connection end at the gateway', async t => {
  const answer = await raw(
    gateway.url,
    request(
      'POST /api/things/hop',
      [
        signedIn,
        'Content-Type: text/plain',
        'Content-Length: 2',
        'Connection: keep-alive, X-Hop',
        'X-Hop: one',
        'Keep-Alive: timeout=5',
        'Proxy-Connection: keep-alive',
        'Proxy-Authenticate: x',
        'TE: trailers',
        'Trailer: X-Late',
        'HTTP2-Settings: AAMAAABkAAQAAP__',
        'X-Kept: yes'
      ],
      'ok'
    )
  )
  t.equal(answer.status, 200)
  for (const name of [
    'x-hop',
    'keep-alive',
    'proxy-connection',
    'proxy-authenticate',
    'te',
    'trailer',
    'http2-settings',
    'upgrade',
    'expect'
  ]) {
    t.notOk(lastSeen().headers[name], name)
  }
  t.equal(lastSeen().headers['x-kept'], 'yes')
})

t.test('names of JavaScript’s own do no harm', async t => {
  for (const fields of [
    ['__proto__: polluted'],
    ['constructor: polluted'],
    ['prototype: polluted'],
    ['hasOwnProperty: polluted'],
    ['toString: polluted'],
    ['__proto__: a', '__proto__: b', 'constructor: c']
  ]) {
    t.equal(
      (await raw(gateway.url, request('GET /api/notices', [signedIn, ...fields]))).status,
      200,
      fields.join()
    )
    const answer = await raw(
      gateway.url,
      request('GET /api/notices', [...fields, 'Cookie: __proto__=1; constructor=2; toString=3'])
    )
    t.equal(answer.status, 401)
  }
  t.equal(({} as Record<string, unknown>)['polluted'], undefined)
  await serves(t, wire)
})

t.test(
  'an answer tells neither what runs behind it nor what belongs to the inner connection',
  async t => {
    const answer = await gateway.call('/api/open/banners')
    t.equal(answer.status, 200)
    for (const name of [
      'x-hop',
      'server',
      'x-powered-by',
      'via',
      'x-aspnet-version',
      'x-runtime',
      'proxy-authenticate',
      'www-authenticate',
      'x-internal-node',
      'x-envoy-upstream-service-time',
      'x-amzn-trace-id',
      'x-debug-token',
      'new-token',
      'x-sendfile',
      'service-worker-allowed',
      'access-control-allow-origin',
      'access-control-allow-credentials',
      'strict-transport-security',
      'clear-site-data',
      'alt-svc',
      'refresh',
      'set-cookie',
      'location',
      'x-accel-redirect'
    ]) {
      t.equal(answer.headers.get(name), null, name)
    }
    t.not(answer.headers.get('keep-alive'), 'timeout=99')
    t.match(Object.fromEntries(answer.headers), {
      'x-total-count': '7',
      'content-language': 'zh-CN',
      'x-content-type-options': 'nosniff',
      'x-request-id': /^[0-9a-f-]{36}$/
    })
  }
)

t.test('every answer is held from sniffing, framing and caches, and shows no version', async t => {
  const answers = await Promise.all([
    gateway.call('/api/notices', { cookie }),
    gateway.call('/api/notices'),
    gateway.call('/api/account/profile', { cookie }),
    gateway.call('/api/nothing'),
    gateway.call('/'),
    gateway.call('/api/open/x'),
    gateway.call(loginPath),
    gateway.call(loginPath, { json: { username: 'alice', password } }),
    gateway.call(loginPath, { json: { username: 'alice', password: 'no' } }),
    gateway.call('/api/account/logout'),
    gateway.call('/api//x'),
    gateway.call(loginPath, {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' }
    })
  ])
  for (const { headers, status, text } of answers) {
    t.match(
      Object.fromEntries(headers),
      {
        'x-content-type-options': 'nosniff',
        'referrer-policy': /^(?:no-referrer|same-origin)$/,
        'content-security-policy': /frame-ancestors 'none'/,
        'cache-control': 'no-store'
      },
      `${status} ${text.slice(0, 40)}`
    )
    t.equal(headers.get('server') ?? headers.get('x-powered-by'), null)
    t.notMatch(text, inside)
    if (status >= 400) isEnvelope(t, text)
  }
  const broken = await raw(gateway.url, 'broken\r\n\r\n')
  t.match(broken.head, /x-content-type-options: nosniff/)
  t.match(broken.head, /cache-control: no-store/)
})

t.test('only the load balancers of config are believed, and only in what they add', async t => {
  const back = await testUpstream(t.after)
  const routes = wireRoutes(back.url)
  const seenBy = async (trustedProxies: string[], fields: string[]) => {
    const behind = await testGateway(t.after, {
      gateway: { server: { trustedProxies, hosts: ['gateway.test'] } },
      routes
    })
    await raw(behind.url, request('GET /api/open/x', fields))
    return back.seen.at(-1)?.headers
  }
  t.match(
    await seenBy(
      ['127.0.0.1'],
      ['X-Forwarded-For: 6.6.6.6, 203.0.113.9', 'X-Forwarded-Proto: https']
    ),
    {
      'x-forwarded-for': '203.0.113.9',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'gateway.test'
    }
  )
  t.match(await seenBy(['10.0.0.0/8'], ['X-Forwarded-For: 6.6.6.6', 'X-Forwarded-Proto: https']), {
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http'
  })
  const garbage = await seenBy(
    ['127.0.0.1'],
    [
      'X-Forwarded-For: <script>, not an address, 203.0.113.9',
      'X-Forwarded-Proto: javascript',
      'X-Forwarded-Host: evil.example'
    ]
  )
  t.match(garbage, {
    'x-forwarded-for': '203.0.113.9',
    'x-forwarded-proto': 'http',
    'x-forwarded-host': 'gateway.test'
  })
  const listed = await testGateway(t.after, {
    gateway: { server: { hosts: ['gateway.test'] } },
    routes
  })
  const before = back.begun()
  const other = await raw(listed.url, 'GET /api/open/x HTTP/1.1\r\nHost: other.test\r\n\r\n')
  t.equal(other.status, 400, 'a host that is not listed is not served')
  t.equal(back.begun(), before)
})

t.end()

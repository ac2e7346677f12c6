/** Cross-site: no other page makes a browser act for its user, sign it in or sign it out. */
import t from 'tap'
import { cookieOf, password, testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'
import { isEnvelope, loginPath, openWire, serves, wireRoutes } from '../support/wire.ts'

const wire = await openWire(t.after)
const { gateway, backend, cookie, signedIn } = wire
const own = gateway.url
const logoutPath = '/api/account/logout'
const { port } = new URL(own)

type Fields = Record<string, string>
/**
 * What a browser sends for a page of another site, of another port of our host, and of no origin;
 * and what comes close.
 */
const foreign: Array<[string, Fields]> = [
  [
    'another site',
    { 'origin': 'https://evil.example', 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }
  ],
  ['another site, older browser', { origin: 'https://evil.example' }],
  [
    'another port of our host',
    { 'origin': `http://127.0.0.1:${Number(port) + 1}`, 'sec-fetch-site': 'same-site' }
  ],
  ['another port of our host, older browser', { origin: `http://127.0.0.1:${Number(port) + 1}` }],
  ['our host without its port', { origin: 'http://127.0.0.1' }],
  [
    'another host that is also this machine',
    { 'origin': `http://localhost:${port}`, 'sec-fetch-site': 'cross-site' }
  ],
  ['a sandboxed frame', { 'origin': 'null', 'sec-fetch-site': 'cross-site' }],
  ['a sandboxed frame, older browser', { origin: 'null' }],
  ['no Origin, but cross-site', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
  ['no Origin, but same-site', { 'sec-fetch-site': 'same-site' }],
  ['an unknown word', { 'sec-fetch-site': 'whatever' }],
  ['an empty word', { 'sec-fetch-site': '' }],
  [
    'several words',
    { 'sec-fetch-site': 'cross-site, same-origin', 'origin': 'https://evil.example' }
  ],
  [
    'no Origin, but same-site: our Referer is less',
    { 'sec-fetch-site': 'same-site', 'referer': own }
  ],
  ['a foreign Origin with our Referer', { origin: 'https://evil.example', referer: own }],
  ['no origin with our Referer', { origin: 'null', referer: own }],
  ['a Referer of no page', { referer: 'about:blank' }],
  ['an empty Referer', { referer: '' }],
  ['a foreign page by its Referer only', { referer: 'https://evil.example/attack.html' }],
  ['a Referer that begins like ours', { referer: `${own}.evil.example/` }],
  ['a Referer with us as its user', { referer: `http://127.0.0.1:${port}@evil.example/` }],
  ['a Referer that is no address', { referer: 'nonsense' }],
  ['an Origin that begins like ours', { origin: `${own}.evil.example` }],
  ['an Origin that ends like ours', { origin: `http://evil-127.0.0.1:${port}` }],
  ['an Origin with us as its user', { origin: `http://127.0.0.1:${port}@evil.example` }],
  ['two Origins', { origin: `${own} https://evil.example` }],
  ['two Origins with a comma', { origin: `${own}, https://evil.example` }],
  ['an Origin of another scheme', { origin: `ftp://127.0.0.1:${port}` }],
  ['an extension', { origin: 'chrome-extension://abcdefghijklmnop' }],
  ['a file', { origin: 'file://' }],
  ['an empty Origin', { origin: '' }]
]

t.test('no foreign page changes anything with the user’s session', async t => {
  const before = backend.begun()
  for (const [title, headers] of foreign) {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
      const answer = await gateway.call('/api/things/1', {
        method,
        cookie,
        headers: { ...headers, 'content-type': 'application/json' },
        body: '{}'
      })
      t.match(answer, { status: 403, json: { errorCode: 'origin.refused' } }, `${method}: ${title}`)
      isEnvelope(t, answer.text)
    }
    const open = await gateway.call('/api/open/x', {
      method: 'POST',
      cookie,
      headers: { ...headers, 'content-type': 'application/json' },
      body: '{}'
    })
    t.equal(open.status, 403, `a public route: ${title}`)
  }
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test('no foreign form carries JSON to the back-end', async t => {
  const before = backend.begun()
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'text/plain;application/json',
    'application/json',
    ''
  ]) {
    for (const [, headers] of foreign.slice(0, 10)) {
      const answer = await gateway.call('/api/things/1', {
        method: 'POST',
        cookie,
        headers: { ...headers, 'content-type': type },
        body: '{"a":"="}'
      })
      t.equal(answer.status, 403, `${type} ${JSON.stringify(headers)}`)
    }
  }
  t.equal(backend.begun(), before)
})

t.test('no foreign page signs a browser in', async t => {
  for (const [title, headers] of foreign) {
    const answer = await gateway.call(loginPath, { json: { username: 'bob', password }, headers })
    t.equal(answer.status, 403, title)
    t.same(answer.headers.getSetCookie(), [], title)
  }
})

t.test('no foreign page signs a browser out, by POST or GET', async t => {
  const inNavigation: Array<[string, Fields]> = [
    [
      'an image',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' }
    ],
    [
      'a frame',
      { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' }
    ],
    [
      'a link',
      {
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'navigate',
        'sec-fetch-dest': 'document',
        'sec-fetch-user': '?1'
      }
    ],
    [
      'a link of another port of our host',
      { 'sec-fetch-site': 'same-site', 'sec-fetch-mode': 'navigate' }
    ],
    ['a prefetch of our own page', { 'sec-fetch-site': 'same-origin', 'sec-purpose': 'prefetch' }],
    ['a prerendered page', { 'sec-fetch-site': 'none', 'sec-purpose': 'prefetch;prerender' }],
    ['a prefetch in older words', { 'sec-fetch-site': 'same-origin', 'purpose': 'prefetch' }],
    ['a prefetch in Mozilla’s words', { 'x-moz': 'prefetch' }],
    ['a preview', { 'sec-fetch-site': 'none', 'x-purpose': 'preview' }]
  ]
  for (const [title, headers] of [...foreign, ...inNavigation]) {
    for (const method of ['GET', 'POST']) {
      const answer = await gateway.call(logoutPath, { method, cookie, headers })
      t.equal(answer.status, 403, `${method}: ${title}`)
      t.same(answer.headers.getSetCookie(), [])
    }
  }
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200, 'still signed in')
})

t.test('HEAD, OPTIONS and other methods sign nobody out', async t => {
  for (const method of ['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH']) {
    const answer = await raw(own, request(`${method} ${logoutPath}`, [signedIn]), {
      enough: received => received.includes('\r\n\r\n')
    })
    t.equal(answer.status, 405, method)
    t.notMatch(answer.head, /set-cookie/i)
  }
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
})

t.test('our own page, a typed address and a client that is no browser may', async t => {
  const may: Array<[string, Fields]> = [
    ['our own page', { 'origin': own, 'sec-fetch-site': 'same-origin' }],
    ['our own page, older browser', { origin: own }],
    ['our own page by its Referer', { referer: `${own}/users?page=2` }],
    [
      'our own page behind a proxy that speaks https for us',
      { origin: own.replace('http:', 'https:') }
    ],
    ['our own Origin before any Referer', { origin: own, referer: 'https://evil.example' }],
    [
      'our own page, whatever the others say',
      { 'sec-fetch-site': 'same-origin', 'origin': 'https://evil.example', 'referer': 'x' }
    ],
    ['a typed address', { 'sec-fetch-site': 'none', 'origin': 'https://evil.example' }],
    ['another purpose than a prefetch', { purpose: 'navigate' }],
    ['a client that is no browser', {}]
  ]
  for (const [title, headers] of may) {
    t.equal((await gateway.call('/api/things/1', { json: {}, cookie, headers })).status, 200, title)
    const answer = await gateway.call(loginPath, { json: { username: 'alice', password }, headers })
    t.equal(answer.status, 200, `${title}: sign-in`)
    t.equal(
      (await gateway.call(logoutPath, { cookie: cookieOf(answer), headers })).status,
      200,
      `${title}: sign-out by GET`
    )
  }
})

t.test('our own host is compared as browsers write it, and a prefetch may post', async t => {
  const post = async (...fields: string[]) => {
    const more = ['Host: Gateway.Example.COM:8443', signedIn, 'Content-Length: 0']
    const bytes = ['POST /api/things/1 HTTP/1.1', ...more, ...fields, '', ''].join('\r\n')
    return (await raw(own, bytes)).status
  }
  t.equal(await post('Origin: https://gateway.example.com:8443'), 200)
  t.equal(await post('Origin: https://gateway.example.com'), 403)
  t.equal(await post('Origin: ftp://gateway.example.com:8443'), 403)
  t.equal(await post('Sec-Fetch-Site: same-origin', 'Sec-Purpose: prefetch'), 200)
})

t.test('a link from elsewhere may read, but no foreign script sees the answer', async t => {
  for (const [title, headers] of foreign) {
    const answer = await gateway.call('/api/notices', { cookie, headers })
    t.equal(answer.status, 200, title)
    for (const name of ['access-control-allow-origin', 'access-control-allow-credentials']) {
      t.equal(answer.headers.get(name), null, title)
    }
    const preflight = await gateway.call('/api/things/1', {
      method: 'OPTIONS',
      headers: {
        ...headers,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type'
      }
    })
    t.equal(preflight.status, 405, `preflight: ${title}`)
    t.equal(preflight.headers.get('access-control-allow-origin'), null)
  }
})

t.test('nothing makes sign-in or sign-out redirect', async t => {
  const targets = [
    'https://evil.example',
    '//evil.example',
    '/\\evil.example',
    '/\t/evil.example',
    'javascript:alert(1)',
    'https:evil.example',
    '/%2f/evil.example',
    'http://127.0.0.1@evil.example',
    '/',
    '/api/notices'
  ]
  for (const target of targets) {
    for (const name of [
      'redirect',
      'redirect_uri',
      'next',
      'return',
      'returnTo',
      'url',
      'rd',
      'continue',
      'service'
    ]) {
      const query = `?${name}=${encodeURIComponent(target)}`
      for (const answer of [
        await gateway.call(logoutPath + query),
        await gateway.call(loginPath + query, {
          json: { username: 'alice', password: 'no', [name]: target }
        })
      ]) {
        t.ok([200, 401].includes(answer.status))
        t.equal(answer.headers.get('location'), null)
        t.notMatch(answer.text, 'evil.example')
      }
    }
  }
})

t.test('an allowed origin may call, read and sign in; all others still may not', async t => {
  const back = await testUpstream(t.after)
  const allowed = 'https://console.example.com'
  const shared = await testGateway(t.after, {
    gateway: { server: { origins: [allowed] } },
    routes: wireRoutes(back.url)
  })
  const mine = await shared.signIn()
  const browser = { 'origin': allowed, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }
  const preflight = await shared.call('/api/things/1', {
    method: 'OPTIONS',
    headers: {
      ...browser,
      'access-control-request-method': 'PUT',
      'access-control-request-headers': 'content-type,x-requested-with'
    }
  })
  t.equal(preflight.status, 204)
  t.match(Object.fromEntries(preflight.headers), {
    'access-control-allow-origin': allowed,
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': /PUT/,
    'vary': /origin/i
  })
  t.notMatch([...preflight.headers].join('\n'), /\*/)
  const answer = await shared.call('/api/things/1', { json: {}, cookie: mine, headers: browser })
  t.match(
    { status: answer.status, ...Object.fromEntries(answer.headers) },
    { 'status': 200, 'access-control-allow-origin': allowed, 'vary': /origin/i }
  )
  t.equal(
    (await shared.call(loginPath, { json: { username: 'alice', password }, headers: browser }))
      .status,
    200
  )
  const refused = await shared.call('/api/notices', { headers: browser })
  t.match(
    { status: refused.status, ...Object.fromEntries(refused.headers) },
    { 'status': 401, 'access-control-allow-origin': allowed },
    'its script can read why'
  )
  for (const [referer, status] of [
    [allowed, 200],
    [`${allowed}/orders?page=2`, 200],
    [`${allowed}.evil.example/`, 403],
    [`${allowed}@evil.example/`, 403],
    [`${allowed}:8443/`, 403]
  ] as const) {
    const call = await shared.call('/api/things/1', {
      json: {},
      cookie: mine,
      headers: { referer }
    })
    t.equal(call.status, status, referer)
  }
  const before = back.begun()
  for (const origin of [
    'https://evil.example',
    'http://console.example.com',
    'https://console.example.com.evil.example',
    'https://console.example.com:444',
    'https://CONSOLE.example.com.',
    'https://x.console.example.com',
    'null',
    'https://console.example.com/',
    'https://console.example.com, https://evil.example'
  ]) {
    const call = await shared.call('/api/things/1', {
      json: {},
      cookie: mine,
      headers: { ...browser, origin }
    })
    t.equal(call.status, 403, origin)
    t.not(call.headers.get('access-control-allow-origin'), origin)
    t.not(call.headers.get('access-control-allow-origin'), '*')
    const asked = await shared.call('/api/things/1', {
      method: 'OPTIONS',
      headers: { ...browser, origin, 'access-control-request-method': 'PUT' }
    })
    t.not(asked.headers.get('access-control-allow-origin'), origin)
    t.equal(
      (
        await shared.call(loginPath, {
          json: { username: 'alice', password },
          headers: { ...browser, origin }
        })
      ).status,
      403,
      `sign-in: ${origin}`
    )
  }
  t.equal(back.begun(), before)
})

t.test('OPTIONS that is no preflight is answered as any method that is not there', async t => {
  const back = await testUpstream(t.after)
  const allowed = 'https://console.example.com'
  const shared = await testGateway(t.after, {
    gateway: { server: { origins: [allowed] } },
    limits: { limits: { strangers: { by: 'address', max: 5, window: '1h' } } },
    routes: wireRoutes(back.url)
  })
  const ask = (path: string, headers: Fields = {}) =>
    shared.call(path, { method: 'OPTIONS', headers })
  const wanted = { 'access-control-request-method': 'PUT' }
  const known = await ask('/api/notices')
  t.match(known, { status: 405, json: { errorCode: 'route.method' } })
  t.equal(known.headers.get('allow'), 'GET, HEAD')
  isEnvelope(t, known.text)
  t.equal((await ask('/api/things/1', wanted)).status, 405, 'without Origin')
  t.equal((await ask('/api/nothing')).status, 404)
  t.equal((await ask('/api/nothing', { origin: '', ...wanted })).status, 404)
  const readable = await ask('/api/notices', { origin: allowed })
  t.equal(readable.status, 405)
  t.equal(readable.headers.get('access-control-allow-origin'), allowed, 'its script can read why')
  t.equal((await ask('/api/nothing')).status, 429, 'limits count them')
  t.equal((await ask('/api/notices', { origin: allowed, ...wanted })).status, 204, 'a preflight')
  t.equal(back.begun(), 0)
})

t.end()

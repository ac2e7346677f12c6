/** Cross-site: no other page makes a browser act for its user, sign it in or sign it out. */
import t from 'tap'
import { cookieOf, password } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { isEnvelope, loginPath, openWire, serves } from '../support/wire.ts'

const wire = await openWire(t.teardown)
const { gateway, backend, cookie, signedIn } = wire
const own = gateway.url
const logoutPath = '/api/account/logout'
const { port } = new URL(own)
const evil = 'https://evil.example'

type Fields = Record<string, string>
type Page = readonly [title: string, fields: Fields]
const by = (name: string, pages: Fields): Page[] =>
  Object.entries(pages).map(([title, value]) => [`${name}: ${title}`, { [name]: value }])

/** What a browser sends for a page of another site, of another port of our host, and of no origin; and what comes close. */
const foreign: readonly Page[] = [
  ...by('origin', {
    'another site': evil,
    'another port of our host': `http://127.0.0.1:${Number(port) + 1}`,
    'our host without its port': 'http://127.0.0.1',
    'another name of this machine': `http://localhost:${port}`,
    'a sandboxed frame': 'null',
    'one that begins like ours': `${own}.evil.example`,
    'one that ends like ours': `http://evil-127.0.0.1:${port}`,
    'with us as its user': `http://127.0.0.1:${port}@evil.example`,
    'two': `${own}, ${evil}`,
    'another scheme': `ftp://127.0.0.1:${port}`,
    'an extension': 'chrome-extension://abcdefghijklmnop',
    'an empty one': ''
  }),
  ...by('sec-fetch-site', {
    'cross-site': 'cross-site',
    'same-site': 'same-site',
    'an empty word': ''
  }),
  ...by('referer', {
    'no page': 'about:blank',
    'an empty one': '',
    'a foreign page': `${evil}/attack.html`,
    'one that begins like ours': `${own}.evil.example/`
  }),
  ['several words', { 'sec-fetch-site': 'cross-site, same-origin', 'origin': evil }],
  ['our Referer is less than same-site', { 'sec-fetch-site': 'same-site', 'referer': own }],
  ['our Referer is less than an Origin', { origin: evil, referer: own }],
  ['our Referer is less than no origin', { origin: 'null', referer: own }]
]
const isSignedIn = async () => (await gateway.status('/api/account/profile', { cookie })) === 200

t.test('no foreign page changes anything with the user’s session, by script or form', async t => {
  const before = backend.begun()
  const changes = ['POST', 'PUT', 'PATCH', 'DELETE'].map(method => [method, 'application/json'])
  const types = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x'
  ]
  const forms = types.map(type => ['POST', type])
  for (const [title, fields] of foreign) {
    for (const [method = '', type = ''] of [...changes, ...forms]) {
      const headers = { ...fields, 'content-type': type }
      const refused = { status: 403, json: { errorCode: 'origin.refused' } }
      const asked = { method, cookie, headers, body: '{"a":"="}' }
      const answer = await gateway.call('/api/things/1', asked)
      t.match(answer, refused, `${method} ${type}: ${title}`)
      isEnvelope(t, answer.text)
      if (method !== 'POST') continue
      t.match(await gateway.call('/api/open/x', asked), refused, `a public route: ${title}`)
    }
  }
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test('no foreign page signs a browser in, or out, by POST or GET', async t => {
  const navigates = { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
  const inNavigation: readonly Page[] = [
    ['an image', { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }],
    ['a frame', { 'sec-fetch-site': 'cross-site', ...navigates, 'sec-fetch-dest': 'iframe' }],
    ['a link', { 'sec-fetch-site': 'cross-site', ...navigates, 'sec-fetch-user': '?1' }],
    ['a link of another port', { 'sec-fetch-site': 'same-site', ...navigates }],
    ['a prefetch of our own page', { 'sec-fetch-site': 'same-origin', 'sec-purpose': 'prefetch' }],
    ['a prerendered page', { 'sec-fetch-site': 'none', 'sec-purpose': 'prefetch;prerender' }],
    ['a prefetch in older words', { 'sec-fetch-site': 'same-origin', 'purpose': 'prefetch' }],
    ['a prefetch in Mozilla’s words', { 'x-moz': 'prefetch' }],
    ['a preview', { 'sec-fetch-site': 'none', 'x-purpose': 'preview' }]
  ]
  const bob = { json: { username: 'bob', password } }
  const rows = [
    ...foreign.map(page => [page, loginPath, bob] as const),
    ...[...foreign, ...inNavigation].flatMap(page =>
      ['GET', 'POST'].map(method => [page, logoutPath, { method, cookie }] as const)
    )
  ]
  for (const [[title, headers], path, options] of rows) {
    const answer = await gateway.call(path, { ...options, headers })
    t.equal(answer.status, 403, `${path}: ${title}`)
    t.same(answer.headers.getSetCookie(), [], title)
  }
  t.ok(await isSignedIn())
})

t.test('HEAD, OPTIONS and other methods sign nobody out', async t => {
  for (const method of ['HEAD', 'OPTIONS', 'PUT', 'DELETE', 'PATCH']) {
    const { status, headers } = await gateway.call(logoutPath, { method, cookie })
    t.same([status, headers.getSetCookie()], [405, []], method)
  }
  t.ok(await isSignedIn())
})

t.test('our own page, a typed address and a client that is no browser may', async t => {
  const same = { 'sec-fetch-site': 'same-origin' }
  const may: readonly Page[] = [
    ['our own page', { origin: own, ...same }],
    ['our own page, older browser', { origin: own }],
    ['our own page by its Referer', { referer: `${own}/users?page=2` }],
    ['our own page by a proxy that speaks https', { origin: own.replace('http:', 'https:') }],
    ['our own Origin before any Referer', { origin: own, referer: evil }],
    ['our own page, whatever the others say', { ...same, origin: evil, referer: 'x' }],
    ['a typed address', { 'sec-fetch-site': 'none', 'origin': evil }],
    ['another purpose than a prefetch', { purpose: 'navigate' }],
    ['a client that is no browser', {}]
  ]
  for (const [title, headers] of may) {
    t.equal(await gateway.status('/api/things/1', { json: {}, cookie, headers }), 200, title)
    const answer = await gateway.call(loginPath, { json: { username: 'alice', password }, headers })
    t.equal(answer.status, 200, `${title}: sign-in`)
    const out = await gateway.call(logoutPath, { cookie: cookieOf(answer), headers })
    t.equal(out.status, 200, `${title}: sign-out by GET`)
  }
})

t.test('our own host is compared as browsers write it, and a prefetch may post', async t => {
  const host = 'Host: Gateway.Example.COM'
  const postTo = async (port: number, ...fields: string[]) => {
    const more = [`${host}:${port}`, signedIn, 'Content-Length: 0']
    const bytes = ['POST /api/things/1 HTTP/1.1', ...more, ...fields, '', ''].join('\r\n')
    return (await raw(own, bytes)).status
  }
  const post = async (...fields: string[]) => await postTo(8443, ...fields)
  // nginx with `proxy_set_header Host $host:$server_port`.
  t.equal(await postTo(443, 'Origin: https://gateway.example.com'), 200)
  t.equal(await postTo(80, 'Origin: http://gateway.example.com'), 200)
  t.equal(await postTo(443, 'Origin: http://gateway.example.com'), 403)
  t.equal(await post('Origin: https://gateway.example.com:8443'), 200)
  t.equal(await post('Origin: https://gateway.example.com'), 403)
  t.equal(await post('Origin: ftp://gateway.example.com:8443'), 403)
  t.equal(await post('Sec-Fetch-Site: same-origin', 'Sec-Purpose: prefetch'), 200)
})

t.test('a link from elsewhere may read, but no foreign script sees the answer', async t => {
  const asked = { 'access-control-request-method': 'POST' }
  for (const [title, headers] of foreign) {
    const answer = await gateway.call('/api/notices', { cookie, headers })
    t.equal(answer.status, 200, title)
    const preflight = { method: 'OPTIONS', headers: { ...headers, ...asked } }
    const refused = await gateway.call('/api/things/1', preflight)
    t.equal(refused.status, 405, `preflight: ${title}`)
    const fields = [...answer.headers.keys(), ...refused.headers.keys()]
    t.notMatch(fields.join(), 'access-control-allow', title)
  }
})

t.test('nothing makes sign-in or sign-out redirect', async t => {
  for (const target of [evil, '//evil.example', '/\\evil.example', 'javascript:alert(1)', '/']) {
    for (const name of ['redirect', 'redirect_uri', 'next', 'returnTo', 'url', 'service']) {
      const query = `?${name}=${encodeURIComponent(target)}`
      const json = { username: 'alice', password: 'no', [name]: target }
      const signOut = await gateway.call(logoutPath + query)
      for (const answer of [signOut, await gateway.call(loginPath + query, { json })]) {
        t.ok([200, 401].includes(answer.status), name)
        t.equal(answer.headers.get('location'), null)
        t.notMatch(answer.text, 'evil.example')
      }
    }
  }
})

/** Response headers that hold a place: those at the back-end become public ones, no other is told. */
import t from 'tap'
import { callOnce } from '../support/call.ts'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'
import { isEnvelope } from '../support/wire.ts'

let status = 201
let headers: Record<string, string | string[]> = {}
const backend = await testUpstream(t.teardown, (_request, response) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end('{"data":1}')
})
const route = (path: string, rewrite: string, more: object = {}) => ({
  path,
  rewrite,
  access: 'public',
  methods: ['GET', 'POST'],
  ...more
})
const cookies = ['sid', 'cart', '__Host-x', 'other']
const at = `${backend.url}/app`
const passes = { redirects: 'pass' }
const gateway = await testGateway(t.teardown, {
  gateway: {
    server: { hosts: ['console.example.com:8443', '127.0.0.1'], trustedProxies: ['127.0.0.1'] }
  },
  backend: at,
  routes: {
    upstreams: { wide: { url: at }, inner: { url: backend.url } },
    shapes: { unwrapped: [{ unwrap: 'data' }] },
    routes: {
      orders: route('/api/orders', '/orders', { setCookies: cookies }),
      order: route('/api/orders/:id', '/orders/:id'),
      shaped: route('/shaped/*', '/shop/*', {
        ...passes,
        shape: 'unwrapped',
        setCookies: ['cart']
      }),
      raw: route('/raw/*', '/*', { ...passes, upstream: 'wide' }),
      public: route('/public/*', '/public/*', { upstream: 'inner' })
    }
  }
})
const bytes = (text: string) => Buffer.from(text).toString('latin1')
const post = async (path: string, host = 'console.example.com') =>
  await callOnce(gateway.url + path, {
    headers: { host, 'x-forwarded-proto': 'https' },
    json: {}
  })
const locationOf = async (path: string, host?: string) =>
  (await post(path, host)).headers['location']

const places: ReadonlyArray<readonly [name: string, written: string, sent?: string]> = [
  ['of another route', '/app/orders/7', '/api/orders/7'],
  ['absolute', `${backend.url}/app/orders/7?a=1#b`, '/api/orders/7?a=1#b'],
  ['relative', 'orders/7', '/api/orders/7'],
  ['that no public path reaches, without a host', '/app/jobs/7', '/app/jobs/7'],
  ['that no public path reaches, with one', `${backend.url}/app/jobs/7`],
  ['on another internal host', 'http://10.0.0.7/orders/7'],
  ['on another internal host, without a scheme', '//db.internal/orders/7'],
  ['behind a backslash', '\\\\db.internal/orders/7'],
  ['that is no place', 'http://['],
  ['in UTF-8', '/app/orders/登录', '/api/orders/%E7%99%BB%E5%BD%95'],
  ['at the console’s own name', 'https://console.example.com/app/orders/7', '/api/orders/7'],
  ['of the console itself', 'https://console.example.com/#/orders/7', '/#/orders/7']
]
t.test('case 4: a place is mapped on a 201, a 202 and a 200', async t => {
  for (const [name, written, sent] of places) {
    for (status of [200, 201, 202]) {
      const place = bytes(written)
      const link = `<${place}>; rel="next", </app/orders>; rel=up`
      headers = { 'location': place, 'content-location': place, link }
      const answer = await post('/api/orders')
      const told = sent === undefined ? undefined : `<${sent}>; rel="next", </api/orders>; rel=up`
      const { location, 'content-location': content, 'link': linked } = answer.headers
      t.same([answer.status, location, content, linked], [status, sent, sent, told], name)
    }
  }
  headers = { location: '/app/shop/9' }
  t.equal(await locationOf('/shaped/x'), '/shaped/9', 'on a shaped route too')
  headers = { location: 'https://cdn.example/9' }
  t.equal(await locationOf('/shaped/x'), 'https://cdn.example/9', 'where the route says so')
})

const redirects: ReadonlyArray<readonly [written: string, sent?: string, host?: string]> = [
  ['https://console.example.com/app/orders/7', '/api/orders/7'],
  ['HTTPS://CONSOLE.example.com/app/orders?a=1', '/api/orders?a=1'],
  ['https://console.example.com:8443/app/orders/7', '/api/orders/7', 'console.example.com:8443'],
  ['https://console.example.com/api/orders/7', '/api/orders/7'],
  ['https://console.example.com/login', '/login'],
  // Django and Rails add the scheme that they were told to their own host, Spring without a port.
  [at.replace('http:', 'https:') + '/orders/7', '/api/orders/7'],
  ['https://127.0.0.1/app/orders/7', '/api/orders/7'],
  ['https://127.0.0.1:9999/app/orders/7'],
  ['https://evil.example/app/orders/7'],
  ['https://console.example.com:9999/app/orders/7'],
  ['https://console.example.com@evil.example/app/orders/7'],
  ['https://console.example.com//evil.example/x']
]
t.test('case 5: the name that the back-end was told is its own, no other is', async t => {
  for (const [location, sent, host = 'console.example.com'] of redirects) {
    for (status of [302, 303, 307]) {
      headers = { location }
      const answer = await post('/api/orders', host)
      const expected = [sent === undefined ? 502 : status, sent]
      t.same([answer.status, answer.headers.location], expected, location)
      t.equal(backend.seen.at(-1)?.headers['x-forwarded-host'], host)
    }
  }
})

const spelt: ReadonlyArray<readonly [name: string, location: string, path: string]> = [
  ['a path in UTF-8', bytes('/app/登录'), '/%E7%99%BB%E5%BD%95'],
  ['with the own address', bytes(`${backend.url}/app/登录`), '/%E7%99%BB%E5%BD%95'],
  ['relative', bytes('登录'), '/%E7%99%BB%E5%BD%95'],
  ['query and fragment', bytes('/app/a?名=值#片'), '/a?%E5%90%8D=%E5%80%BC#%E7%89%87'],
  ['escaped before', '/app/%E7%99%BB%20a', '/%E7%99%BB%20a'],
  ['bytes that are no UTF-8', '/app/café?ü#ß', '/caf%E9?%FC#%DF']
]
t.test('case 6: a redirect keeps its bytes', async t => {
  status = 302
  for (const [name, location, path] of spelt) {
    headers = { location }
    t.equal(await locationOf('/raw/x'), `/raw${path}`, name)
  }
  headers = { location: bytes('/app/shop/登录') }
  const { status: still, text, headers: sent } = await post('/shaped/x')
  t.same([still, text], [302, ''])
  t.equal(sent.location, '/shaped/%E7%99%BB%E5%BD%95', 'where it is shaped')
  headers = { location: bytes('https://login.example/登录?a=é') }
  t.equal(await locationOf('/raw/x'), 'https://login.example/%E7%99%BB%E5%BD%95?a=%C3%A9')
})

const scripts = ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd']
const inside = [
  ...['http://internal/secret', `${backend.url}/internal`, '//internal/x', '\\\\internal\\x'],
  ...['https://evil.example/', 'http://169.254.169.254/latest', 'http://[', ''],
  ...['/internal/secret', '/publicity', '/public/../internal', ...scripts],
  `${backend.url}@evil.example/public/x`
]
t.test('a redirect to the inside or elsewhere is neither followed nor shown', async t => {
  for (const location of inside) {
    headers = { location }
    for (status of [301, 302, 303, 307, 308]) {
      const before = backend.begun()
      const refused = await post('/public/x')
      const told = [refused.status, refused.headers.location, backend.begun()]
      t.same(told, [502, undefined, before + 1], `${status} ${location}`)
      isEnvelope(t, refused.text)
    }
  }
  headers = { location: 'http://anna:secret@internal/x?token=1' }
  await post('/public/x')
  await gateway.logged(({ reason }) => reason === 'no route leads to "http://internal/x"')
  status = 302
  for (const location of scripts) {
    headers = { location }
    t.equal(await locationOf('/raw/x'), undefined, `where the route lets others pass: ${location}`)
  }
  headers = { location: '/public/a%0d%0aX-Injected: 1' }
  t.equal((await post('/public/x')).headers['x-injected'], undefined)
})

t.test('case 13: a cookie loses the back-end’s domain, and its path is the public one', async t => {
  status = 200
  const expires = 'Wed, 21 Oct 2037 07:28:00 GMT'
  const cookies: ReadonlyArray<readonly [written: string, sent: string]> = [
    ['sid=1; Domain=shop.internal; Path=/app/orders', 'sid=1; Path=/api/orders'],
    ['sid=1; path=/app/orders/7; secure; HttpOnly', 'sid=1; Path=/api/orders/7; secure; HttpOnly'],
    ['cart=1; Path=/app/shop; SameSite=Lax', 'cart=1; Path=/shaped; SameSite=Lax'],
    ['cart=1; Path=/app/shop/; Max-Age=3', 'cart=1; Path=/shaped/; Max-Age=3'],
    ['other=1; DOMAIN = .shop.internal;Path=/app', 'other=1; Path=/'],
    ['other=1;Path=/', 'other=1; Path=/'],
    ['__Host-x=1; Secure; Path=/', '__Host-x=1; Secure; Path=/'],
    ...[`sid=a=b; Expires=${expires}`, 'sid=domain=x'].map(same => [same, same] as const)
  ]
  headers = { 'set-cookie': cookies.map(([written]) => written) }
  const expected = cookies.map(([, sent]) => sent)
  t.same((await post('/api/orders')).headers['set-cookie'], expected)
  headers = { 'set-cookie': ['cart=1; Domain=shop.internal; Path=/app/shop/a'] }
  t.same((await post('/shaped/x')).headers['set-cookie'], ['cart=1; Path=/shaped/a'])
})

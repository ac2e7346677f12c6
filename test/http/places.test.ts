/** Response headers that hold a place: those at the back-end become public ones. */
import { once } from 'node:events'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

let status = 201
let headers: Record<string, string | string[]> = {}
const backend = await testUpstream(t.after, (_request, response) => {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end('{"data":1}')
})
const gateway = await testGateway(t.after, {
  gateway: { server: { hosts: ['console.example.com:8443', '127.0.0.1'] } },
  routes: {
    upstreams: { b: { url: `${backend.url}/app` } },
    shapes: { unwrapped: [{ unwrap: 'data' }] },
    routes: {
      orders: {
        path: '/api/orders',
        access: 'public',
        upstream: 'b',
        rewrite: '/orders',
        methods: ['GET', 'POST'],
        setCookies: ['sid', 'cart', '__Host-x', 'other']
      },
      order: { path: '/api/orders/:id', access: 'public', upstream: 'b', rewrite: '/orders/:id' },
      shaped: {
        path: '/shaped/*',
        access: 'public',
        upstream: 'b',
        rewrite: '/shop/*',
        methods: ['GET', 'POST'],
        shape: 'unwrapped',
        redirects: 'pass',
        setCookies: ['cart']
      }
    }
  }
})
/** fetch would set `Host` itself. */
const post = async (path: string, host = 'console.example.com') => {
  const headersSent = { host, 'content-type': 'application/json', 'content-length': '2' }
  const asked = httpRequest(gateway.url + path, { method: 'POST', headers: headersSent })
  const answered = once(asked.end('{}'), 'response') as Promise<[IncomingMessage]>
  const [response] = await answered
  response.resume()
  const all = new Headers()
  for (const [name, value] of Object.entries(response.headersDistinct)) {
    for (const each of value ?? []) all.append(name, each)
  }
  return { status: response.statusCode, headers: all }
}

const places: ReadonlyArray<readonly [name: string, written: string, sent: string | null]> = [
  ['of another route', '/app/orders/7', '/api/orders/7'],
  ['absolute', `${backend.url}/app/orders/7?a=1#b`, '/api/orders/7?a=1#b'],
  ['relative', 'orders/7', '/api/orders/7'],
  ['of the same route', `${backend.url}/app/orders`, '/api/orders'],
  ['that no public path reaches, without a host', '/app/jobs/7', '/app/jobs/7'],
  ['that no public path reaches, with one', `${backend.url}/app/jobs/7`, null],
  ['on another internal host', 'http://10.0.0.7/orders/7', null],
  ['on another internal host, without a scheme', '//db.internal/orders/7', null],
  ['behind a backslash', '\\\\db.internal/orders/7', null],
  ['that is no place', 'http://[', null],
  ['in UTF-8', '/app/orders/登录', '/api/orders/%E7%99%BB%E5%BD%95'],
  ['at the console’s own name', 'https://console.example.com/app/orders/7', '/api/orders/7'],
  ['of the console itself', 'https://console.example.com/#/orders/7', '/#/orders/7']
]
for (const [name, written, sent] of places) {
  t.test(`case 4: a place is mapped on a 201, a 202 and a 200: ${name}`, async t => {
    for (status of [200, 201, 202]) {
      headers = {
        'location': Buffer.from(written).toString('latin1'),
        'content-location': Buffer.from(written).toString('latin1'),
        'link': `<${Buffer.from(written).toString('latin1')}>; rel="next", </app/orders>; rel=up`
      }
      const answer = await post('/api/orders')
      t.equal(answer.status, status)
      t.equal(answer.headers.get('location'), sent)
      t.equal(answer.headers.get('content-location'), sent)
      const link = sent === null ? null : `<${sent}>; rel="next", </api/orders>; rel=up`
      t.equal(answer.headers.get('link'), link)
    }
  })
}

t.test('case 4: on a shaped route too; another host passes where the route says so', async t => {
  status = 201
  headers = { location: '/app/shop/9' }
  t.equal((await post('/shaped/x')).headers.get('location'), '/shaped/9')
  headers = { location: 'https://cdn.example/9' }
  t.equal((await post('/shaped/x')).headers.get('location'), 'https://cdn.example/9')
})

const redirects: ReadonlyArray<readonly [written: string, host: string, sent: string]> = [
  ['https://console.example.com/app/orders/7', 'console.example.com', '/api/orders/7'],
  ['http://console.example.com/app/orders/7', 'console.example.com', '/api/orders/7'],
  ['https://CONSOLE.example.com/app/orders?a=1', 'console.example.com', '/api/orders?a=1'],
  ['https://console.example.com:8443/app/orders/7', 'console.example.com:8443', '/api/orders/7'],
  ['https://console.example.com/api/orders/7', 'console.example.com', '/api/orders/7'],
  ['https://console.example.com/login', 'console.example.com', '/login']
]
for (const [written, host, sent] of redirects) {
  t.test(`case 5: the name that the back-end was told is its own: ${written}`, async t => {
    for (status of [302, 303, 307]) {
      headers = { location: written }
      const answer = await post('/api/orders', host)
      t.same([answer.status, answer.headers.get('location')], [status, sent])
      t.equal(backend.seen.at(-1)?.headers['x-forwarded-host'], host)
    }
  })
}

t.test('case 5: a name that it was not told is another host', async t => {
  status = 302
  for (const location of [
    'https://evil.example/app/orders/7',
    'https://console.example.com:9999/app/orders/7',
    'https://console.example.com@evil.example/app/orders/7',
    'https://console.example.com//evil.example/x'
  ]) {
    headers = { location }
    t.match(await post('/api/orders'), { status: 502 }, location)
  }
})

t.test('case 13: a cookie loses the back-end’s domain, and its path is the public one', async t => {
  status = 200
  const cookies: ReadonlyArray<readonly [written: string, sent: string]> = [
    ['sid=1; Domain=shop.internal; Path=/app/orders', 'sid=1; Path=/api/orders'],
    ['sid=1; path=/app/orders/7; secure; HttpOnly', 'sid=1; Path=/api/orders/7; secure; HttpOnly'],
    ['cart=1; Path=/app/shop; SameSite=Lax', 'cart=1; Path=/shaped; SameSite=Lax'],
    ['cart=1; Path=/app/shop/; Max-Age=3', 'cart=1; Path=/shaped/; Max-Age=3'],
    ['other=1; DOMAIN = .shop.internal;Path=/app', 'other=1; Path=/'],
    ['other=1;Path=/', 'other=1; Path=/'],
    ['__Host-x=1; Secure; Path=/', '__Host-x=1; Secure; Path=/'],
    [
      'sid=a=b; Expires=Wed, 21 Oct 2037 07:28:00 GMT',
      'sid=a=b; Expires=Wed, 21 Oct 2037 07:28:00 GMT'
    ],
    ['sid=domain=x', 'sid=domain=x']
  ]
  headers = { 'set-cookie': cookies.map(([written]) => written) }
  const sent = (await post('/api/orders')).headers.getSetCookie()
  t.same(
    sent,
    cookies.map(([, each]) => each)
  )
  headers = { 'set-cookie': ['cart=1; Domain=shop.internal; Path=/app/shop/a'] }
  t.same((await post('/shaped/x')).headers.getSetCookie(), ['cart=1; Path=/shaped/a'])
})

t.end()

/** Places in response headers that the gateway rewrites. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { rawUpstream } from '../support/upstream.ts'
import { isEnvelope } from '../support/wire.ts'

let status = 302
let location = Buffer.alloc(0)
const backend = await rawUpstream(t.after, socket => {
  const head = `HTTP/1.1 ${status} Found\r\nContent-Length: 0\r\nLocation: `
  socket.write(Buffer.concat([Buffer.from(head), location, Buffer.from('\r\n\r\n')]))
})
const gateway = await testGateway(t.after, {
  routes: {
    upstreams: { b: { url: backend.url }, inner: { url: backend.url } },
    shapes: { unwrapped: [{ unwrap: 'data' }] },
    routes: {
      raw: { path: '/raw/*', access: 'public', upstream: 'b', rewrite: '/*' },
      shaped: {
        path: '/shaped/*',
        access: 'public',
        upstream: 'b',
        rewrite: '/*',
        shape: 'unwrapped'
      },
      public: { path: '/public/*', access: 'public', upstream: 'inner', rewrite: '/public/*' },
      out: { path: '/out/*', access: 'public', upstream: 'b', rewrite: '/*', redirects: 'pass' }
    }
  }
})

const cases: ReadonlyArray<readonly [string, string | Buffer, string]> = [
  ['a path in UTF-8', '/登录', '/%E7%99%BB%E5%BD%95'],
  ['with the own address', `${backend.url}/登录`, '/%E7%99%BB%E5%BD%95'],
  ['relative', '登录', '/%E7%99%BB%E5%BD%95'],
  ['query and fragment', '/a?名=值#片', '/a?%E5%90%8D=%E5%80%BC#%E7%89%87'],
  ['beyond the first plane', '/😀', '/%F0%9F%98%80'],
  ['escaped before', '/%E7%99%BB%20a', '/%E7%99%BB%20a'],
  ['half escaped', '/%E7%99%BB录', '/%E7%99%BB%E5%BD%95'],
  ['bytes that are no UTF-8', Buffer.from('/café?ü#ß', 'latin1'), '/caf%E9?%FC#%DF']
]

for (const [name, sent, path] of cases) {
  t.test(`case 6: a redirect keeps its bytes: ${name}`, async t => {
    location = Buffer.from(sent)
    for (const prefix of ['/raw', '/shaped', '/out']) {
      const { status, headers } = await gateway.call(`${prefix}/x`)
      t.same([status, headers.get('location')], [302, prefix + path])
    }
  })
}

t.test('case 6: also of a redirect to elsewhere, which passes', async t => {
  location = Buffer.from('https://login.example/登录?a=é')
  const { headers } = await gateway.call('/out/x')
  t.equal(headers.get('location'), 'https://login.example/%E7%99%BB%E5%BD%95?a=%C3%A9')
})

t.test('a redirect to the inside or elsewhere is neither followed nor shown', async t => {
  const { port } = new URL(backend.url)
  for (const place of [
    'http://internal/secret',
    `http://127.0.0.1:${port}/internal`,
    '//internal/x',
    'https://evil.example/',
    'http://169.254.169.254/latest',
    'javascript:alert(1)',
    'file:///etc/passwd',
    '/internal/secret',
    '/publicity',
    '/public/../internal',
    '\\\\internal\\x',
    'http://[',
    '',
    'data:text/html,x',
    `http://127.0.0.1:${port}@evil.example/public/x`
  ]) {
    location = Buffer.from(place)
    for (status of [301, 302, 303, 307, 308]) {
      const before = backend.requests()
      const refused = await gateway.call('/public/x')
      t.equal(refused.status, 502, `${status} ${place}`)
      isEnvelope(t, refused.text)
      t.equal(refused.headers.get('location'), null, place)
      t.equal(backend.requests(), before + 1, 'not followed')
    }
  }
  status = 302
  for (const place of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd']) {
    location = Buffer.from(place)
    const { headers } = await gateway.call('/out/x')
    t.equal(headers.get('location'), null, `where the route lets others pass: ${place}`)
  }
  location = Buffer.from('/public/a%0d%0aX-Injected: 1')
  t.equal((await gateway.call('/public/x')).headers.get('x-injected'), null)
})

t.end()

/** Requests as a back-end with other habits wants them: its parameters, its bodies, its headers. */
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { signInAt } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'

const backend = await testUpstream(t.after, json(200, { id: 1, token: 'secret-token' }))
const { url } = backend
const route = (path: string, more: object = {}) => ({
  path,
  upstream: 'b',
  access: 'public',
  methods: ['GET', 'POST'],
  ...more
})
const config = {
  gateway: signInAt(url, { upstream: 'api', format: 'form', token: 'token' }).gateway,
  routes: {
    paging: { page: 'current', size: 'pageSize', defaultSize: 20 },
    upstreams: {
      b: {
        url,
        paging: { offset: 'skip', size: 'limit' },
        headers: { 'accept': 'application/vnd.orders+json', 'x-api-key': '${API_KEY}' }
      },
      same: { url, paging: { page: 'current', size: 'pageSize' } },
      none: { url },
      api: { url, credential: 'bearer', headers: { 'content-type': 'application/vnd.api+json' } }
    },
    routes: {
      list: route('/api/list', { rewrite: '/orders' }),
      renamed: route('/api/renamed', { query: { rename: { keyword: 'q' } } }),
      form: route('/api/form', { body: { shape: 'order', as: 'form' } }),
      off: route('/api/off', { query: { paging: false } }),
      same: route('/api/same', { upstream: 'same' }),
      none: route('/api/none', { upstream: 'none' }),
      save: route('/api/save', { upstream: 'api' })
    },
    shapes: { order: [{ rename: { orderId: 'order_id' } }, { drop: ['draft'] }] }
  },
  limits: { sizes: { shape: '1KiB' } }
}
const gateway = await testGateway(t.after, config, { API_KEY: 'key of the back-end' })
t.beforeEach(() => {
  backend.seen.length = 0
})

t.test('queries are renamed, and reads get the paging that both sides agree on', async t => {
  for (const [method, path, expected] of [
    ['GET', '/api/list?a=%20b&current=3&pageSize=5', '/orders?a=%20b&skip=10&limit=5'],
    ['HEAD', '/api/list?current=2', '/orders?skip=20&limit=20'],
    ['POST', '/api/list?current=2&&x', '/orders?current=2&&x'],
    ['GET', '/api/renamed?keyword=a%20b&current=1', '/api/renamed?q=a%20b&skip=0&limit=20'],
    ['POST', '/api/renamed?keyword=k&current=1', '/api/renamed?q=k&current=1'],
    ['POST', '/api/renamed?keyword=2&x=|1', '/api/renamed?q=2&x=|1'],
    ['GET', '/api/off?current=2', '/api/off?current=2'],
    ['GET', '/api/same?current=x&&', '/api/same?current=x&&'],
    ['GET', '/api/none?current=2', '/api/none?current=2']
  ] as const) {
    t.equal((await gateway.call(path, { method })).status, 200, path)
    t.equal(backend.seen.at(-1)?.url, expected, `${method} ${path}`)
  }
  backend.seen.length = 0
  const refused = await gateway.call('/api/list?current=x')
  t.match(refused, { status: 400, json: { errorCode: 'request.malformed' } })
  t.same(backend.seen, [])
})

t.test('a body is shaped, whether it has a length or comes in chunks', async t => {
  const body = { orderId: 7, draft: true, note: 'ä&' }
  t.equal((await gateway.call('/api/form', { json: body })).status, 200)
  const client = request(`${gateway.url}/api/form`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'origin': gateway.url }
  })
  client.write('{"orderId":')
  client.end('8}')
  const [response] = await once(client, 'response')
  response.resume()
  t.equal(response.statusCode, 200)
  t.same(
    backend.seen.map(seen => String(seen.body)),
    ['note=%C3%A4%26&order_id=7', 'order_id=8']
  )
  for (const { headers } of backend.seen) {
    t.equal(headers['content-type'], 'application/x-www-form-urlencoded')
    t.equal(headers['transfer-encoding'], undefined)
  }
})

t.test('a body that cannot be mapped never reaches the back-end', async t => {
  for (const [status, body, type] of [
    [415, 'x', 'text/plain'],
    [400, '{', 'application/json'],
    [413, `"${'x'.repeat(2000)}"`, 'application/json']
  ] as const) {
    const headers = { 'content-type': type }
    t.equal((await gateway.call('/api/form', { method: 'POST', body, headers })).status, status)
  }
  t.same(backend.seen, [])
  t.equal((await gateway.call('/api/form', { method: 'POST' })).status, 200, 'without a body')
})

t.test('the fixed headers of an upstream replace the client’s', async t => {
  const headers = { 'accept': 'text/html', 'x-api-key': 'of the client' }
  await gateway.call('/api/list', { headers })
  await gateway.call('/api/list', { json: {}, headers })
  t.equal(backend.seen.length, 2)
  for (const { headers: sent } of backend.seen) {
    t.match(sent, { 'accept': 'application/vnd.orders+json', 'x-api-key': 'key of the back-end' })
  }
})

t.test('a fixed content type is for the bodies of clients, not for the sign-in', async t => {
  await gateway.signIn()
  await gateway.call('/api/save', { json: {} })
  t.same(
    backend.seen.map(seen => [seen.url, seen.headers['content-type']]),
    [
      ['/login', 'application/x-www-form-urlencoded'],
      ['/api/save', 'application/vnd.api+json']
    ]
  )
})

t.end()

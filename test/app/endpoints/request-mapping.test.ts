/** Requests as a back-end with other habits wants them: its parameters, its bodies, its headers. */
import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'

async function mappedGateway(cleanUp: (undo: () => unknown) => void) {
  const backend = await testUpstream(cleanUp)
  const route = (path: string, more: object) => ({
    path,
    upstream: 'b',
    access: 'public',
    methods: ['GET', 'POST'],
    ...more
  })
  const config = {
    routes: {
      paging: { page: 'current', size: 'pageSize', defaultSize: 20 },
      upstreams: {
        b: {
          url: backend.url,
          paging: { offset: 'skip', size: 'limit' },
          headers: { 'accept': 'application/vnd.orders+json', 'x-api-key': '${API_KEY}' }
        }
      },
      routes: {
        list: route('/api/list', {
          rewrite: '/orders',
          query: { rename: { keyword: 'q' } }
        }),
        form: route('/api/form', { body: { shape: 'order', as: 'form' } }),
        plain: route('/api/plain', {})
      },
      shapes: { order: [{ rename: { orderId: 'order_id' } }, { drop: ['draft'] }] }
    },
    limits: { sizes: { shape: '1KiB' } }
  }
  const gateway = await testGateway(cleanUp, config, { API_KEY: 'key of the back-end' })
  return { backend, gateway }
}

t.test('the query is mapped for every method', async t => {
  const { backend, gateway } = await mappedGateway(t.after)
  await gateway.call('/api/list?current=3&pageSize=10&keyword=a%20b')
  await gateway.call('/api/list?keyword=2&x=|1', { method: 'POST', json: {} })
  t.equal(backend.seen[0]?.url, '/orders?q=a%20b&skip=20&limit=10')
  t.equal(backend.seen[1]?.url, '/orders?q=2&x=|1')
  const { status, json } = await gateway.call('/api/list?current=x')
  t.same([status, json['errorCode']], [400, 'request.malformed'])
  t.equal(backend.seen.length, 2)
})

t.test('a body is shaped, whether it has a length or comes in chunks', async t => {
  const { backend, gateway } = await mappedGateway(t.after)
  const body = { orderId: 7, draft: true, note: 'ä&' }
  t.equal((await gateway.call('/api/form', { method: 'POST', json: body })).status, 200)
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
  const { backend, gateway } = await mappedGateway(t.after)
  const post = (body: string, type: string) =>
    gateway.call('/api/form', { method: 'POST', body, headers: { 'content-type': type } })
  t.equal((await post('x', 'text/plain')).status, 415)
  t.equal((await post('{', 'application/json')).status, 400)
  t.equal((await post(`"${'x'.repeat(2000)}"`, 'application/json')).status, 413)
  t.equal((await gateway.call('/api/form', { method: 'POST' })).status, 200)
  t.equal(backend.seen.length, 1)
})

t.test('the fixed headers of an upstream replace the client’s', async t => {
  const { backend, gateway } = await mappedGateway(t.after)
  const headers = { 'accept': 'text/html', 'x-api-key': 'of the client' }
  await gateway.call('/api/plain', { headers })
  await gateway.call('/api/plain', { method: 'POST', json: {}, headers })
  for (const { headers: sent } of backend.seen) {
    t.equal(sent.accept, 'application/vnd.orders+json')
    t.equal(sent['x-api-key'], 'key of the back-end')
  }
  t.equal(backend.seen.length, 2)
})

t.test('a fixed content type is for the bodies of clients, not for the sign-in', async t => {
  const backend = await testUpstream(t.after, json(200, { id: 1, token: 'secret-token' }))
  const gateway = await testGateway(t.after, {
    gateway: {
      login: {
        sources: {
          b: {
            kind: 'upstream-login',
            upstream: 'b',
            path: '/token',
            format: 'form',
            user: { id: 'id' },
            token: 'token'
          }
        }
      }
    },
    routes: {
      upstreams: {
        b: {
          url: backend.url,
          credential: 'bearer',
          headers: { 'content-type': 'application/vnd.api+json' }
        }
      },
      routes: { save: { path: '/api/save', methods: ['POST'], upstream: 'b', access: 'public' } }
    }
  })
  await gateway.call('/api/auth/admin/login', {
    method: 'POST',
    json: { username: 'alice', password: 'right' }
  })
  await gateway.call('/api/save', { method: 'POST', json: {} })
  t.same(
    backend.seen.map(({ url, headers }) => [url, headers['content-type']]),
    [
      ['/token', 'application/x-www-form-urlencoded'],
      ['/api/save', 'application/vnd.api+json']
    ]
  )
})

t.test('reads get the paging on which console and upstream agree', async t => {
  const backend = await testUpstream(t.after)
  const route = (path: string, more: object = {}) => ({
    path,
    upstream: 'b',
    access: 'public',
    methods: ['GET', 'POST'],
    ...more
  })
  const gateway = await testGateway(t.after, {
    routes: {
      paging: { page: 'current', size: 'pageSize', defaultSize: 20 },
      upstreams: {
        b: { url: backend.url, paging: { offset: 'skip', size: 'limit' } },
        same: { url: backend.url, paging: { page: 'current', size: 'pageSize' } },
        none: { url: backend.url }
      },
      routes: {
        list: route('/api/list'),
        renamed: route('/api/renamed', { query: { rename: { keyword: 'q' } } }),
        off: route('/api/off', { query: { paging: false } }),
        same: route('/api/same', { upstream: 'same' }),
        none: route('/api/none', { upstream: 'none' })
      }
    }
  })
  const reached = async (path: string, method = 'GET') => {
    t.equal((await gateway.call(path, { method })).status, 200, path)
    return backend.seen.at(-1)?.url
  }
  t.equal(
    await reached('/api/list?a=%20b&current=3&pageSize=5'),
    '/api/list?a=%20b&skip=10&limit=5'
  )
  t.equal(await reached('/api/list?current=2', 'HEAD'), '/api/list?skip=20&limit=20')
  t.equal(await reached('/api/list?current=2&&x', 'POST'), '/api/list?current=2&&x')
  t.equal(await reached('/api/renamed?keyword=k&current=1'), '/api/renamed?q=k&skip=0&limit=20')
  t.equal(await reached('/api/renamed?keyword=k&current=1', 'POST'), '/api/renamed?q=k&current=1')
  t.equal(await reached('/api/off?current=2'), '/api/off?current=2')
  t.equal(await reached('/api/same?current=x&&'), '/api/same?current=x&&')
  t.equal(await reached('/api/none?current=2'), '/api/none?current=2')
  t.equal((await gateway.call('/api/list?current=x')).status, 400)
})

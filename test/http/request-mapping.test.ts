/** Requests as a back-end with other habits wants them: its parameters, its bodies, its headers. */
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'

const form = 'application/x-www-form-urlencoded'
const page = { rows: [{ id: 1 }], total: 25 }
const backend = await testUpstream(t.teardown, json(200, { id: 1, token: 'secret-token', ...page }))
const { url } = backend
const open = { access: 'public', methods: ['GET', 'POST', 'PATCH'] }
const atB = { ...open, upstream: 'listing' }
/** Takes bodies of GET, and has no pipeline in mind. */
const sockets = new Set<Socket>()
const ignoring = await rawUpstream(t.teardown, socket => {
  sockets.add(socket)
  socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
})
const broken = await rawUpstream(t.teardown, socket => socket.destroy())
const passing = { access: 'public', passGetBody: true }
const gateway = await testGateway(t.teardown, {
  backend: url,
  source: { upstream: 'api', format: 'form', token: 'token' },
  limits: { sizes: { shape: '10KiB' } },
  routes: {
    paging: { page: 'current', size: 'pageSize', defaultSize: 20 },
    upstreams: {
      listing: { url, paging: { offset: 'skip', size: 'limit' } },
      same: { url, paging: { page: 'current', size: 'pageSize' } },
      paged: { url, paging: { page: 'page', size: 'limit', firstPage: 0 } },
      api: { url, credential: 'bearer', headers: { 'content-type': 'application/vnd.api+json' } },
      ignoring: { url: ignoring.url },
      broken: { url: broken.url }
    },
    routes: {
      list: { ...atB, rewrite: '/orders' },
      renamed: { ...atB, query: { rename: { keyword: 'q' } } },
      off: { ...atB, query: { paging: false } },
      same: { ...open, upstream: 'same' },
      none: open,
      pages: { ...open, upstream: 'paged', shape: 'page' },
      bare: { ...open, upstream: 'paged', shape: 'bare' },
      save: { ...open, upstream: 'api' },
      mapped: { ...open, body: { shape: 'order' } },
      form: { ...open, body: { as: 'form' } },
      both: { ...open, body: { shape: 'order', as: 'form' } },
      json: { ...open, body: { as: 'json' } },
      passes: { ...passing, maxBody: '1KiB' },
      ignoring: { ...passing, upstream: 'ignoring' },
      broken: { ...passing, upstream: 'broken' }
    },
    shapes: {
      order: [{ rename: { orderId: 'order_id' } }, { drop: ['draft'] }],
      page: [
        { pick: ['rows', 'total'] },
        { rename: { rows: 'records' } },
        { echo: { page: 'current', size: 'size' } },
        { wrap: 'envelope' }
      ],
      bare: [{ unwrap: 'rows' }, { echo: { page: 'current', size: 'size' } }]
    }
  }
})
const bodiesSeen = () => backend.seen.map(({ body }) => String(body))
t.beforeEach(() => {
  backend.seen.length = 0
})

t.test('queries are renamed, and reads get the paging that both sides agree on', async t => {
  for (const [method, path, expected] of [
    ['GET', '/api/list?a=%20b&current=3&pageSize=5', '/orders?a=%20b&skip=10&limit=5'],
    ['HEAD', '/api/list?current=2', '/orders?skip=20&limit=20'],
    ['POST', '/api/list?current=2&&x', '/orders?current=2&&x'],
    ['GET', '/api/renamed?keyword=a%20b&current=1', '/api/renamed?q=a%20b&skip=0&limit=20'],
    ['POST', '/api/renamed?keyword=2&x=|1', '/api/renamed?q=2&x=|1'],
    ['GET', '/api/off?current=2', '/api/off?current=2'],
    ['GET', '/api/same?current=x&&', '/api/same?current=x&&'],
    ['GET', '/api/none?current=2', '/api/none?current=2']
  ] as const) {
    t.equal((await gateway.call(path, { method })).status, 200, path)
    t.equal(backend.seen.pop()?.url, expected, `${method} ${path}`)
  }
  const refused = await gateway.call('/api/list?current=x')
  t.match(refused, { status: 400, json: { errorCode: 'request.malformed' } })
  t.same(backend.seen, [])
})

const ofJson = 'application/json'
const patch = 'application/merge-patch+json'
const chinese = '{"orderId":"中"}'
const gbk = Buffer.concat([
  Buffer.from('{"orderId":"'),
  Buffer.from([0xd6, 0xd0]),
  Buffer.from('"}')
])
/** A path, a body with its type, and what the back-end gets. */
type Body = readonly [path: string, type: string, body: string | Buffer, sent: string, as?: string]
const bodies: readonly Body[] = [
  ['mapped', ofJson, chinese, '{"order_id":"中"}'],
  ['mapped', `${ofJson}; charset=utf-8`, chinese, '{"order_id":"中"}'],
  ['mapped', `${patch};charset=UTF-8`, chinese, '{"order_id":"中"}', patch],
  ['mapped', `${patch}; charset=utf-8; ext="a;b"`, '{}', '{}', `${patch}; ext="a;b"`],
  ['mapped', 'Application/Problem+JSON', '{}', '{}', 'application/problem+json'],
  ['mapped', `${ofJson}; charset=GBK`, gbk, '{"order_id":"中"}'],
  ['mapped', form, 'orderId=%E4%B8%AD+%EF%BF%BD', 'order_id=%E4%B8%AD+%EF%BF%BD', form],
  ['mapped', ofJson, '{"orderId":12345678901234567890}', '{"order_id":12345678901234567890}'],
  ['form', ofJson, '{"id":12345678901234567890}', 'id=12345678901234567890', form],
  ['form', ofJson, '{"a":"b c&","n":1,"no":null,"l":[1,"x"]}', 'a=b+c%26&n=1&l=1&l=x', form],
  ['both', ofJson, '{"orderId":7,"draft":true,"note":"ä&"}', 'note=%C3%A4%26&order_id=7', form],
  ['json', form, 'a=b+c%26&x=1&x=2&__proto__=y', '{"a":"b c&","x":["1","2"],"__proto__":"y"}']
]
const send = async (path: string, type: string, body: string | Uint8Array, more: object = {}) => {
  const headers = { 'content-type': type, ...more }
  return await gateway.call(`/api/${path}`, { method: 'PATCH', headers, body })
}

t.test('case 15: a body is written as the back-end reads it, and keeps its type', async t => {
  for (const [path, type, body, sent, as = ofJson] of bodies) {
    t.equal((await send(path, type, body)).status, 200, `${path} ${type}`)
    const { headers, body: came } = backend.seen.pop() ?? {}
    const { 'content-type': written, 'content-length': length } = headers ?? {}
    t.same([String(came), written, length], [sent, as, String(Buffer.byteLength(sent))])
  }
})

t.test('a body that is packed or comes in chunks is mapped as others, up to the bound', async t => {
  const packed = { 'content-encoding': 'gzip' }
  t.equal((await send('mapped', ofJson, gzipSync('{"orderId":1}'), packed)).status, 200)
  t.notOk(backend.seen[0]?.headers['content-encoding'])
  const chunks = '5\r\n{"ord\r\n8\r\nerId":1}\r\n0\r\n\r\n'
  const fields = ['Transfer-Encoding: chunked', `Content-Type: ${ofJson}`]
  t.equal((await raw(gateway.url, request('POST /api/mapped', fields, chunks))).status, 200)
  t.notOk(backend.seen[1]?.headers['transfer-encoding'])
  t.same(bodiesSeen(), ['{"order_id":1}', '{"order_id":1}'])
  const large = gzipSync(`"${'x'.repeat(100_000)}"`)
  t.equal((await send('mapped', ofJson, large, packed)).status, 413)
  t.equal((await gateway.call('/api/mapped', { method: 'POST' })).status, 200, 'without a body')
})

t.test('case 15: what cannot be read, or written as the back-end reads it, is refused', async t => {
  const unread = ['{"a":', Buffer.from([0x7b, 0x22, 0xd6, 0x22, 0x7d])]
  const noForm = ['[1]', '"a"', '1', '{"a":{"b":1}}', '{"a":[[1]]}']
  for (const [path, type, texts, status, errorCode] of [
    ['mapped', form, ['a=%D6%D0', Buffer.from('a=\xd6\xd0', 'latin1')], 400, 'request.malformed'],
    ['mapped', `${form}; charset=GBK`, ['a=%D6%D0'], 400, 'request.malformed'],
    ['form', ofJson, [...unread, ...noForm], 400, 'request.malformed'],
    ['form', 'text/plain', ['x'], 415, 'request.type'],
    ['form', 'multipart/form-data; boundary=x', ['x'], 415, 'request.type'],
    ['form', '', ['x'], 415, 'request.type']
  ] as const) {
    for (const text of texts) {
      const refused = await send(path, type, text)
      t.match(refused, { status, json: { errorCode } }, `${type} ${String(text)}`)
    }
  }
  t.same(backend.seen, [], 'the back-end was not asked')
})

t.test('a fixed content type is for the bodies of clients, not for the sign-in', async t => {
  await gateway.signIn()
  await gateway.call('/api/save', { json: {} })
  t.match(backend.seen, [
    { url: '/login', headers: { 'content-type': form } },
    { url: '/api/save', headers: { 'content-type': 'application/vnd.api+json' } }
  ])
})

const getWithBody = async (path: string, text: string) => {
  const fields = [`Content-Type: ${ofJson}`, `Content-Length: ${text.length}`]
  return (await raw(gateway.url, request(`GET /api/${path}`, fields, text))).status
}

t.test('case 16: the body of a GET is dropped, which the log says once', async t => {
  for (let count = 0; count < 3; count++) t.equal(await getWithBody('none', '{"a":1}'), 200)
  for (const { body, headers } of backend.seen) {
    t.same([body.length, headers['content-type']], [0, undefined])
  }
  const lines = gateway.log.filter(({ event }) => event === 'request.body-dropped')
  t.match(lines, [{ route: 'none', method: 'GET' }])
  t.equal(lines.length, 1)
})

t.test('case 16: a route may let it pass whole, up to its bound', async t => {
  t.equal(await getWithBody('passes', '{"a":1}'), 200)
  const chunked = ['Transfer-Encoding: chunked']
  const bytes = request('GET /api/passes', chunked, '3\r\nabc\r\n0\r\n\r\n')
  t.equal((await raw(gateway.url, bytes)).status, 200)
  t.equal(await getWithBody('passes', 'x'.repeat(2000)), 413)
  t.equal((await gateway.call('/api/passes')).status, 200, 'without one too')
  t.match(backend.seen[0], { method: 'GET', headers: { 'content-type': ofJson } })
  t.same(bodiesSeen(), ['{"a":1}', 'abc', ''])
})

t.test('case 16: nothing of a body becomes a request, and none is sent twice', async t => {
  for (let count = 0; count < 5; count++) {
    t.equal(await getWithBody('ignoring', 'GET /stolen HTTP/1.1\r\nHost: x\r\n\r\n'), 200)
    t.equal((await gateway.call('/api/ignoring')).status, 200)
  }
  t.equal(sockets.size, 6, 'each GET with a body has a connection of its own')
  t.equal(await getWithBody('broken', '{}'), 502)
  t.equal(broken.requests(), 1)
})

t.test('case C1: the list has the page that the console asked for', async t => {
  const data = { records: [{ id: 1 }], total: 25 }
  for (const [query, numbers] of [
    ['?current=2&pageSize=20', { current: 2, size: 20 }],
    ['?pageSize=5&q=a%3Fb', { size: 5 }],
    ['?current=00000003', { current: 3 }],
    ['', {}]
  ] as const) {
    const { json: body } = await gateway.call(`/api/pages${query}`)
    t.strictSame(body.data, { ...data, ...numbers }, query)
  }
  for (const [sent, numbers] of [
    [
      { current: 4, pageSize: '50', name: '' },
      { current: 4, size: 50 }
    ],
    [{ current: -1, pageSize: null }, {}],
    [{ current: 1.5, pageSize: [10] }, {}],
    [[1], {}]
  ] as const) {
    const { json: body } = await gateway.call('/api/pages', { json: sent })
    t.strictSame(body.data, { ...data, ...numbers }, JSON.stringify(sent))
  }
  const { json: mixed } = await gateway.call('/api/pages?current=2', { json: { pageSize: 7 } })
  t.strictSame(mixed.data, { ...data, current: 2, size: 7 })
  const refused = await gateway.call('/api/pages?current=x&pageSize=-1')
  t.equal(refused.status, 400, 'a page that is none is refused before')
  t.equal(backend.seen[0]?.url, '/api/pages?page=1&limit=20')
  const bare = await gateway.call('/api/bare?current=2')
  t.strictSame(bare.json, [{ id: 1 }], 'no object, no member')
})

t.test('json-server, JHipster, PostgREST: the total of a bare list is in a header', async t => {
  const backend = await testUpstream(t.after, ({ url = '' }, response) => {
    const { status, ...headers } = Object.fromEntries(new URL(url, backend.url).searchParams)
    response.writeHead(Number(status), headers).end('[{"id":1},{"id":2}]')
  })
  const counted = (countHeader: string) => [{ nest: { as: 'rows', count: 'total', countHeader } }]
  const gateway = await testGateway(t.after, {
    backend: backend.url,
    routes: {
      routes: {
        total: { path: '/total', access: 'public', shape: 'total' },
        range: { path: '/range', access: 'public', shape: 'range' }
      },
      shapes: { total: counted('x-total-count'), range: counted('content-range') }
    }
  })
  const rows = [{ id: 1 }, { id: 2 }]
  for (const [path, total] of [
    ['/total?status=200&X-Total-Count=319', 319],
    ['/total?status=200&X-Total-Count=many', 2],
    ['/range?status=200&Content-Range=items 0-1/319', 319],
    ['/range?status=206&Content-Range=0-1/40', 40],
    ['/range?status=206&Content-Range=0-1/*', 2],
    ['/range?status=206', 2]
  ] as const) {
    const { status, json: body } = await gateway.call(encodeURI(path))
    t.strictSame([status, body], [200, { rows, total }], path)
  }
  const ofFile = await gateway.call(encodeURI('/range?status=206&Content-Range=bytes 0-1/319'))
  t.equal(ofFile.json.errorCode, 'upstream.invalid')
})

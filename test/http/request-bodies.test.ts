/** Bodies of requests that are rewritten, dropped, or sent with a GET. */
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, rawUpstream, testUpstream } from '../support/upstream.ts'

const form = 'application/x-www-form-urlencoded'
const backend = await testUpstream(t.after, json(200, { ok: 1 }))
const shape = 'renamed'
const body = { shape }
const post = { access: 'public', upstream: 'b', methods: ['POST'] }
const gateway = await testGateway(t.after, {
  routes: {
    upstreams: { b: { url: backend.url } },
    shapes: { renamed: [{ rename: { a: 'b' } }] },
    routes: {
      mapped: {
        path: '/mapped',
        access: 'public',
        upstream: 'b',
        methods: ['POST', 'PATCH'],
        body
      },
      form: { ...post, path: '/form', body: { as: 'form' } },
      json: { ...post, path: '/json', body: { as: 'json' } },
      drops: { path: '/drops', access: 'public', upstream: 'b', methods: ['GET'] },
      passes: {
        path: '/passes',
        access: 'public',
        upstream: 'b',
        passGetBody: true,
        maxBody: '1KiB'
      }
    }
  },
  limits: { sizes: { shape: '10KiB' } }
})

const send = async (method: string, type: string, text: string | Buffer) =>
  await raw(
    gateway.url,
    Buffer.concat([
      Buffer.from(
        request(`${method} /mapped`, [
          `Content-Type: ${type}`,
          `Content-Length: ${Buffer.byteLength(text)}`
        ])
      ),
      Buffer.from(text)
    ])
  )

for (const [type, sent] of [
  ['application/json', 'application/json'],
  ['application/json; charset=utf-8', 'application/json'],
  ['application/vnd.api+json', 'application/vnd.api+json'],
  ['application/merge-patch+json;charset=UTF-8', 'application/merge-patch+json'],
  ['Application/Problem+JSON', 'application/problem+json']
] as const) {
  t.test(`case 15: a body that is rewritten keeps its type: ${type}`, async t => {
    t.equal((await send('PATCH', type, '{"a":"张"}')).status, 200)
    const seen = backend.seen.at(-1)
    t.equal(seen?.headers['content-type'], sent)
    t.equal(seen?.body.toString(), '{"b":"张"}')
  })
}

t.test('case 15: JSON in another charset is read by it, and written as UTF-8', async t => {
  const gbk = Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xd6, 0xd0, 0x22, 0x7d])
  t.equal((await send('POST', 'application/json; charset=GBK', gbk)).status, 200)
  t.equal(backend.seen.at(-1)?.headers['content-type'], 'application/json')
  t.equal(backend.seen.at(-1)?.body.toString(), '{"b":"中"}')
})

t.test('case 15: what cannot be read is refused', async t => {
  const before = backend.seen.length
  for (const [type, text] of [
    [`${form}; charset=GBK`, 'a=%D6%D0'],
    [form, 'a=%D6%D0'],
    [form, Buffer.from([0x61, 0x3d, 0xd6, 0xd0])],
    ['application/json', Buffer.from([0x7b, 0x22, 0xd6, 0x22, 0x7d])]
  ] as const) {
    t.equal((await send('POST', type, text)).status, 400, type)
  }
  t.equal(backend.seen.length, before, 'the back-end was not asked')
  t.equal((await send('POST', form, 'a=%E4%B8%AD+%EF%BF%BD')).status, 200)
  t.equal(backend.seen.at(-1)?.body.toString(), 'b=%E4%B8%AD+%EF%BF%BD')
})

const conversions: Record<
  string,
  readonly [path: string, type: string, text: string, sent: string]
> = {
  'JSON becomes a form': [
    '/form',
    'application/json',
    '{"a":"b c&","n":1,"yes":true,"none":null,"list":[1,"x"]}',
    'a=b+c%26&n=1&yes=true&list=1&list=x'
  ],
  'a form becomes JSON': [
    '/json',
    form,
    'a=b+c%26&x=1&x=2&__proto__=y',
    '{"a":"b c&","x":["1","2"],"__proto__":"y"}'
  ],
  'digits stay in a form': [
    '/form',
    'application/json',
    '{"id":12345678901234567890}',
    'id=12345678901234567890'
  ],
  'digits stay in JSON': [
    '/mapped',
    'application/json',
    '{"a":12345678901234567890}',
    '{"b":12345678901234567890}'
  ]
}
for (const [title, [path, type, text, sent]] of Object.entries(conversions)) {
  t.test(`a body is written as the back-end reads it: ${title}`, async t => {
    const headers = { 'content-type': type }
    t.equal((await gateway.call(path, { method: 'POST', headers, body: text })).status, 200)
    const seen = backend.seen.at(-1)
    t.equal(seen?.body.toString(), sent)
    t.equal(seen?.headers['content-type'], path === '/form' ? form : 'application/json')
    t.equal(seen?.headers['content-length'], String(Buffer.byteLength(sent)))
  })
}

t.test('a packed body is unpacked, up to the bound', async t => {
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const pack = async (text: string) =>
    await gateway.call('/mapped', { method: 'POST', headers, body: gzipSync(text) })
  t.equal((await pack('{"a":1}')).status, 200)
  const seen = backend.seen.at(-1)
  t.equal(seen?.body.toString(), '{"b":1}')
  t.notOk(seen?.headers['content-encoding'])
  t.match(await pack(`"${'x'.repeat(100_000)}"`), { status: 413 })
})

t.test('what cannot be written as the back-end reads it is refused', async t => {
  const before = backend.seen.length
  const refused = async (type: string, text: string) => {
    const headers = { 'content-type': type }
    const { json: error } = await gateway.call('/form', { method: 'POST', headers, body: text })
    return error.errorCode as string
  }
  for (const text of ['{"a":', '[1]', '"a"', '1', '{"a":{"b":1}}', '{"a":[[1]]}']) {
    t.equal(await refused('application/json', text), 'request.malformed', text)
  }
  for (const type of ['text/plain', 'multipart/form-data; boundary=x', '']) {
    t.equal(await refused(type, 'x'), 'request.type', type)
  }
  t.equal(backend.seen.length, before, 'the back-end was not asked')
})

const getWithBody = (path: string, text: string) =>
  request(`GET ${path}`, ['Content-Type: application/json', `Content-Length: ${text.length}`], text)

t.test('case 16: the body of a GET is dropped, which the log says once', async t => {
  for (let count = 0; count < 3; count++) {
    t.equal((await raw(gateway.url, getWithBody('/drops', '{"a":1}'))).status, 200)
    const seen = backend.seen.at(-1)
    t.equal(seen?.body.length, 0)
    t.equal(seen?.headers['content-type'], undefined)
  }
  const lines = gateway.log.filter(({ event }) => event === 'request.body-dropped')
  t.match(lines, [{ route: 'drops', method: 'GET' }])
  t.equal(lines.length, 1)
})

t.test('case 16: a route may let it pass whole, up to its bound', async t => {
  t.equal((await raw(gateway.url, getWithBody('/passes', '{"a":1}'))).status, 200)
  const seen = backend.seen.at(-1)
  t.match(seen, { method: 'GET', headers: { 'content-type': 'application/json' } })
  t.equal(seen?.body.toString(), '{"a":1}')
  const chunked = request('GET /passes', ['Transfer-Encoding: chunked'], '3\r\nabc\r\n0\r\n\r\n')
  t.equal((await raw(gateway.url, chunked)).status, 200)
  t.equal(backend.seen.at(-1)?.body.toString(), 'abc')
  t.equal((await raw(gateway.url, getWithBody('/passes', 'x'.repeat(2000)))).status, 413)
  t.equal((await gateway.call('/passes')).status, 200, 'without one too')
})

t.test('case 16: nothing of a body becomes a request, and none is sent twice', async t => {
  const heads: string[] = []
  const sockets = new Set<Socket>()
  const ignoring = await rawUpstream(t.after, (socket, head) => {
    heads.push(head)
    sockets.add(socket)
    socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}')
  })
  const own = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: ignoring.url } },
      routes: { any: { path: '/any', access: 'public', upstream: 'b', passGetBody: true } }
    }
  })
  const smuggled = 'GET /stolen HTTP/1.1\r\nHost: x\r\n\r\n'
  for (let count = 0; count < 5; count++) {
    t.equal((await raw(own.url, getWithBody('/any', smuggled))).status, 200)
    t.equal((await own.call('/any')).status, 200)
  }
  t.equal(sockets.size, 6, 'each GET with a body has a connection of its own')
  const broken = await rawUpstream(t.after, socket => socket.destroy())
  const failing = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: broken.url } },
      routes: { any: { path: '/any', access: 'public', upstream: 'b', passGetBody: true } }
    }
  })
  t.equal((await raw(failing.url, getWithBody('/any', '{}'))).status, 502)
  t.equal(broken.requests(), 1)
})

t.end()

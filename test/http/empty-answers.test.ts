/** A back-end's success without content: that is what holds no bytes, whatever its status. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { rawUpstream } from '../support/upstream.ts'

const none = Buffer.alloc(0)
const sized = (body: Buffer, ...fields: string[]) => ({
  fields: [...fields, `Content-Length: ${body.length}`],
  body,
  ends: false
})
const user = { status: '200 OK', ...sized(Buffer.from('{"id":1}')) }
let answer = user
const backend = await rawUpstream(t.after, (socket, head) => {
  const { status, fields, body, ends } = head.startsWith('GET /main') ? user : answer
  const text = [`HTTP/1.1 ${status}`, ...fields, '', ''].join('\r\n')
  socket.write(Buffer.concat([Buffer.from(text), body]))
  if (ends) socket.end()
})
const route = (name: string, more: object = {}) => ({
  [name]: { path: `/${name}`, methods: ['GET', 'POST'], access: 'public', upstream: 'b', ...more }
})
const extra = (rewrite: string) => ({
  methods: ['GET'],
  parts: { extra: { upstream: 'b', rewrite, into: 'extra' } }
})
const gateway = await testGateway(t.after, {
  backend: backend.url,
  routes: {
    endpoints: { profile: { upstream: 'b', rewrite: '/me' } },
    shapes: { unwrapped: [{ unwrap: 'data' }], open: [{ unwrap: 'data' }, { wrap: 'envelope' }] },
    routes: {
      ...route('shaped', { shape: 'open' }),
      ...route('plain', { shape: 'unwrapped' }),
      ...route('raw'),
      ...route('merged', { rewrite: '/main', ...extra('/part') }),
      ...route('around', { rewrite: '/nothing', ...extra('/main') })
    }
  }
})
const cookie = await gateway.signIn()

const framings: Readonly<Record<string, Omit<typeof answer, 'status'>>> = {
  'a length of 0': sized(none),
  'JSON, of length 0': sized(none, 'Content-Type: application/json'),
  'no chunk': { ...sized(Buffer.from('0\r\n\r\n')), fields: ['Transfer-Encoding: chunked'] },
  'until the end of the connection': { fields: ['Connection: close'], body: none, ends: true },
  'gzip of nothing at all': sized(none, 'Content-Encoding: gzip'),
  'an empty gzip stream': sized(gzipSync(none), 'Content-Encoding: gzip'),
  'an empty deflate stream': sized(deflateSync(none), 'Content-Encoding: deflate'),
  'an empty brotli stream': sized(brotliCompressSync(none), 'Content-Encoding: br'),
  'an empty zstd frame': sized(zstdCompressSync(none), 'Content-Encoding: zstd'),
  'blanks': sized(Buffer.from(' \r\n\t')),
  'a byte order mark': sized(Buffer.from('\uFEFF'))
}

for (const [name, framing] of Object.entries(framings)) {
  t.test(`case 1: no content is a success with null: ${name}`, async t => {
    for (const status of ['200 OK', '201 Created', '202 Accepted', '204 None', '205 Reset']) {
      answer = { ...framing, status }
      const told = Number(status.slice(0, 3))
      const code = told < 204 ? told : 200
      for (const method of ['GET', 'POST']) {
        const shaped = await gateway.call('/shaped', { method })
        const expected = { status: code, json: { success: true, data: null } }
        t.match(shaped, expected, `${method} ${status}`)
        t.match(shaped.headers.get('content-type'), /^application\/json/)
      }
      t.match(await gateway.call('/plain'), { status: code, text: 'null' })
      t.match(await gateway.call('/shaped', { method: 'HEAD' }), { status: code, text: '' })
      t.equal(await gateway.status('/raw'), told, 'not shaped')
      const merged = await gateway.call('/merged')
      t.same([merged.status, merged.json], [200, { id: 1, extra: null }], 'a part')
      const around = await gateway.call('/around')
      t.same([around.status, around.json], [code, { extra: { id: 1 } }], 'with a part')
      const profile = await gateway.call('/api/account/profile', { cookie })
      t.match(profile, { status: code, text: /"username":"alice"/ }, 'the profile')
    }
  })
}

t.test('case 1: what is no JSON is 502 still', async t => {
  for (const body of ['x', ' <p>', '\uFEFFx']) {
    answer = { status: '200 OK', ...sized(Buffer.from(body)) }
    t.match(await gateway.call('/shaped'), { status: 502, text: /shape.not-json/ })
  }
})

t.end()

import t from 'tap'
import type { GatewayConfig } from '../../src/config/schema/gateway.ts'
import { GatewayError } from '../../src/errors/errors.ts'
import { createEnvelope } from '../../src/shaping/envelope.ts'
import { testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'

const settings: GatewayConfig['envelope'] = {
  dialect: 'problem',
  successCode: 0,
  errorStatus: 'own',
  language: 'en',
  messages: {},
  fieldErrors: 'fieldErrors',
  requestId: true,
  inertToken: '',
  tokenHeaders: [],
  tokenCookies: [],
  tokenQuery: []
}

t.test('an error is a problem with our code; a success has no envelope', async t => {
  const { success, failure } = createEnvelope(settings)
  const error = new GatewayError('upstream.error', {
    status: 409,
    message: 'Sold out.',
    extra: { code: 601, until: 1, status: 200, type: 'x' }
  })
  t.same(failure(error, 'r1'), {
    type: 'about:blank',
    title: 'Conflict',
    status: 409,
    detail: 'Sold out.',
    code: 'upstream.error',
    requestId: 'r1',
    until: 1
  })
  t.equal(failure(new GatewayError('upstream.error', { status: 799 }), '')['title'], 'Error')
  for (const value of [null, [1], { a: 1 }]) {
    for (const placement of ['data', 'flat', 'none'] as const) {
      t.same(success(value, { total: 1 }, placement), value)
    }
  }
})

t.test('every way of refusing names the content type of problems', async t => {
  const backend = await testUpstream(t.after, (asked, response, seen) => {
    if (seen.url === '/page') return void response.writeHead(500).end('<p>')
    json(200, { id: 1 })(asked, response, seen)
  })
  const route = (more: object) => ({ upstream: 'b', access: 'public', ...more })
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { dialect: 'problem' } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        item: route({ path: '/api/item', shape: 'item' }),
        page: route({ path: '/api/page', rewrite: '/page' }),
        plain: route({ path: '/api/plain', rewrite: '/page', dialect: 'base-response' }),
        socket: {
          path: '/api/socket',
          rewrite: '/socket',
          upstream: 'b',
          access: 'session',
          websocket: {}
        }
      },
      shapes: { item: [{ pick: ['id'] }, { wrap: 'envelope' }] }
    }
  })
  const item = await gateway.call('/api/item')
  t.same(item.json, { id: 1 })
  t.match(item.headers.get('content-type'), /^application\/json/)

  const upgrade = 'connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n'
  const host = `host: ${new URL(gateway.url).host}\r\n`
  const cases: Array<readonly [status: number, bytes: string]> = [
    [401, `GET /api/account/profile HTTP/1.1\r\n${host}\r\n`],
    [404, `GET /api/nowhere HTTP/1.1\r\n${host}\r\n`],
    [500, `GET /api/page HTTP/1.1\r\n${host}\r\n`],
    [400, `GET /api/%zz HTTP/1.1\r\n${host}\r\n`],
    [400, `GET /api/page HTTP/1.1\r\n\r\n`],
    [400, 'nonsense\r\n\r\n'],
    [431, `GET / HTTP/1.1\r\n${host}x: ${'x'.repeat(20_000)}\r\n\r\n`],
    [417, `POST / HTTP/1.1\r\n${host}expect: money\r\ncontent-length: 0\r\n\r\n`],
    [405, `CONNECT x:1 HTTP/1.1\r\n${host}\r\n`],
    [
      401,
      `GET /api/socket HTTP/1.1\r\n${host}${upgrade}` +
        'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
        `origin: http://${new URL(gateway.url).host}\r\n\r\n`
    ]
  ]
  for (const [status, bytes] of cases) {
    const { head, body, status: actual } = await raw(gateway.url, bytes)
    const what = bytes.slice(0, 40)
    t.equal(actual, status, what)
    t.match(head, /\r\ncontent-type: application\/problem\+json; charset=utf-8\r\n/i, what)
    t.match(JSON.parse(body), { type: 'about:blank', status, title: /\w/, detail: /\w/ }, what)
  }
  const plain = await gateway.call('/api/plain')
  t.match(plain.headers.get('content-type'), /^application\/json/)
  t.match(plain.json, { ok: false, code: 500 })
})

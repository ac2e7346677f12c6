/** A call that goes to a back-end: who may make it, what arrives there, and what comes back. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const list = [{ noticeId: 'n1', subject: 'Hello', secret: 'x' }]
const sizes = [0, 1, 700, 64 * 1024, 64 * 1024 + 1, 3_000_000]
const bytes = Object.fromEntries(sizes.map(size => [size, randomBytes(size)]))
let more = () => {}
const backend = await testUpstream(t.teardown, (incoming, response, seen) => {
  const [, kind, value = ''] = seen.url.split(/[/?]/)
  if (kind === 'bytes') {
    const headers = { 'content-type': 'application/octet-stream', 'etag': '"e"' }
    return void response.writeHead(200, headers).end(bytes[value])
  }
  if (kind === 'lines') {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"first":1}\n')
    more = () => response.end('{"second":2}\n')
    return
  }
  if (kind === 'head') {
    const headers = { 'content-type': 'text/plain', 'content-length': '100000' }
    response.writeHead(200, headers).end(seen.method === 'HEAD' ? '' : 'x'.repeat(100_000))
    return
  }
  if (kind === 'status') return void response.writeHead(Number(value), { etag: '"1"' }).end()
  json(200, { code: 0, result: { list, count: 1 } })(incoming, response, seen)
})
const open = { access: 'public' }
const gateway = await testGateway(t.teardown, {
  backend: backend.url,
  routes: {
    routes: {
      notices: { rewrite: '/internal', shape: 'notices' },
      any: { ...open, path: '/api/any/*', rewrite: '/*' }
    },
    shapes: {
      notices: [
        { unwrap: 'result.list' },
        {
          each: [
            { rename: { noticeId: 'id', subject: 'title' } },
            { default: { type: 'notification', read: false } },
            { pick: ['id', 'title', 'type', 'read'] }
          ]
        },
        { wrap: 'list' }
      ]
    }
  }
})

t.test('notices need a session, carry the identity, and become a notice list', async t => {
  t.match(await gateway.call('/api/notices'), { status: 401, json: { errorCode: 'session.none' } })
  t.equal(backend.begun(), 0, 'nothing reached the upstream')
  const cookie = await gateway.signIn('bob')
  const answer = await gateway.call('/api/notices?page=1&q=a%20b', { cookie })
  t.same(answer.json, {
    ok: true,
    code: 0,
    message: 'OK',
    success: true,
    data: [{ id: 'n1', title: 'Hello', type: 'notification', read: false }],
    total: 1
  })
  t.match(backend.seen[0], {
    url: '/internal?page=1&q=a%20b',
    headers: {
      'x-user-id': '2',
      'x-user-name': 'bob',
      'x-user-roles': 'user',
      'x-request-id': answer.headers.get('x-request-id'),
      'accept-encoding': 'identity',
      'cookie': undefined
    }
  })
  const line = await gateway.logged(({ route, status }) => route === 'notices' && status === 200)
  t.match(line, { route: 'notices', user: 'bob', upstreamMs: Number, ms: Number })
})

t.test('an unshaped answer passes untouched, byte for byte, whatever its size', async t => {
  for (const size of sizes) {
    const answer = await fetch(`${gateway.url}/api/any/bytes/${size}`)
    t.ok(bytes[size]?.equals(Buffer.from(await answer.arrayBuffer())), `${size} bytes`)
    t.equal(answer.headers.get('etag'), '"e"')
    t.equal(answer.headers.get('content-type'), 'application/octet-stream')
  }
})

t.test('an answer of unknown length is sent on as it comes', async t => {
  const answer = await fetch(`${gateway.url}/api/any/lines`)
  const reader = answer.body?.getReader()
  const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString()
  t.equal(await next(), '{"first":1}\n', 'before the upstream has finished')
  more()
  t.equal(await next(), '{"second":2}\n')
})

t.test('a mount prefix stands before public paths, and before none at the upstream', async t => {
  const mounted = await testGateway(t.after, {
    gateway: { server: { mount: '/console-x' } },
    backend: backend.url,
    routes: { routes: { files: { ...open, path: '/api/files/*' } } }
  })
  t.equal((await mounted.call('/console-x/api/files/a')).status, 200)
  t.equal(backend.seen.at(-1)?.url, '/api/files/a')
  t.equal((await mounted.call('/api/files/a')).status, 404)
})

t.test('HEAD comes with GET, its length is told; statuses without a body stay so', async t => {
  const answer = await gateway.call('/api/any/head', { method: 'HEAD' })
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('content-length'), '100000')
  for (const status of [204, 304]) {
    const without = await gateway.call(`/api/any/status/${status}`)
    t.same([without.status, without.text], [status, ''])
  }
})

/** A call that goes to a back-end, and what comes back as it is. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

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
  json(200, {})(incoming, response, seen)
})
const open = { access: 'public' }
const gateway = await testGateway(t.teardown, {
  backend: backend.url,
  routes: { routes: { any: { ...open, path: '/api/any/*', rewrite: '/*' } } }
})

t.test('an unshaped answer passes untouched, byte for byte, whatever its size', async t => {
  for (const size of sizes) {
    const answer = await fetch(`${gateway.url}/api/any/bytes/${size}`)
    t.ok(bytes[size]?.equals(Buffer.from(await answer.arrayBuffer())), `${size} bytes`)
    t.equal(answer.headers.get('etag'), '"e"')
    t.equal(answer.headers.get('content-type'), 'application/octet-stream')
  }
  t.match(await gateway.logged(({ route }) => route === 'any'), { upstreamMs: Number, ms: Number })
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

t.test('HEAD comes with GET, its length is told', async t => {
  const answer = await gateway.call('/api/any/head', { method: 'HEAD' })
  t.equal(answer.status, 200)
  t.equal(answer.headers.get('content-length'), '100000')
})

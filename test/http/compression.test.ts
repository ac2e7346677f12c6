/** Compressed answers, by `server.compress` and beside a console's own files. */
import { get, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { connect } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { request } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'

const text = JSON.stringify({ data: 'some text '.repeat(2000) })
const answers: Readonly<
  Record<string, readonly [type: string, more?: object, body?: string | Buffer]>
> = {
  '/page': ['text/html'],
  '/picture': ['image/png'],
  '/events': ['text/event-stream'],
  '/small': ['application/json', {}, '{}'],
  '/packed': ['application/json', { 'content-encoding': 'gzip' }, gzipSync(text)],
  '/part': ['application/json', { 'content-range': 'bytes 0-19999/99999' }]
}
const backend = await testUpstream(t.after, ({ url = '' }, response) => {
  const [type, more, body = text] = answers[url] ?? ['application/json']
  response.writeHead(url === '/part' ? 206 : 200, { 'content-type': type, ...more }).end(body)
})
const files = (compress: boolean) => ({
  gateway: { server: { compress } },
  backend: backend.url,
  routes: {
    shapes: { same: [{ drop: ['nothing'] }] },
    routes: {
      any: { path: '/any/*', rewrite: '/*', access: 'public' },
      shaped: { path: '/shaped/*', rewrite: '/*', access: 'public', shape: 'same' }
    }
  }
})

async function ask(url: string, accepted?: string) {
  const headers = accepted === undefined ? {} : { 'accept-encoding': accepted }
  const asked = once(get(url, { headers, agent: false }), 'response')
  const [response] = (await asked) as [IncomingMessage]
  const bytes = await buffer(response)
  const coding = response.headers['content-encoding']
  const body = coding === 'br' ? brotliDecompressSync(bytes) : bytes
  return {
    coding,
    text: (coding === 'gzip' ? gunzipSync(bytes) : body).toString(),
    length: bytes.length,
    headers: response.headers
  }
}

t.test('case 18: text is compressed where config says so, and nothing else', async t => {
  const { url } = await testGateway(t.after, files(true))
  for (const path of ['/any/json', '/any/page', '/shaped/json']) {
    for (const [accepted, coding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip', 'gzip'],
      ['identity', undefined],
      [undefined, undefined]
    ] as const) {
      const answer = await ask(url + path, accepted)
      t.same([answer.coding, answer.text], [coding, text], `${path} for ${accepted}`)
      if (coding === undefined) continue
      t.ok(answer.length < text.length / 10)
      t.match(answer.headers.vary, /accept-encoding/i)
    }
  }
  for (const path of ['/any/picture', '/any/events', '/any/small', '/any/part', '/shaped/small']) {
    t.equal((await ask(url + path, 'gzip, br')).coding, undefined, path)
  }
  const packed = await ask(`${url}/any/packed`, 'gzip, br')
  t.same([packed.coding, packed.text], ['gzip', text], 'what is compressed stays so')
  const shaped = await ask(`${url}/shaped/packed`, 'br')
  t.same([shaped.coding, shaped.text], ['br', text])
  const byDefault = await testGateway(t.after, files(false))
  t.equal((await ask(`${byDefault.url}/any/json`, 'gzip, br')).coding, undefined)
})

const code = {
  'console/index.html': '<!doctype html><title>x</title>',
  'console/app.js': text,
  'console/app.js.gz': gzipSync(text),
  'console/app.js.br': brotliCompressSync(text),
  'console/only-gzip.js': text,
  'console/only-gzip.js.gz': gzipSync(text),
  'console/main-abc12345.js': text,
  'console/main-abc12345.js.br': brotliCompressSync(text),
  'console/plain.js': text
}
const gateway = await testGateway(t.after, { gateway: { console: { root: 'console' } }, code })

t.test('case 18: files that are compressed beside the plain ones are used', async t => {
  for (const [path, accepted, expected] of [
    ['/app.js', 'gzip, br', 'br'],
    ['/app.js', 'gzip', 'gzip'],
    ['/app.js', 'identity', undefined],
    ['/only-gzip.js', 'br, gzip', 'gzip'],
    ['/main-abc12345.js', 'br', 'br'],
    ['/plain.js', 'gzip, br', undefined]
  ] as const) {
    const { coding, text: script, headers } = await ask(gateway.url + path, accepted)
    t.same([coding, script], [expected, text], path)
    t.match(headers, {
      'content-type': /javascript/,
      'vary': /accept-encoding/i,
      'cache-control': path.startsWith('/main-') ? /immutable/ : 'no-cache'
    })
  }
})

t.test('a client that leaves before its page begins is no fault of the gateway', async t => {
  const { port } = new URL(gateway.url)
  for (let visitor = 0; visitor < 5; visitor++) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end(request('GET /a/page', ['Accept: text/html']), () => socket.resetAndDestroy())
    await once(socket, 'close')
  }
  await gateway.logged(({ msg, status }) => msg === 'request' && status === 499)
  t.equal(await gateway.status('/a/page', { headers: { accept: 'text/html' } }), 200)
  t.notOk(gateway.log.some(({ level }) => level === 'error'))
  t.notMatch(await gateway.metrics(), 'errors_total{code="gateway.fault"}')
})

t.end()

/** `server.compress`. */
import { get, type IncomingMessage } from 'node:http'
import { once } from 'node:events'
import { buffer } from 'node:stream/consumers'
import { brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const text = JSON.stringify({ data: 'some text '.repeat(2000) })
/** The media type, and more of the response, by path. */
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
  routes: {
    upstreams: { b: { url: backend.url } },
    shapes: { same: [{ drop: ['nothing'] }] },
    routes: {
      any: { path: '/any/*', rewrite: '/*', access: 'public', upstream: 'b' },
      shaped: { path: '/shaped/*', rewrite: '/*', access: 'public', upstream: 'b', shape: 'same' }
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
  const gateway = await testGateway(t.after, files(true))
  for (const path of ['/any/json', '/any/page', '/shaped/json']) {
    for (const [accepted, coding] of [
      ['gzip, deflate, br', 'br'],
      ['gzip', 'gzip'],
      ['identity', undefined],
      [undefined, undefined]
    ] as const) {
      const answer = await ask(gateway.url + path, accepted)
      t.equal(answer.coding, coding, `${path} for ${accepted}`)
      t.equal(answer.text, text)
      if (coding === undefined) continue
      t.ok(answer.length < text.length / 10)
      t.match(answer.headers.vary, /accept-encoding/i)
    }
  }
  for (const path of ['/any/picture', '/any/events', '/any/small', '/any/part', '/shaped/small']) {
    t.equal((await ask(gateway.url + path, 'gzip, br')).coding, undefined, path)
  }
  const packed = await ask(`${gateway.url}/any/packed`, 'gzip, br')
  t.same([packed.coding, packed.text], ['gzip', text], 'what is compressed stays so')
  const shaped = await ask(`${gateway.url}/shaped/packed`, 'br')
  t.same([shaped.coding, shaped.text], ['br', text])
})

t.test('case 18: by default nothing is', async t => {
  const gateway = await testGateway(t.after, files(false))
  t.equal((await ask(`${gateway.url}/any/json`, 'gzip, br')).coding, undefined)
})

t.end()

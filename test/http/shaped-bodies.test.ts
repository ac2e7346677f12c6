/**
 * Bodies of answers: shaped, whatever coding, framing and size they come in, they are sound or 502;
 * without a shape they pass as they are.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { parse } from 'yaml'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { rawUpstream, testUpstream } from '../support/upstream.ts'

type Answer = NonNullable<Parameters<typeof testUpstream>[1]>
type Bytes = Buffer | string

const rows = (count: number) =>
  Array.from({ length: count }, (_, id) => ({ id, title: `Büro ${id}` }))
const items = (count: number) =>
  JSON.stringify({ items: rows(count).map(({ id, title }) => ({ id, subject: title, secret: 1 })) })

const sends =
  (body: Bytes, fields: Record<string, string> = {}, status = 200): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...fields }).end(body)
  }

/** What the back-end answers now; `raws` are bytes. */
let answer: Answer = sends('')
let rawAnswer: readonly Bytes[] = []
const main = 'HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\n{"id":1}'
const backend = await testUpstream(t.teardown, (...exchange) => answer(...exchange))
const raws = await rawUpstream(t.teardown, (socket, asked) => {
  const [head = '', body] = asked.startsWith('GET /main') ? [main] : rawAnswer
  socket.write(head, 'latin1')
  if (body !== undefined) socket.end(body)
})
const open = { access: 'public', methods: ['GET', 'POST'] }
const atRaws = { ...open, upstream: 'raws' }
const withPart = (rewrite: string, part: string) => ({
  ...{ access: 'public', upstream: 'raws', rewrite },
  parts: { extra: { upstream: 'raws', rewrite: part, into: 'extra' } }
})
const shapes = parse(`
list:
  - unwrap: items
  - each: [{ rename: { subject: title } }, { pick: [id, title] }]
  - wrap: list
page:
  - status: { path: code, ok: [0], statuses: { 40400: 404 } }
  - unwrap: data
  - paging:
      { list: list, total: count, each: [{ convert: { at: date-seconds, id: string } }] }
missing: [{ unwrap: items }, { wrap: list }]
unwrapped: [{ unwrap: data }]
opened: [{ unwrap: data }, { wrap: envelope }]
number: [{ unwrap: id.rawJSON }]
numbers: [{ unwrap: list }, { each: [{ lift: id }] }]
`) as object
const gateway = await testGateway(t.teardown, {
  limits: { limits: {}, sizes: { shape: '2MiB' } },
  backend: backend.url,
  routes: {
    upstreams: { raws: { url: raws.url } },
    endpoints: { profile: { upstream: 'raws', rewrite: '/me' } },
    routes: {
      ...Object.fromEntries(Object.keys(shapes).map(shape => [shape, { ...open, shape }])),
      raw: { ...atRaws, shape: 'list' },
      none: { ...atRaws, shape: 'opened' },
      bare: { ...atRaws, shape: 'unwrapped' },
      untouched: atRaws,
      merged: withPart('/main', '/part'),
      around: withPart('/nothing', '/main'),
      own: { shape: 'list' },
      plain: open,
      parts: {
        access: 'public',
        parts: { who: { upstream: 'b', rewrite: '/', into: 'who', shape: 'unwrapped' } }
      }
    },
    shapes
  }
})
/** The gateway's answer where the back-end's is this one. */
async function when(
  now: Answer,
  path = '/api/list',
  options: Parameters<typeof gateway.call>[1] = {}
) {
  answer = now
  return await gateway.call(path, options)
}

const quick = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
const ok = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const codings: Record<string, (bytes: Bytes) => Buffer> = {
  'gzip': gzipSync,
  'x-gzip': gzipSync,
  'deflate': deflateSync,
  'br': bytes => brotliCompressSync(bytes, quick),
  'zstd': zstdCompressSync
}

t.test('an answer compressed unasked is shaped; without a shape it passes', async t => {
  for (const [coding, encode] of Object.entries(codings)) {
    for (const count of [1, 3000]) {
      const bytes = encode(items(count))
      const ofBytes = { 'content-encoding': coding, 'etag': '"raw"', 'accept-ranges': 'bytes' }
      const length = count === 1 && { 'content-length': String(bytes.length) }
      const fields = { ...ofBytes, ...length, vary: 'Accept-Encoding, Accept-Language' }
      const headers = { 'accept-encoding': 'gzip' }
      const { headers: told, ...shaped } = await when(sends(bytes, fields), '/api/list', {
        headers
      })
      const json = { total: count, data: rows(count).slice(0, 3) }
      t.match(shaped, { status: 200, json }, coding)
      t.equal(backend.seen.at(-1)?.headers['accept-encoding'], 'identity')
      for (const name of Object.keys(ofBytes)) t.equal(told.get(name), null, name)
      t.equal(told.get('vary'), 'Accept-Language')
      t.equal(told.get('content-length'), String(Buffer.byteLength(shaped.text)))
      const [came] = await once(get(`${gateway.url}/api/plain`), 'response')
      t.ok((await buffer(came)).equals(bytes), coding)
      t.equal(came.headers['content-encoding'], coding)
    }
  }
})

t.test('an unshaped answer passes untouched, byte for byte, whatever its size', async t => {
  for (const size of [0, 1, 700, 64 * 1024, 64 * 1024 + 1, 3_000_000]) {
    const bytes = randomBytes(size)
    answer = sends(bytes, { 'content-type': 'application/octet-stream', 'etag': '"e"' })
    const came = await fetch(`${gateway.url}/api/plain`)
    t.ok(bytes.equals(Buffer.from(await came.arrayBuffer())), `${size} bytes`)
    t.equal(came.headers.get('etag'), '"e"')
    t.equal(came.headers.get('content-type'), 'application/octet-stream')
  }
  const line = await gateway.logged(({ route }) => route === 'plain')
  t.match(line, { upstreamMs: Number, ms: Number })
})

t.test('an unshaped answer of unknown length is sent on as it comes', async t => {
  let more = () => {}
  answer = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).write('{"first":1}\n')
    more = () => response.end('{"second":2}\n')
  }
  const reader = (await fetch(`${gateway.url}/api/plain`)).body?.getReader()
  const next = async () => Buffer.from((await reader?.read())?.value ?? []).toString()
  t.equal(await next(), '{"first":1}\n', 'before the upstream has finished')
  more()
  t.equal(await next(), '{"second":2}\n')
})

t.test('a body in single bytes is shaped as one', async t => {
  const chunks = [...Buffer.from(items(40))].map(byte => `1\r\n${String.fromCharCode(byte)}\r\n`)
  rawAnswer = [`${ok}Transfer-Encoding: chunked\r\n\r\n${chunks.join('')}0\r\n\r\n`]
  t.same((await gateway.call('/api/raw')).json.data, rows(40))
})

t.test('1 GB of blanks in a megabyte costs no memory to speak of', async t => {
  const part = Buffer.alloc(2 ** 26, ' ')
  const sixteen = (bytes: Buffer) => Buffer.concat(Array<Buffer>(16).fill(bytes))
  const zipped = sixteen(gzipSync(part))
  const bombs = {
    gzip: zipped,
    br: brotliCompressSync(part, quick),
    zstd: sixteen(zstdCompressSync(part))
  }
  t.ok(zipped.length < 1.1 * 2 ** 20, 'it is collected whole')
  for (const [coding, bomb] of Object.entries(bombs)) {
    await when(sends(bomb, { 'content-encoding': coding }))
    const before = process.resourceUsage().maxRSS
    const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.call('/api/list')))
    for (const shaped of answers) {
      t.match(shaped, { status: 502, json: { errorCode: 'shape.too-large' } }, coding)
    }
    const more = (process.resourceUsage().maxRSS - before) / 1024
    t.ok(more < 300, `${coding}: ${Math.round(more)} MiB more at the peak`)
  }
})

t.test('a body beyond the bound is 502, and the back-end is not read to its end', async t => {
  for (const length of [undefined, String(2 ** 40)]) {
    const closed = Promise.withResolvers<void>()
    const refused = await when((_request, response) => {
      response.once('close', closed.resolve)
      const told = length !== undefined && { 'content-length': length }
      response.writeHead(200, { 'content-type': 'application/json', ...told }).write('[')
      const more = (): void => {
        while (!response.destroyed && response.write('[1,2,3],'.repeat(5000)));
        response.once('drain', more)
      }
      if (length === undefined) more()
    })
    t.match(refused, { status: 502, json: { errorCode: 'shape.too-large' } }, `told ${length}`)
    await closed.promise
  }
})

t.test('what is no JSON is 502, and the log says how but holds nothing of it', async t => {
  const cases: Array<[Answer, RegExp]> = [
    [sends('<h1>do-not-log</h1>', { 'content-type': 'text/html' }), /begins as HTML .*text\/html/],
    [sends('{"do-not-log": nothing}'), /unexpected token 'o'/],
    [sends(gzipSync('{"a":1}').subarray(0, 12), { 'content-encoding': 'gzip' }), /gzip breaks off/],
    [sends('data: do-not-log\n\n', { 'content-type': 'text/event-stream' }), /stream of events/],
    [sends(`{"items":[{"id":${'['.repeat(40_000)}${']'.repeat(40_000)}}]}`), /nested too deeply/]
  ]
  for (const [now, reason] of cases) {
    const from = gateway.log.length
    const refused = await when(now)
    const json = { success: false, errorCode: 'shape.not-json', requestId: String }
    t.match(refused, { status: 502, json }, String(reason))
    const line = await gateway.logged(({ code }) => code === 'shape.not-json', from)
    t.match(line, { route: 'list', level: 'warn', reason })
    t.notMatch(refused.text + JSON.stringify(gateway.log), 'do-not-log')
  }
})

t.test('ids of more digits than JavaScript holds arrive as they were sent', async t => {
  const sent = '[{"id":12345678901234567890,"subject":0.1},{"id":9007199254740993}]'
  const { text } = await when(sends(`{"items":${sent}}`))
  t.match(text, `"data":${sent.replace('subject', 'title')}`)
})

t.test('HEAD has no body and no false fields; 204 and 205 have none without a shape', async t => {
  answer = (incoming, response) => {
    const fields = { 'content-encoding': 'gzip', 'accept-ranges': 'bytes', 'etag': '"1"' }
    const status = Number(incoming.headers['x-status'])
    const length = status === 200 && { 'content-length': '9' }
    response.writeHead(status, { 'content-type': 'text/html', ...fields, ...length }).end()
  }
  const head = async (status: string) =>
    await gateway.call('/api/list', { method: 'HEAD', headers: { 'x-status': status } })
  const plain = await gateway.call('/api/plain', { method: 'HEAD', headers: { 'x-status': '200' } })
  t.equal(plain.headers.get('content-length'), '9', 'without a shape its length is told')
  const { headers, status } = await head('200')
  t.equal(status, 200)
  t.match([...headers.keys()].join(), /^(?!.*(?:content-length|coding|etag|ranges))/)
  t.equal(headers.get('content-type'), 'application/json; charset=utf-8')
  t.equal((await head('503')).status, 503)
  for (const status of ['204', '205']) {
    const asked = request('GET /api/plain', ['Connection: close', `X-Status: ${status}`])
    const came = await raw(gateway.url, asked, { enough: () => false })
    t.same([came.status, came.body, came.closed], [Number(status), '', true])
    const shaped = await gateway.call('/api/list', { headers: { 'x-status': status } })
    t.match(shaped, { status: 200, json: { success: true, data: [] } }, 'an envelope needs a body')
    t.equal(shaped.headers.get('content-encoding'), null)
  }
})

t.test('a tag of the back-end is of another body, and personal data is not kept', async t => {
  const cookie = await gateway.signIn()
  const modified = 'Sat, 21 Nov 2026 08:30:00 GMT'
  for (const [path, control, kept] of [
    ['/api/list', 'max-age=60', 'max-age=60'],
    ['/api/list', 'no-store', 'no-store'],
    ['/api/own', 'public, max-age=60', 'no-store']
  ] as const) {
    const fields = { 'cache-control': control, 'etag': '"raw"', 'last-modified': modified }
    const headers = { 'if-none-match': '"raw"', 'if-modified-since': modified }
    const { status, headers: sent } = await when(sends(items(1), fields), path, { cookie, headers })
    const got = ['cache-control', 'etag', 'last-modified'].map(name => sent.get(name))
    t.same([status, ...got], [200, kept, null, null])
    const seen = backend.seen.at(-1)?.headers
    t.same([seen?.['if-none-match'], seen?.['if-modified-since']], [undefined, undefined])
  }
})

t.test('a condition on a change goes on to the back-end', async t => {
  const headers = { 'if-match': '"3"', 'if-none-match': '*' }
  await when(sends(items(1)), '/api/list', { method: 'POST', body: '{}', headers })
  t.match(backend.seen.at(-1)?.headers, headers)
})

t.test('a part of an answer is never shaped as if it were all', async t => {
  const text = items(2)
  const range = { 'content-range': `bytes 0-4/${text.length}` }
  answer = (incoming, response, seen) => {
    const isPart = incoming.headers.range !== undefined
    const part = sends(text.slice(0, 5), range, 206)
    const all = sends(text, { 'accept-ranges': 'bytes' })
    ;(isPart ? part : all)(incoming, response, seen)
  }
  const headers = { 'range': 'bytes=0-4', 'if-range': '"x"' }
  const shaped = await gateway.call('/api/list', { headers })
  t.same([shaped.status, shaped.json.total, shaped.headers.get('accept-ranges')], [200, 2, null])
  const part = await gateway.call('/api/plain', { headers })
  t.match(backend.seen.at(-1)?.headers, headers)
  t.match(part, { status: 206, text: /^\{"ite$/ }, 'without a shape a part is a part')
  t.equal(part.headers.get('content-range'), range['content-range'])
  for (const senseless of [sends('{"items":[]}', range, 206), sends('', {}, 304)]) {
    const refused = { status: 502, json: { errorCode: 'upstream.invalid' } }
    t.match(await when(senseless), refused)
  }
})

const page = (value: object) => sends(JSON.stringify(value))

t.test('an unwrap that finds nothing is logged once, with what to do', async t => {
  for (let n = 0; n < 3; n++) {
    t.match((await when(page({ code: 0 }), '/api/missing')).json, { data: [], total: 0 })
  }
  const [line, ...others] = gateway.log.filter(
    ({ event, shape }) => event === 'shape.missing' && shape === 'missing'
  )
  const msg = /found nothing at "items".*explain GET PATH --live/
  t.match(line, { level: 'warn', path: 'items', msg })
  t.same(others, [])
})

const verdicts: ReadonlyArray<readonly [said: object, status: number, json: object]> = [
  [
    { code: 0, data: { list: [{ id: 1, at: 1795239000 }], count: 9 } },
    200,
    { success: true, data: [{ id: '1', at: '2026-11-21T05:30:00.000Z' }], total: 9 }
  ],
  [
    { code: 403, msg: 'Not yours' },
    403,
    { success: false, ok: false, errorCode: 'upstream.error', message: 'Not yours', code: 403 }
  ],
  [{ code: 40400, msg: 'No such order' }, 404, { message: 'No such order', code: 40400 }],
  [{ code: 'E7' }, 502, { message: /reported an error/, code: 502 }]
]
t.test('where 200 is said to everything, statuses are true and errors enveloped', async t => {
  for (const [said, status, json] of verdicts) {
    t.match(await when(page(said), '/api/page'), { status, json })
  }
})

t.test('where the console wants 200, errors have it, but on a route with their own', async t => {
  answer = page({ code: 40400, msg: 'No such order' })
  const everywhere = await testGateway(t.after, {
    gateway: { envelope: { errorStatus: 'ok' } },
    backend: backend.url,
    routes: {
      shapes: { page: [{ status: { path: 'code', ok: [0], statuses: { 40400: 404 } } }] },
      routes: {
        page: { ...open, shape: 'page' },
        own: { ...open, shape: 'page', errorStatus: 'own' }
      }
    }
  })
  for (const [path, errorCode] of [
    ['/api/page', 'upstream.error'],
    ['/api/nowhere', 'route.unknown'],
    ['/api/account/profile', 'session.none']
  ] as const) {
    const json = { success: false, errorCode }
    t.match(await everywhere.call(path), { status: 200, json }, path)
  }
  t.equal((await everywhere.call('/api/own')).status, 404)
})

const labels: ReadonlyArray<Record<string, string>> = [
  { 'content-encoding': 'UTF-8' },
  { 'content-encoding': 'gzip' },
  { 'content-type': 'application/json; charset=utf8mb4' },
  { 'content-type': 'application/json;charset=ISO-8859-1' }
]
t.test('case 2: a label that is wrong is no fault: it is read as it is', async t => {
  for (const label of labels) {
    const read = await when(sends('{"data":{"name":"张三"}}', label), '/api/unwrapped')
    t.match(read, { status: 200, json: { name: '张三' } }, JSON.stringify(label))
    t.equal(read.headers.get('content-encoding'), null)
    t.equal(read.headers.get('content-type'), 'application/json; charset=utf-8')
    t.same((await gateway.call('/api/parts')).json, { who: { name: '张三' } })
  }
  const lines = gateway.log.filter(
    ({ event, route }) => event === 'shape.label' && route === 'unwrapped'
  )
  t.match(lines, [{ label: /content coding "utf-8" is not known/ }])
  t.equal(lines.length, 1, 'one line for the route')
})

t.test('case R3: no path of a shape leads into a number', async t => {
  const sent = sends('{"id":1234567890123456789,"list":[{"id":1234567890123456789}]}')
  t.equal((await when(sent, '/api/number')).text, 'null')
  t.notMatch((await when(sent, '/api/numbers')).text, 'rawJSON')
})

const sized = (body: Bytes, ...fields: string[]): [string[], Bytes] => {
  return [[...fields, `Content-Length: ${Buffer.byteLength(body)}`], body]
}
/** How nothing comes: fields and body, and whether the connection ends then. */
const framings: Record<string, readonly [fields: string[], body: Bytes, ends?: boolean]> = {
  'a length of 0': sized(''),
  'JSON, of length 0': sized('', 'Content-Type: application/json'),
  'no chunk': [['Transfer-Encoding: chunked'], '0\r\n\r\n'],
  'until the end of the connection': [['Connection: close'], '', true],
  'gzip of nothing at all': sized('', 'Content-Encoding: gzip'),
  'an empty gzip stream': sized(gzipSync(''), 'Content-Encoding: gzip'),
  'an empty deflate stream': sized(deflateSync(''), 'Content-Encoding: deflate'),
  'an empty brotli stream': sized(brotliCompressSync(''), 'Content-Encoding: br'),
  'an empty zstd frame': sized(zstdCompressSync(''), 'Content-Encoding: zstd'),
  'blanks': sized(' \r\n\t'),
  'a byte order mark': sized('\uFEFF')
}
const framed = (status: string, [fields, body, ends]: (typeof framings)[string]) => {
  const head = [`HTTP/1.1 ${status}`, ...fields, '', ''].join('\r\n')
  return ends ? [head, body] : [Buffer.concat([Buffer.from(head), Buffer.from(body)])]
}

for (const [name, framing] of Object.entries(framings)) {
  t.test(`case 1: no content is a success with null: ${name}`, async t => {
    const cookie = await gateway.signIn()
    for (const status of ['200 OK', '201 Created', '202 Accepted', '204 None', '205 Reset']) {
      rawAnswer = framed(status, framing)
      const told = Number(status.slice(0, 3))
      const code = told < 204 ? told : 200
      for (const method of ['GET', 'POST']) {
        const shaped = await gateway.call('/api/none', { method })
        const expected = { status: code, json: { success: true, data: null } }
        t.match(shaped, expected, `${method} ${status}`)
        t.match(shaped.headers.get('content-type'), /^application\/json/)
      }
      t.match(await gateway.call('/api/bare'), { status: code, text: 'null' })
      t.match(await gateway.call('/api/none', { method: 'HEAD' }), { status: code, text: '' })
      t.equal(await gateway.status('/api/untouched'), told, 'not shaped')
      const merged = await gateway.call('/api/merged')
      t.same([merged.status, merged.json], [200, { id: 1, extra: null }], 'a part')
      const around = await gateway.call('/api/around')
      t.same([around.status, around.json], [code, { extra: { id: 1 } }], 'with a part')
      const profile = await gateway.call('/api/account/profile', { cookie })
      t.match(profile, { status: code, text: /"username":"alice"/ }, 'the profile')
    }
  })
}

t.test('case 1: what is no JSON is 502 still', async t => {
  for (const body of ['x', ' <p>', '\uFEFFx']) {
    rawAnswer = framed('200 OK', sized(body))
    t.match(await gateway.call('/api/none'), { status: 502, text: /shape.not-json/ })
  }
})

import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { rawUpstream, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

type Answer = NonNullable<Parameters<typeof testUpstream>[1]>
type Bytes = Buffer | string

const shapes = {
  list: [
    { unwrap: 'items' },
    { each: [{ rename: { subject: 'title' } }, { pick: ['id', 'title'] }] },
    { wrap: 'list' }
  ]
}
const items = (count: number) =>
  JSON.stringify({
    items: Array.from({ length: count }, (_, id) => ({
      id,
      subject: `Büro ${id}`,
      secret: 'do-not-log'
    }))
  })
const shapedItems = (count: number) =>
  Array.from({ length: count }, (_, id) => ({ id, title: `Büro ${id}` }))

/** One public route with a shape, one that passes what is too large, one without a shape, one for who is signed in. */
async function setUp(
  cleanUp: (undo: () => unknown) => void,
  answer: Answer,
  { route = {}, gateway = {} }: { route?: object; gateway?: Record<string, unknown> } = {}
) {
  const backend = await testUpstream(cleanUp, answer)
  return Object.assign(await gatewayTo(cleanUp, backend.url, route, gateway), { backend })
}

/** The same, with another answer each time. */
async function setUpChanging(cleanUp: (undo: () => unknown) => void) {
  let now: Answer = sends('')
  const gateway = await setUp(cleanUp, (incoming, response, seen) => now(incoming, response, seen))
  return Object.assign(gateway, {
    answers: (answer: Answer) => {
      now = answer
    }
  })
}

const gatewayTo = (
  cleanUp: (undo: () => unknown) => void,
  url: string,
  route: object = {},
  gateway: Record<string, unknown> = {}
) =>
  testGateway(cleanUp, {
    gateway,
    limits: {
      limits: { generous: { by: 'address', max: 100_000, window: '1m' } },
      sizes: { shape: '2MiB' }
    },
    routes: {
      upstreams: { b: { url } },
      routes: {
        shaped: {
          path: '/api/shaped',
          methods: ['GET', 'POST'],
          access: 'public',
          upstream: 'b',
          shape: 'list',
          ...route
        },
        plain: { path: '/api/plain', access: 'public', upstream: 'b' },
        own: { path: '/api/own', upstream: 'b', shape: 'list' }
      },
      shapes
    }
  })

const sends =
  (body: Bytes, fields: Record<string, string> = {}, status = 200): Answer =>
  (_request, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...fields }).end(body)
  }
/** As they come: fetch would undo the coding. */
const bytesOf = async (url: string) => {
  const [answer] = (await once(get(url), 'response')) as [IncomingMessage]
  return { headers: answer.headers, bytes: await buffer(answer) }
}
const quick = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }
const codings: Record<string, (bytes: Bytes) => Buffer> = {
  'gzip': gzipSync,
  'x-gzip': gzipSync,
  'deflate': deflateSync,
  'br': bytes => brotliCompressSync(bytes, quick),
  'zstd': zstdCompressSync
}

t.test(
  'an upstream that compresses although it was asked not to is shaped all the same',
  async t => {
    const gateway = await setUpChanging(t.after)
    for (const count of [1, 3000]) {
      for (const [coding, encode] of Object.entries(codings)) {
        gateway.answers(
          sends(encode(items(count)), {
            'content-encoding': coding,
            'vary': 'Accept-Encoding, Accept-Language'
          })
        )
        const answer = await gateway.call('/api/shaped', { headers: { 'accept-encoding': 'gzip' } })
        t.same(
          [answer.status, answer.json.total, answer.json.data[count - 1]],
          [200, count, shapedItems(count)[count - 1]],
          coding
        )
        t.equal(gateway.backend.seen.at(-1)?.headers['accept-encoding'], 'identity')
        t.equal(answer.headers.get('content-encoding'), null)
        t.equal(answer.headers.get('vary'), 'Accept-Language', 'it was asked for in one coding')
        t.equal(answer.headers.get('content-length'), String(Buffer.byteLength(answer.text)))
      }
    }
  }
)

t.test('without a shape every byte passes as it is, with its coding', async t => {
  const gateway = await setUpChanging(t.after)
  for (const [coding, encode] of Object.entries(codings)) {
    const bytes = encode(items(3000))
    gateway.answers(sends(bytes, { 'content-encoding': coding, 'etag': '"1"' }))
    const answer = await bytesOf(`${gateway.url}/api/plain`)
    t.ok(answer.bytes.equals(bytes), coding)
    t.match(answer.headers, { 'content-encoding': coding, 'etag': '"1"' })
  }
})

t.test('a body in single bytes is shaped as one', async t => {
  const text = items(40)
  const backend = await rawUpstream(t.after, socket => {
    socket.write(
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${[...Buffer.from(text)].map(byte => `1\r\n${String.fromCharCode(byte)}\r\n`).join('')}0\r\n\r\n`,
      'latin1'
    )
  })
  const gateway = await gatewayTo(t.after, backend.url)
  t.same((await gateway.call('/api/shaped')).json.data, shapedItems(40))
})

t.test('a shaped body that is cut is 502, however it was framed', async t => {
  const whole = gzipSync(items(200))
  for (const [title, head] of [
    ['length', `Content-Length: ${whole.length}`],
    ['chunks', 'Transfer-Encoding: chunked'],
    ['the end of the connection', 'Connection: close']
  ] as const) {
    const half = whole.subarray(0, whole.length / 2)
    const backend = await rawUpstream(t.after, socket => {
      socket.write(
        `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n${head}\r\n\r\n${title === 'chunks' ? `${half.length.toString(16)}\r\n` : ''}`
      )
      socket.end(half)
    })
    const gateway = await gatewayTo(t.after, backend.url)
    t.match(
      await gateway.call('/api/shaped'),
      {
        status: 502,
        json: {
          success: false,
          errorCode: title === 'the end of the connection' ? 'shape.not-json' : 'upstream.reset'
        }
      },
      title
    )
  }
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
  const gateway = await setUpChanging(t.after)
  for (const [coding, bomb] of Object.entries(bombs)) {
    gateway.answers(sends(bomb, { 'content-encoding': coding }))
    await gateway.call('/api/shaped')
    const before = process.resourceUsage().maxRSS
    const answers = await Promise.all(Array.from({ length: 20 }, () => gateway.call('/api/shaped')))
    for (const answer of answers) {
      t.match(answer, { status: 502, json: { errorCode: 'shape.too-large' } }, coding)
    }
    t.ok(
      process.resourceUsage().maxRSS - before < 300 * 1024,
      `${coding}: ${Math.round((process.resourceUsage().maxRSS - before) / 1024)} MiB more at the peak`
    )
  }
})

t.test('a body beyond the bound is 502, and the back-end is not read to its end', async t => {
  const gateway = await setUp(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    const more = (): void => {
      while (!response.destroyed && response.write('[1,2,3],'.repeat(5000)));
      response.once('drain', more)
    }
    more()
  })
  t.match(await gateway.call('/api/shaped'), {
    status: 502,
    json: { errorCode: 'shape.too-large' }
  })
  await gateway.backend.aborted()
  t.pass('it was let go')
  const told = await setUp(t.after, (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json', 'content-length': String(2 ** 40) })
      .write('[')
  })
  t.match(await told.call('/api/shaped'), { status: 502, json: { errorCode: 'shape.too-large' } })
  await told.backend.aborted()
})

t.test(
  'a body is shaped in chunks and of known length, without the headers of its bytes',
  async t => {
    const gateway = await setUpChanging(t.after)
    for (const [title, fields, encode] of [
      ['plain', {}, Buffer.from],
      ['gzip', { 'content-encoding': 'gzip' }, gzipSync]
    ] as const) {
      const bytes = encode(items(10))
      for (const chunked of [true, false]) {
        gateway.answers((_request, response) => {
          response.writeHead(200, {
            'content-type': 'application/json',
            'etag': '"raw"',
            'accept-ranges': 'bytes',
            ...fields,
            ...(!chunked && { 'content-length': bytes.length })
          })
          response.write(bytes.subarray(0, 10))
          response.end(bytes.subarray(10))
        })
        const answer = await bytesOf(`${gateway.url}/api/shaped`)
        t.same((JSON.parse(String(answer.bytes)) as { data: unknown }).data, shapedItems(10), title)
        const { headers } = answer
        for (const name of ['content-encoding', 'accept-ranges']) t.equal(headers[name], undefined)
        t.not(headers['etag'], '"raw"')
      }
    }
  }
)

t.test('what is no JSON is 502, and the log says how but holds nothing of it', async t => {
  const cases: Array<[Answer, RegExp]> = [
    [sends('<h1>do-not-log</h1>', { 'content-type': 'text/html' }), /begins as HTML .*text\/html/],
    [sends('{"do-not-log": nothing}'), /unexpected token 'o'/],
    [sends(gzipSync('{"a":1}').subarray(0, 12), { 'content-encoding': 'gzip' }), /gzip breaks off/],
    [
      sends(brotliCompressSync(gzipSync('{"items":[]}')), { 'content-encoding': 'gzip, br' }),
      /content coding "gzip, br" is not known/
    ],
    [sends('data: do-not-log\n\n', { 'content-type': 'text/event-stream' }), /stream of events/],
    [sends(`{"items":[{"id":${'['.repeat(40_000)}${']'.repeat(40_000)}}]}`), /nested too deeply/]
  ]
  const gateway = await setUpChanging(t.after)
  for (const [answer, reason] of cases) {
    gateway.answers(answer)
    const { status, json, text } = await gateway.call('/api/shaped')
    t.match(
      { status, json },
      { status: 502, json: { success: false, errorCode: 'shape.not-json', requestId: String } },
      String(reason)
    )
    t.notMatch(text, 'do-not-log')
    const line = await gateway.logged(
      ({ code, route, reason: told }) =>
        code === 'shape.not-json' && route === 'shaped' && reason.test(String(told))
    )
    t.equal(line['level'], 'warn')
    t.notMatch(JSON.stringify(gateway.log), 'do-not-log')
  }
})

t.test('an error’s message is found in whatever coding and charset it comes', async t => {
  const gateway = await setUp(
    t.after,
    sends(
      gzipSync(Buffer.from('{"msg":"Schließen Sie erst den Auftrag ab."}', 'latin1')),
      {
        'content-encoding': 'gzip',
        'content-type': 'application/json; charset=iso-8859-1',
        'content-digest': 'x'
      },
      409
    )
  )
  const answer = await gateway.call('/api/shaped')
  t.match(answer, {
    status: 409,
    json: { errorCode: 'upstream.error', message: 'Schließen Sie erst den Auftrag ab.' }
  })
  t.same(
    [answer.headers.get('content-encoding'), answer.headers.get('content-digest')],
    [null, null]
  )
})

t.test('ids of more digits than JavaScript holds arrive as they were sent', async t => {
  const gateway = await setUp(
    t.after,
    sends('{"items":[{"id":12345678901234567890,"subject":0.1},{"id":9007199254740993}]}')
  )
  t.match(
    (await gateway.call('/api/shaped')).text,
    '"data":[{"id":12345678901234567890,"title":0.1},{"id":9007199254740993}]'
  )
})

t.test('HEAD, 204 and 205 have no body and no false fields', async t => {
  const gateway = await setUp(t.after, (incoming, response) => {
    const status = Number(incoming.headers['x-status'])
    response
      .writeHead(status, {
        'content-type': 'text/html',
        'etag': '"1"',
        'content-encoding': 'gzip',
        'accept-ranges': 'bytes',
        ...(status === 200 && { 'content-length': '9' })
      })
      .end()
  })
  const head = await gateway.call('/api/shaped', { method: 'HEAD', headers: { 'x-status': '200' } })
  t.match(head, { status: 200, text: '' })
  t.same(
    ['content-type', 'content-length', 'content-encoding', 'etag', 'accept-ranges'].map(name =>
      head.headers.get(name)
    ),
    ['application/json; charset=utf-8', null, null, null, null]
  )
  for (const status of ['204', '205']) {
    for (const path of ['/api/shaped', '/api/plain']) {
      const answer = await raw(
        gateway.url,
        request(`GET ${path}`, ['Connection: close', `X-Status: ${status}`]),
        { enough: () => false }
      )
      t.match(answer, { status: Number(status), body: '' }, `${status} ${path}`)
      t.ok(answer.closed)
    }
  }
  t.match(await gateway.call('/api/shaped', { method: 'HEAD', headers: { 'x-status': '503' } }), {
    status: 503,
    text: ''
  })
})

t.test('a redirect on a shaped route stays one', async t => {
  const gateway = await setUp(t.after, (_request, response) => {
    response
      .writeHead(302, {
        'location': '/api/shaped',
        'content-type': 'text/html',
        'content-length': '5'
      })
      .end('Moved')
  })
  const answer = await gateway.call('/api/shaped')
  t.same(
    [
      answer.status,
      answer.headers.get('location'),
      answer.text,
      answer.headers.get('content-type'),
      answer.headers.get('content-length')
    ],
    [302, '/api/shaped', '', null, '0']
  )
})

t.test(
  'where an answer may be kept it has a tag of its shaped body, and who has that gets 304',
  async t => {
    let body = items(3)
    const gateway = await setUp(t.after, (incoming, response) => {
      sends(body, {
        'cache-control': 'max-age=60',
        'etag': '"raw"',
        'last-modified': 'Sat, 21 Nov 2026 08:30:00 GMT'
      })(incoming, response, {} as never)
    })
    const first = await gateway.call('/api/shaped')
    const tag = first.headers.get('etag') ?? ''
    t.match(tag, /^"[\w-]{27}"$/)
    t.equal(first.headers.get('last-modified'), null)
    for (const condition of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const again = await gateway.call('/api/shaped', {
        headers: {
          'if-none-match': condition,
          'if-modified-since': 'Sat, 21 Nov 2026 08:30:00 GMT'
        }
      })
      t.same(
        [again.status, again.text, again.headers.get('etag'), again.headers.get('cache-control')],
        [304, '', tag, 'max-age=60'],
        condition
      )
    }
    t.same(
      [
        gateway.backend.seen.at(-1)?.headers['if-none-match'],
        gateway.backend.seen.at(-1)?.headers['if-modified-since']
      ],
      [undefined, undefined]
    )
    t.equal(
      (await gateway.call('/api/shaped', { headers: { 'if-none-match': '"raw"' } })).status,
      200,
      'the back-end’s own tag is of another body'
    )
    body = items(4)
    t.match(await gateway.call('/api/shaped', { headers: { 'if-none-match': tag } }), {
      status: 200,
      json: { total: 4 }
    })
  }
)

t.test(
  'personal data is not to be kept and has no tag, nor has what the back-end calls no-store',
  async t => {
    const gateway = await setUp(
      t.after,
      sends(items(1), { 'cache-control': 'public, max-age=60', 'etag': '"raw"' })
    )
    const own = await gateway.call('/api/own', {
      cookie: await gateway.signIn(),
      headers: { 'if-none-match': '*' }
    })
    t.same(
      [own.status, own.headers.get('cache-control'), own.headers.get('etag')],
      [200, 'no-store', null]
    )
    const never = await setUp(
      t.after,
      sends(items(1), { 'cache-control': 'no-store', 'etag': '"raw"' })
    )
    t.equal((await never.call('/api/shaped')).headers.get('etag'), null)
  }
)

t.test('a condition on a change goes on to the back-end', async t => {
  const gateway = await setUp(t.after, sends(items(1)))
  await gateway.call('/api/shaped', {
    method: 'POST',
    body: '{}',
    headers: { 'if-match': '"3"', 'if-none-match': '*' }
  })
  t.match(gateway.backend.seen[0]?.headers, { 'if-match': '"3"', 'if-none-match': '*' })
})

t.test('a part of an answer is never shaped as if it were all', async t => {
  const text = items(2)
  const gateway = await setUp(t.after, (incoming, response) => {
    if (incoming.headers.range !== undefined) {
      return sends(text.slice(0, 5), { 'content-range': `bytes 0-4/${text.length}` }, 206)(
        incoming,
        response,
        {} as never
      )
    }
    sends(text, { 'accept-ranges': 'bytes' })(incoming, response, {} as never)
  })
  const answer = await gateway.call('/api/shaped', {
    headers: { 'range': 'bytes=0-4', 'if-range': '"x"' }
  })
  t.same([answer.status, answer.json.total, answer.headers.get('accept-ranges')], [200, 2, null])
  const part = await gateway.call('/api/plain', { headers: { range: 'bytes=0-4' } })
  t.same(
    [part.status, part.text, part.headers.get('content-range')],
    [206, text.slice(0, 5), `bytes 0-4/${text.length}`],
    'without a shape a part is a part'
  )
  const stubborn = await setUp(
    t.after,
    sends('{"items":[]}', { 'content-range': 'bytes 0-11/99' }, 206)
  )
  t.match(await stubborn.call('/api/shaped'), {
    status: 502,
    json: { errorCode: 'upstream.invalid' }
  })
  const senseless = await setUp(t.after, sends('', {}, 304))
  t.match(await senseless.call('/api/shaped'), {
    status: 502,
    json: { errorCode: 'upstream.invalid' }
  })
})

t.test('a client that leaves while an answer is collected ends it at the back-end', async t => {
  const gateway = await setUp(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"items":[')
  })
  const abort = new AbortController()
  const call = fetch(`${gateway.url}/api/shaped`, { signal: abort.signal }).catch(() => 'left')
  await until('the request arrived', () => gateway.backend.seen.length > 0)
  abort.abort()
  await gateway.backend.aborted()
  t.equal(await call, 'left')
})

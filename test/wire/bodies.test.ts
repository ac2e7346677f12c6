/** Request bodies: bounded, never cut, never changed, and without power over the gateway. */
import t from 'tap'
import { createHash, randomBytes } from 'node:crypto'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { cookieOf, password } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { isEnvelope, loginPath, open, openWire, serves } from '../support/wire.ts'
import { until } from '../support/until.ts'

const wire = await openWire(t.after, {
  limits: {
    sizes: { body: '1MiB' },
    limits: { generous: { by: 'user', max: 100_000, window: '1m' } }
  }
})
const { gateway, backend, cookie, signedIn } = wire

const signIn = (body: string | Uint8Array, fields: Record<string, string> = {}) =>
  gateway.call(loginPath, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...fields }
  })
const right = JSON.stringify({ username: 'alice', password })

t.test('JSON that aims at prototypes is refused, and later requests are clean', async t => {
  for (const body of [
    `{"username":"alice","password":"${password}","__proto__":{"roles":["admin"]}}`,
    `{"username":"alice","password":"${password}","\\u005f\\u005fproto\\u005f\\u005f":{"x":1}}`,
    `{"username":"bob","password":"${password}","constructor":{"prototype":{"polluted":true}}}`,
    `{"__proto__":{"username":"alice","password":"${password}"}}`,
    `{"extra":{"__proto__":{"polluted":true}},"username":"bob","password":"${password}"}`
  ]) {
    const answer = await signIn(body)
    t.equal(answer.status, 400, body.slice(0, 60))
    isEnvelope(t, answer.text)
    t.same(answer.headers.getSetCookie(), [])
  }
  const own = JSON.parse('{"a":{}}') as { a: Record<string, unknown> }
  t.same([own.a['polluted'], own.a['roles'], own.a['x']], [undefined, undefined, undefined])
  t.match(
    (
      await gateway.call('/api/account/profile', {
        cookie: cookieOf(await signIn(JSON.stringify({ username: 'bob', password })))
      })
    ).json,
    { data: { username: 'bob', access: 'user' } }
  )
})

t.test('deeply nested JSON is refused', async t => {
  for (const body of [
    '['.repeat(2000),
    `${'['.repeat(2000)}${']'.repeat(2000)}`,
    '{"a":'.repeat(800),
    `{"username":${'{"a":'.repeat(500)}1${'}'.repeat(500)},"password":"x"}`
  ]) {
    const answer = await signIn(body)
    t.equal(answer.status, 400)
    isEnvelope(t, answer.text)
  }
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
  t.equal((await signIn(deep)).status, 413, 'a bomb is too large for sign-in')
  t.equal(
    (
      await gateway.call('/api/things/1', {
        method: 'POST',
        cookie,
        body: deep,
        headers: { 'content-type': 'application/json' }
      })
    ).status,
    200,
    'for the back-end it is only bytes'
  )
  await serves(t, wire)
})

t.test('a body that says it is too large is refused before it comes', async t => {
  const before = backend.begun()
  for (const [path, length] of [
    [loginPath, 5000],
    ['/api/things/1', 2 ** 20 + 1],
    ['/api/open/1', 2 ** 30],
    ['/api/things/1', Number.MAX_SAFE_INTEGER],
    ['/api/account/logout', 2 ** 40],
    ['/api/nothing', 2 ** 40]
  ] as const) {
    const answer = await raw(
      gateway.url,
      request(`POST ${path}`, [
        signedIn,
        'Content-Type: application/json',
        `Content-Length: ${length}`
      ]),
      { enough: () => false }
    )
    t.equal(answer.status, 413, `${path} ${length}`)
    t.ok(answer.closed)
    isEnvelope(t, answer.body)
  }
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test(
  'a chunked body that grows too large is cut off, and the back-end never sees a whole one',
  async t => {
    const whole = backend.seen.length
    for (const [path, chunks] of [
      [loginPath, 10],
      ['/api/things/1', 40],
      ['/api/open/1', 40]
    ] as const) {
      const line = await open(t.after, gateway.url)
      line.socket.write(
        request(`POST ${path}`, [
          signedIn,
          'Content-Type: application/json',
          'Transfer-Encoding: chunked'
        ])
      )
      for (let chunk = 0; chunk < chunks && !line.isClosed(); chunk++) {
        line.socket.write(
          `${(path === loginPath ? 1000 : 65_536).toString(16)}\r\n${'x'.repeat(path === loginPath ? 1000 : 65_536)}\r\n`
        )
        await new Promise(resolve => setImmediate(resolve))
      }
      await line.closed
      // A client that is still writing may lose the answer to the reset; what it never gets is success.
      t.match(line.received(), /^$|^HTTP\/1\.1 413 /, path)
    }
    t.equal(backend.seen.length, whole)
    await serves(t, wire)
  }
)

t.test(
  'a chunked body just beyond the limit gets its 413, one just within arrives whole',
  async t => {
    const send = (size: number) =>
      gateway.call('/api/things/1', {
        method: 'POST',
        cookie,
        headers: { 'content-type': 'application/octet-stream' },
        body: new Uint8Array(size)
      })
    t.equal((await send(2 ** 20)).status, 200)
    t.equal(backend.seen.at(-1)?.body.length, 2 ** 20)
    const whole = backend.seen.length
    const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
    const beyond = await raw(
      gateway.url,
      request(
        'POST /api/things/1',
        [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'],
        `${chunk.repeat(16)}1\r\nx\r\n0\r\n\r\n`
      )
    )
    t.equal(beyond.status, 413)
    isEnvelope(t, beyond.body)
    t.equal(backend.seen.length, whole)
    const within = await raw(
      gateway.url,
      request(
        'POST /api/things/1',
        [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'],
        `${chunk.repeat(16)}0\r\n\r\n`
      )
    )
    t.equal(within.status, 200)
    t.equal(backend.seen.at(-1)?.body.length, 2 ** 20)
  }
)

t.test('no content type makes another sign-in of the same bytes', async t => {
  const types = [
    'application/json',
    'application/json; charset=utf-8',
    'APPLICATION/JSON',
    'application/json;',
    'application/json\t; x=y',
    ' application/json',
    'application/json x',
    'application/jsonx',
    'application/json, text/plain',
    'application/ json',
    'text/json',
    'text/plain',
    'text/plain; application/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/vnd.api+json',
    '*/*',
    'json',
    '/',
    ';',
    'application',
    'application/json; charset=utf-7',
    'application/json; charset=utf-16',
    '\xe4'
  ]
  const form = `username=alice&password=${password}`
  for (const type of types) {
    for (const body of [right, '{"username":["alice"],"password":"x"}', 'null', '{', form]) {
      const answer = await raw(
        gateway.url,
        Buffer.from(
          request(
            `POST ${loginPath}`,
            [`Content-Type: ${type}`, `Content-Length: ${body.length}`],
            body
          ),
          'latin1'
        )
      )
      t.ok([200, 400, 415].includes(answer.status), `${type}: ${answer.status}`)
      const own = type === 'application/x-www-form-urlencoded' ? form : right
      if (answer.status === 200) t.equal(body, own, type)
      else isEnvelope(t, answer.body)
      if (body !== own) t.notMatch(answer.head, /set-cookie: console_sid/i)
    }
  }
  const none = await raw(
    gateway.url,
    request(`POST ${loginPath}`, [`Content-Length: ${right.length}`], right)
  )
  t.ok([400, 415].includes(none.status), 'without a type')
  const twice = await raw(
    gateway.url,
    request(
      `POST ${loginPath}`,
      [
        'Content-Type: text/plain',
        'Content-Type: application/json',
        `Content-Length: ${right.length}`
      ],
      right
    )
  )
  t.ok([400, 415].includes(twice.status), 'with two types')
})

t.test('encodings of text are not guessed at sign-in', async t => {
  for (const body of [
    Buffer.from(right, 'utf16le'),
    Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(right, 'utf16le')]),
    Buffer.from('{"username":"ali\xff","password":"\xc3\x28"}', 'latin1'),
    Buffer.alloc(100),
    randomBytes(200)
  ]) {
    const answer = await signIn(body)
    t.ok([400, 401].includes(answer.status), `${answer.status}`)
    t.same(answer.headers.getSetCookie(), [])
    isEnvelope(t, answer.text)
  }
})

t.test(
  'a compressed sign-in is refused, a compressed body for a back-end is only bytes',
  async t => {
    const bomb = gzipSync(Buffer.alloc(3_000_000, '{'))
    for (const [body, encoding] of [
      [gzipSync(right), 'gzip'],
      [brotliCompressSync(right), 'br'],
      [bomb, 'gzip'],
      [gzipSync(right), 'x-unknown']
    ] as const) {
      const answer = await signIn(body, { 'content-encoding': encoding })
      t.ok([400, 415].includes(answer.status), `${encoding}: ${answer.status}`)
      isEnvelope(t, answer.text)
      t.same(answer.headers.getSetCookie(), [])
    }
    await gateway.call('/api/things/1', {
      method: 'POST',
      cookie,
      body: bomb,
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }
    })
    t.equal(backend.seen.at(-1)?.body.compare(bomb), 0)
    t.equal(backend.seen.at(-1)?.headers['content-encoding'], 'gzip')
  }
)

t.test('of a body that was cut short the back-end never gets a whole request', async t => {
  const whole = backend.seen.length
  for (const [fields, part] of [
    [['Content-Length: 100'], 'x'.repeat(60)],
    [['Content-Length: 200000'], 'x'.repeat(150_000)],
    [['Transfer-Encoding: chunked'], '5\r\nhello\r\n'],
    [['Transfer-Encoding: chunked'], '5\r\nhel'],
    [['Transfer-Encoding: chunked'], '5\r\nhello\r\n0\r\n']
  ] as const) {
    for (const reset of [false, true]) {
      const line = await open(t.after, gateway.url)
      line.socket.write(
        request('POST /api/things/cut', [signedIn, 'Content-Type: text/plain', ...fields], part)
      )
      await until(
        'the head was sent',
        () => line.socket.bytesWritten > 0 && line.socket.writableLength === 0
      )
      if (reset) line.socket.resetAndDestroy()
      else line.socket.end()
      await line.closed
    }
  }
  await serves(t, wire)
  t.equal(backend.seen.length, whole + 1)
})

t.test('bytes arrive as they were sent', async t => {
  for (const size of [0, 1, 255, 65_535, 65_536, 65_537, 300_000, 1_000_000]) {
    const body = randomBytes(size)
    const answer = await gateway.call('/api/things/bytes', {
      method: 'PUT',
      cookie,
      body,
      headers: { 'content-type': 'application/octet-stream' }
    })
    t.equal(answer.status, 200, `${size}`)
    const { body: arrived, headers } = backend.seen.at(-1) ?? {}
    t.equal(
      createHash('sha256')
        .update(arrived ?? '')
        .digest('hex'),
      createHash('sha256').update(body).digest('hex'),
      `${size} bytes`
    )
    if (size > 0) t.equal(headers?.['content-length'], String(size))
  }
})

t.test('JSON arrives byte for byte, with all that a parser would change', async t => {
  for (const body of [
    '{"n":12345678901234567890,"n":1e400,"m":-0,"f":1.0}',
    '{"z":1,"a":2,"1":3}',
    '{ "s" : "\\u00e4\\/\\ud83d" }\r\n',
    '{"__proto__":{"x":1}}',
    '[1,]',
    'not json',
    '\ufeff{}',
    ' ',
    '"\\u0000"',
    '{"a":1}{"b":2}'
  ]) {
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'text/plain',
      'application/x-www-form-urlencoded'
    ]) {
      const answer = await gateway.call('/api/things/json', {
        method: 'POST',
        cookie,
        body,
        headers: { 'content-type': type }
      })
      t.equal(answer.status, 200, body)
      t.equal(backend.seen.at(-1)?.body.toString(), body)
      t.equal(backend.seen.at(-1)?.headers['content-type'], type)
    }
  }
})

t.test('no content type keeps a body from the back-end or breaks the gateway', async t => {
  for (const type of [
    'multipart/form-data; boundary=x',
    'application/x-ndjson',
    'image/png',
    'foo/bar; q="a\\"b"',
    '',
    'nonsense',
    '/',
    'a/b/c',
    'application/json; charset=\xff',
    '*'
  ]) {
    const answer = await raw(
      gateway.url,
      Buffer.from(
        request(
          'POST /api/things/type',
          [signedIn, `Content-Type: ${type}`, 'Content-Length: 4'],
          'body'
        ),
        'latin1'
      )
    )
    t.ok(
      answer.status === 200 || answer.status === 400 || answer.status === 415,
      `${type}: ${answer.status}`
    )
    if (answer.status === 200) t.equal(backend.seen.at(-1)?.body.toString(), 'body')
    else isEnvelope(t, answer.body)
  }
  const untyped = await raw(
    gateway.url,
    request('POST /api/things/type', [signedIn, 'Content-Length: 4'], 'body')
  )
  t.equal(untyped.status, 200, 'without a type')
  t.equal(backend.seen.at(-1)?.body.toString(), 'body')
})

t.test(
  'clients who leave within their bodies keep neither a place of their user nor a connection of the back-end',
  async t => {
    // One user may have 48 requests at once.
    for (let round = 0; round < 3; round++) {
      const lines = await Promise.all(Array.from({ length: 40 }, () => open(t.after, gateway.url)))
      for (const line of lines) {
        line.socket.write(
          request(
            'POST /api/things/held',
            [signedIn, 'Content-Type: text/plain', 'Content-Length: 60000'],
            'x'.repeat(30_000)
          )
        )
      }
      await Promise.all(
        lines.map(line => new Promise<void>(resolve => line.socket.write('x', () => resolve())))
      )
      await serves(t, wire)
      const begun = backend.begun()
      for (const line of lines) line.socket.resetAndDestroy()
      await Promise.all(lines.map(line => line.closed))
      await serves(t, wire)
      t.equal(backend.begun(), begun + 1)
    }
  }
)

t.end()

/** Request bodies: bounded, never cut, never changed, and without power over the gateway. */
import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { cookieOf, password, testGateway } from '../support/gateway.ts'
import { open, raw, request } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'
import { isEnvelope, loginPath, openWire, serves, wireRoutes } from '../support/wire.ts'

const wire = await openWire(t.teardown)
const { gateway, backend, cookie, signedIn } = wire

const untilClosed = { enough: () => false }
const inChunks = [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked']
const chunk = (size: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`
const right = JSON.stringify({ username: 'alice', password })
const headersOf = (headers: object) => ({ 'content-type': 'application/json', ...headers })
const signIn = (body: string | Uint8Array, headers: object = {}) =>
  gateway.call(loginPath, { method: 'POST', body, headers: headersOf(headers) })
const send = (path: string, body: string | Uint8Array, headers: object = {}) =>
  gateway.call(path, { method: 'POST', cookie, body, headers: headersOf(headers) })

t.test('nothing but a small JSON object signs anybody in', async t => {
  const deep = `${'{"a":'.repeat(500)}1${'}'.repeat(500)}`
  const more = (member: string) => right.replace('}', `,${member}}`)
  type Case = readonly [title: string, body: string | Uint8Array, status: number, coding?: string]
  const cases: readonly Case[] = [
    ['__proto__', more('"__proto__":{"roles":["admin"]}'), 400],
    ['in escapes', more('"\\u005f_proto_\\u005f":{"x":1}'), 400],
    ['a prototype', more('"constructor":{"prototype":{"polluted":1}}'), 400],
    ['deeper', more('"extra":{"__proto__":{"polluted":1}}'), 400],
    ['lists without end', '['.repeat(2000), 400],
    ['a deep name', `{"username":${deep},"password":"x"}`, 400],
    ['a bomb of lists', '['.repeat(100_000) + ']'.repeat(100_000), 413],
    ['UTF-16', Buffer.from(`\ufeff${right}`, 'utf16le'), 400],
    ['no UTF-8', Buffer.from('{"username":"ali\xff","password":"\xc3\x28"}', 'latin1'), 401],
    ['noise', randomBytes(200), 400],
    ['gzip', gzipSync(right), 400, 'gzip'],
    ['a bomb', gzipSync(Buffer.alloc(3_000_000, '{')), 400, 'gzip'],
    ['an unknown coding', right, 415, 'x-unknown']
  ]
  for (const [title, body, status, coding] of cases) {
    const answer = await signIn(body, coding === undefined ? {} : { 'content-encoding': coding })
    t.equal(answer.status, status, title)
    isEnvelope(t, answer.text, title)
    t.same(answer.headers.getSetCookie(), [], title)
  }
  const own = {} as Record<string, unknown>
  t.same([own['polluted'], own['roles'], own['x']], [undefined, undefined, undefined])
  const bobs = cookieOf(await signIn(right.replace('alice', 'bob')))
  const profile = await gateway.call('/api/account/profile', { cookie: bobs })
  t.match(profile.json, { data: { username: 'bob', access: 'user' } }, 'later ones are clean')
})

t.test('no content type makes another sign-in of the same bytes', async t => {
  const form = `username=alice&password=${password}`
  const typed = (types: readonly string[], body: string) => {
    const fields = types.map(type => `Content-Type: ${type}`)
    const bytes = request(`POST ${loginPath}`, [...fields, `Content-Length: ${body.length}`], body)
    return raw(gateway.url, Buffer.from(bytes, 'latin1'))
  }
  for (const type of [
    ...['application/json', 'APPLICATION/JSON; charset=utf-8', 'application/json x', 'text/json'],
    ...['text/plain; application/json', 'application/x-www-form-urlencoded', '*/*', ';', '\xe4'],
    ...['multipart/form-data; boundary=x', 'application/json; charset=utf-16', 'application']
  ]) {
    const own = type === 'application/x-www-form-urlencoded' ? form : right
    for (const body of [right, '{"username":["alice"],"password":"x"}', 'null', '{', form]) {
      const answer = await typed([type], body)
      t.ok([200, 400, 415].includes(answer.status), `${type}: ${answer.status}`)
      if (answer.status === 200) t.equal(body, own, type)
      else isEnvelope(t, answer.body)
      if (body !== own) t.notMatch(answer.head, /set-cookie: console_sid/i)
    }
  }
  for (const none of [[], ['text/plain', 'application/json']]) {
    t.match(String((await typed(none, right)).status), /^4(?:00|15)$/, `${none.length} types`)
  }
})

t.test('a body that says it is too large is refused before it comes', async t => {
  const before = backend.begun()
  for (const [path, length] of [
    [loginPath, 5000],
    ['/api/things/1', 2 ** 20 + 1],
    ['/api/open/1', 2 ** 30],
    ['/api/account/logout', 2 ** 40],
    ['/api/nothing', 2 ** 40]
  ] as const) {
    const fields = [signedIn, 'Content-Type: application/json', `Content-Length: ${length}`]
    const answer = await raw(gateway.url, request(`POST ${path}`, fields), untilClosed)
    t.match(answer, { status: 413, closed: true }, `${path} ${length}`)
    isEnvelope(t, answer.body)
  }
  t.equal(backend.begun(), before)
  await serves(t, wire)
})

t.test('one that grows too large in chunks is cut off; one just within arrives', async t => {
  const whole = backend.seen.length
  for (const [path, size] of [
    [loginPath, 1000],
    ['/api/things/1', 65_536],
    ['/api/open/1', 65_536]
  ] as const) {
    const line = await open(t.after, gateway.url)
    const fields = [signedIn, 'Content-Type: application/json', 'Transfer-Encoding: chunked']
    line.socket.write(request(`POST ${path}`, fields))
    for (let sent = 0; sent < 40 && !line.isClosed(); sent++) {
      line.socket.write(chunk(size))
      await new Promise(resolve => setImmediate(resolve))
    }
    await line.closed
    // A client that is still writing may lose the answer to the reset; what it never gets is success.
    t.match(line.received(), /^$|^HTTP\/1\.1 413 /, path)
  }
  const mebibyte = (more: string) =>
    raw(gateway.url, request('POST /api/things/1', inChunks, chunk(65_536).repeat(16) + more))
  const beyond = await mebibyte(`${chunk(1)}0\r\n\r\n`)
  t.equal(beyond.status, 413)
  isEnvelope(t, beyond.body)
  t.equal(backend.seen.length, whole, 'the back-end never sees a whole one')
  t.equal((await mebibyte('0\r\n\r\n')).status, 200)
  t.equal((await send('/api/things/1', new Uint8Array(2 ** 20))).status, 200)
  const lengths = backend.seen.slice(whole).map(({ body }) => body.length)
  t.same(lengths, [2 ** 20, 2 ** 20])
})

t.test('of a body that was cut short the back-end never gets a whole request', async t => {
  const begun = backend.begun()
  const whole = backend.seen.length
  for (const [framing, part] of [
    ['Content-Length: 200000', 'x'.repeat(150_000)],
    ['Transfer-Encoding: chunked', '5\r\nhello\r\n'],
    ['Transfer-Encoding: chunked', '5\r\nhello\r\n0\r\n'],
    ['Transfer-Encoding: chunked', `${chunk(150_000)}5\r\nhelloX`]
  ] as const) {
    for (const reset of [false, true]) {
      const { socket, closed, received } = await open(t.after, gateway.url)
      const fields = [signedIn, 'Content-Type: text/plain', framing]
      await new Promise(resolve => {
        socket.write(request('POST /api/things/cut', fields, part), resolve)
      })
      if (reset) socket.resetAndDestroy()
      else socket.end()
      await closed
      t.notMatch(received(), /^HTTP\/1\.1 2/, part.slice(-10))
    }
  }
  await serves(t, wire)
  await backend.idle()
  t.equal(backend.seen.length, whole + 1)
  t.ok(backend.begun() > begun + 1, 'although some had begun')
})

t.test('bytes arrive as they were sent, whatever a parser would change', async t => {
  const bodies = [
    ...[0, 1, 65_535, 65_536, 65_537, 1_000_000].map(size => randomBytes(size)),
    ...['['.repeat(100_000), gzipSync(Buffer.alloc(3_000_000, '{')), '{"z":1,"a":2,"1":3}', '[1,]'],
    ...['{"n":12345678901234567890,"n":1e400,"m":-0,"f":1.0}', '{"__proto__":{"x":1}}', 'not json'],
    ...['{ "s" : "\\u00e4\\/\\ud83d" }\r\n', '\ufeff{}', ' ', '{"a":1}{"b":2}']
  ].map(body => Buffer.from(body))
  for (const type of [
    ...['application/json; charset=utf-8', 'application/x-ndjson', 'foo/bar; q="a\\"b"'],
    ...['application/octet-stream', 'application/x-www-form-urlencoded'],
    'multipart/form-data; boundary=x'
  ]) {
    for (const body of bodies) {
      const headers = { 'content-type': type, 'content-encoding': 'gzip' }
      const { status } = await send('/api/things/bytes', body, headers)
      const arrived = backend.seen.at(-1)
      t.ok(status === 200 && arrived?.body.equals(body), `${body.length} bytes of ${type}`)
      const length = body.length === 0 ? {} : { 'content-length': String(body.length) }
      t.match(arrived?.headers, { ...headers, ...length })
    }
  }
  for (const [field, status] of [
    ['X-Untyped: 1', 200],
    ['Content-Type: nonsense', 415],
    ['Content-Type: application/json; charset=\xff', 200]
  ] as const) {
    const fields = [signedIn, field, 'Content-Length: 4']
    const bytes = Buffer.from(request('POST /api/things/type', fields, 'body'), 'latin1')
    t.equal((await raw(gateway.url, bytes)).status, status, field)
    if (status === 200) t.equal(backend.seen.at(-1)?.body.toString(), 'body')
  }
  const bare = request('DELETE /api/things/1', [signedIn, 'Content-Type: application/json'])
  t.equal((await raw(gateway.url, bare)).status, 200, 'a type without a body')
})

t.test('many small chunks arrive as they were sent', async t => {
  for (const count of [0, 1, 4096, 65_536, 65_537]) {
    const chunks = `${chunk(1).repeat(count)}0\r\n\r\n`
    t.equal((await raw(gateway.url, request('POST /api/open/x', inChunks, chunks))).status, 200)
    t.equal(backend.seen.at(-1)?.body.length, count)
  }
})

t.test('a body in chunks up to 64 KiB is whole before the upstream is asked', async t => {
  const begun = backend.begun()
  const line = await open(t.after, gateway.url)
  line.socket.write(request('POST /api/open/x', inChunks, chunk(60_000)))
  await gateway.call('/api/open/other')
  t.equal(backend.begun(), begun + 1, 'only the other one')
  line.socket.write(`${chunk(5536)}0\r\n\r\n`)
  t.match(await line.until(text => text.includes('\r\n\r\n')), /^HTTP\/1\.1 200 /)
  const { headers, body } = backend.seen.at(-1) ?? {}
  t.same([headers?.['content-length'], body?.length], ['65536', 65_536])
})

t.test('an upload may take longer than the first byte, and than a small body', async t => {
  const upstream = await testUpstream(t.after)
  const other = await testGateway(t.after, {
    gateway: { server: { requestTimeout: '400ms' } },
    limits: { sizes: { body: '10MiB' } },
    routes: wireRoutes(upstream.url, { responseTimeout: '400ms' })
  })
  const line = await open(t.after, other.url)
  line.socket.write(request('POST /api/open/x', inChunks, chunk(80_000)))
  // Several times what a sign-in may take, in steps that are shorter than that.
  for (let step = 0; step < 20; step++) {
    await setTimeout(100)
    line.socket.write(chunk(80_000))
  }
  line.socket.write('0\r\n\r\n')
  t.match(await line.until(text => text.includes('\r\n\r\n')), /^HTTP\/1\.1 200 /)
  t.equal(upstream.seen[0]?.body.length, 21 * 80_000)
})

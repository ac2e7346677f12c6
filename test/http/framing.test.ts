/** Message framing and methods: what could be read in two ways is refused, and its connection ends. */
import t from 'tap'
import { answers, open, raw, request } from '../support/raw.ts'
import { json, type testUpstream } from '../support/upstream.ts'
import { answersBegun, isEnvelope, loginPath, openWire, refuses, serves } from '../support/wire.ts'

const answer: Parameters<typeof testUpstream>[1] = (question, response, seen) => {
  if (seen.url === '/store/held') return
  if (seen.url !== '/store/begun') return json(200, { ok: 1 })(question, response, seen)
  const headers = { 'content-type': 'text/plain', 'content-length': 200_000 }
  response.writeHead(200, headers).write('x'.repeat(100_000))
}
const wire = await openWire(t.teardown, {}, answer)
const { gateway, backend, signedIn } = wire

const untilClosed = { enough: () => false }
const smuggled = 'GET /api/things/smuggled HTTP/1.1\r\nHost: gateway.test\r\n\r\n'
const typed = 'Content-Type: text/plain'
const post = (fields: string[], body = '', path = '/api/things/1') =>
  request(`POST ${path}`, [signedIn, typed, ...fields], body)
const get = (...fields: string[]) => request('GET /api/notices', [signedIn, ...fields])
const chunked = (chunks: string) => post(['Transfer-Encoding: chunked'], chunks)
const statusesOf = (whole: string) =>
  [...whole.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))

const [length, coding] = ['Content-Length: ', 'Transfer-Encoding: ']
const lengths = ['0, 44', '+5', '0x5', '1_0', '-1', '', '1 0', '9'.repeat(400)]
const codings = ['xchunked', 'chunked, identity', '\r\n chunked', '\x0bchunked', '"chunked"']
const ambiguous = [
  ...lengths.map(each => length + each),
  ...codings.map(each => coding + each),
  ...['identity', 'chunked'].map(other => `${coding}chunked\r\n${coding}${other}`),
  ...['Transfer-Encoding : chunked', 'Content-Length : 5'],
  ...[`${length}6\r\n${coding}chunked`, `${length}5\r\n${length}6`, `${length}5\r\n${length}5`]
]

t.test('a request whose length can be read in two ways is refused', async t => {
  // A whole chunked body, and five bytes.
  const body = `0\r\n\r\n${smuggled}`
  for (const fields of ambiguous) await refuses(t, wire, fields, post([fields], body))
  const old = post(['Transfer-Encoding: chunked'], body).replace('HTTP/1.1', 'HTTP/1.0')
  await refuses(t, wire, 'HTTP/1.0 with Transfer-Encoding', old)
  await serves(t, wire)
})

t.test('a head that is not well-formed is refused', async t => {
  const fields = [
    ...['X-A: one\rX-B: two', 'X-A: one\nX-B: two', 'X-Folded: a\r\n b', 'X-A: a\0b'],
    ...['X-NoColon', ': value', 'X A: b', 'X-\xe4: b']
  ]
  for (const bytes of [
    ...fields.map(field => get(field)),
    ...['HTTP/2.0', 'HTTP/0.9', 'http/1.1'].map(version => get().replace('HTTP/1.1', version)),
    ...['G(T', 'get', 'FETCH', ' GET'].map(method => get().replace('GET', method)),
    get('X-A: one').replaceAll('\r\n', '\n'),
    get().replace('Host', ' Host'),
    get().replace('/api/notices', '/api/notices /api/things/2'),
    'GET /api/notices\r\n\r\n',
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0',
    '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'
  ]) {
    await refuses(t, wire, JSON.stringify(bytes), Buffer.from(bytes, 'latin1'))
  }
  await serves(t, wire)
})

t.test('more header lines than allowed, or larger ones, are refused and never cut', async t => {
  const lines = (count: number) => Array.from({ length: count }, (_, index) => `X-${index}:1`)
  t.equal((await raw(gateway.url, get(...lines(98)))).status, 200)
  for (const count of [99, 2098]) {
    await refuses(t, wire, `${count} lines and two`, get(...lines(count)), 431)
  }
  await refuses(t, wire, '40 KB of fields', get(`X-Large: ${'x'.repeat(40_000)}`), 431)
  const behind = [...lines(150), length + smuggled.length]
  await refuses(t, wire, 'a length behind them', post(behind, smuggled), 431)
  await serves(t, wire)
})

t.test('a request has exactly one Host, and it is a host', async t => {
  const hosted = (host: string, version = 'HTTP/1.1') =>
    Buffer.from(`GET /api/notices ${version}\r\n${host}${signedIn}\r\n\r\n`, 'latin1')
  await refuses(t, wire, 'no Host', hosted(''), 400)
  await refuses(t, wire, 'no Host in HTTP/1.0', hosted('', 'HTTP/1.0'), 400)
  await refuses(t, wire, 'two Host lines', get('Host: evil.example'), 400)
  for (const host of [
    ...['', 'a b', '*', '[::1', '-gateway', 'g\xe4teway', '%67ateway.test'],
    `${'a'.repeat(300)}.test`,
    ...['gateway.test:port', 'gateway.test:123456', 'gateway.test/api', 'user@gateway.test'],
    ...['gateway.test, evil.example', 'http://gateway.test', 'gateway.test\\@evil']
  ]) {
    await refuses(t, wire, `Host: ${host}`, hosted(`Host: ${host}\r\n`), 400)
  }
  for (const host of ['gateway.test', 'GATEWAY.test:8080', '127.0.0.1:1', '[::1]:8080']) {
    const { status } = await raw(gateway.url, hosted(`Host: ${host}\r\n`))
    t.equal(status, 200, `Host: ${host} is served`)
  }
})

t.test('a chunked body that is not well-formed becomes no request, and no sign-in', async t => {
  for (const chunks of [
    ...['0x5', '-5', 'FFFFFFFFFFFFFFFFF', ' 5', ''].map(size => `${size}\r\nhello\r\n0\r\n\r\n`),
    `7\r\nhello\r\n0\r\n\r\n${smuggled}`,
    '5\r\nhello\n0\r\n\r\n',
    '5\nhello\r\n0\r\n\r\n',
    `5;a\nhello\r\n0\r\n\r\n${smuggled}`,
    '5;a\0b\r\nhello\r\n0\r\n\r\n',
    '5\r\nhello\r\n0\r\nBroken\r\n\r\n',
    `9c40\r\n${'x'.repeat(40_000)}\r\nzz\r\n`
  ]) {
    const title = JSON.stringify(chunks.slice(0, 40))
    await refuses(t, wire, title, chunked(chunks))
    const fields = ['Transfer-Encoding: chunked', 'Content-Type: application/json']
    const { whole } = await refuses(t, wire, title, request(`POST ${loginPath}`, fields, chunks))
    t.notMatch(whole, /set-cookie: console_sid/i)
  }
  await serves(t, wire)
})

t.test('an endless chunk extension or trailer is cut off', async t => {
  const before = backend.seen.length
  for (const [start, piece] of [
    ['1;', 'a'.repeat(5000)],
    ['1\r\nx\r\n0\r\n', `X-T: ${'t'.repeat(5000)}\r\n`]
  ] as const) {
    const line = await open(t.after, gateway.url)
    line.socket.write(chunked(start))
    let sent = 0
    for (; sent < 200 && !line.isClosed(); sent++) {
      line.socket.write(piece)
      await new Promise(resolve => setImmediate(resolve))
    }
    await line.closed
    t.ok(sent < 200, `${sent} pieces`)
    t.match(line.received(), /^$|^HTTP\/1\.1 4\d\d /)
  }
  t.equal(backend.seen.length, before)
  await serves(t, wire)
})

t.test('a body is never read as a request', async t => {
  const before = backend.seen.length
  const fields = [length + smuggled.length]
  const { status } = await raw(gateway.url, post(fields, smuggled))
  t.equal(status, 200)
  t.equal(backend.seen.at(-1)?.body.toString(), smuggled, 'it arrives as the body it is')
  for (const [first, statuses] of [
    [get(...fields) + smuggled, [200, 200]],
    [post(fields, smuggled, '/api/nothing'), [404, 200]]
  ] as const) {
    const { whole } = await raw(gateway.url, first + get('Connection: close'), untilClosed)
    t.same(statusesOf(whole), statuses, 'nor that of a GET, or of a route that is not there')
  }
  const others = backend.seen.slice(before + 1).map(({ url, body }) => `${url} ${body.length}`)
  t.same(others, Array(3).fill('/internal/notices 0'))
  const unread = request('POST /api/things/1', [typed, 'Content-Length: 400'], smuggled)
  await refuses(t, wire, 'one that was refused unread ends the connection', unread, 401)
})

t.test('trailers do not become header fields', async t => {
  const late = 'X-Late: 1\r\nX-User-Id: 7\r\nAuthorization: Bearer late'
  const fields = ['Transfer-Encoding: chunked', 'Trailer: X-Late, Cookie']
  const trailed = await raw(gateway.url, post(fields, `5\r\nhello\r\n0\r\n${late}\r\n\r\n`))
  t.equal(trailed.status, 200)
  const { headers, body } = backend.seen.at(-1) ?? {}
  t.equal(body?.toString(), 'hello')
  t.notOk(headers?.['x-late'] ?? headers?.['authorization'] ?? headers?.['trailer'])
  t.equal(headers?.['x-user-id'], '1')
  const unsigned = [typed, 'Transfer-Encoding: chunked']
  const before = backend.begun()
  const session = request('POST /api/things/1', unsigned, `5\r\nhello\r\n0\r\n${signedIn}\r\n\r\n`)
  t.equal((await raw(gateway.url, session)).status, 401, 'a session in a trailer is none')
  t.equal(backend.begun(), before)
})

t.test('each pipelined request is judged on its own, and answered in its turn', async t => {
  const before = backend.seen.length
  const three = get() + request('GET /api/things/second') + get()
  const { whole } = await raw(gateway.url, three, { enough: received => answers(received) >= 3 })
  t.same(statusesOf(whole), [200, 401, 200])
  const paths = backend.seen.slice(before).map(({ url }) => url)
  t.same(paths, ['/internal/notices', '/internal/notices'], 'one without a session went nowhere')
})

t.test('a refusal is no answer to an earlier request, nor stands within one', async t => {
  for (const broken of [
    get('Broken'),
    'nonsense\r\n\r\n',
    chunked('zz\r\n'),
    get('Connection: Upgrade', 'Upgrade: websocket'),
    'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
  ]) {
    const title = broken.slice(0, 20)
    const held = request('GET /api/things/held', [signedIn])
    const behind = await raw(gateway.url, held + broken, untilClosed)
    t.match(behind, { whole: /^$/, closed: true }, title)
    const line = await open(t.after, gateway.url)
    line.socket.write(request('GET /api/things/begun', [signedIn]))
    await line.until(received => received.length > 90_000)
    line.socket.write(broken)
    await line.closed
    t.equal(answersBegun(line.received()), 1, title)
    t.notMatch(line.received(), 'request.malformed', title)
  }
  await serves(t, wire)
})

t.test('CONNECT and TRACE are refused and echo nothing', async t => {
  const { host } = new URL(backend.url)
  const connect = `CONNECT ${host} HTTP/1.1\r\nHost: gateway.test\r\n${signedIn}\r\n\r\n${smuggled}`
  t.notMatch((await refuses(t, wire, 'CONNECT', connect, 405)).whole, 'console_sid')
  const begun = backend.begun()
  for (const path of ['/api/notices', '/', '/api/open/x', loginPath]) {
    const fields = [signedIn, 'X-Secret: mirror-mirror', 'Max-Forwards: 0']
    const traced = await raw(gateway.url, request(`TRACE ${path}`, fields))
    t.ok([404, 405].includes(traced.status), `TRACE ${path}: ${traced.status}`)
    t.notMatch(traced.whole, /mirror-mirror|console_sid/)
    isEnvelope(t, traced.body)
  }
  t.equal(backend.begun(), begun)
})

t.test('Expect: 100-continue works; any other expectation is 417', async t => {
  const body = 'x'.repeat(2000)
  const asked = post(['Expect: 100-continue', `Content-Length: ${body.length}`], body)
  const { whole } = await raw(gateway.url, asked, {
    enough: received => answersBegun(received) === 2 && answers(received.slice(25)) >= 1
  })
  t.match(whole, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  t.equal(backend.seen.at(-1)?.body.length, 2000)
  t.notOk(backend.seen.at(-1)?.headers['expect'], 'the expectation ends at the gateway')
  for (const expected of ['Expect: 200-ok', 'Expect: 100-continue, x', 'Expect: x=100-continue']) {
    await refuses(t, wire, expected, post([expected, 'Content-Length: 2'], '{}'), 417)
  }
})

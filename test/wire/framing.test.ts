/** Message framing and methods: what could be read in two ways is refused, and its connection ends. */
import t from 'tap'
import { answers, raw, request } from '../support/raw.ts'
import { json } from '../support/upstream.ts'
import { answersBegun, isEnvelope, loginPath, open, openWire, refuses, serves } from './support.ts'

const wire = await openWire(
  t.after,
  {},
  {
    answer: (question, response, seen) => {
      if (seen.url === '/store/held') return
      if (seen.url === '/store/begun') {
        return void response
          .writeHead(200, { 'content-type': 'text/plain', 'content-length': 200_000 })
          .write('x'.repeat(100_000))
      }
      json(200, { ok: 1 })(question, response, seen)
    }
  }
)
const { gateway, backend, signedIn } = wire

const smuggled = 'GET /api/things/smuggled HTTP/1.1\r\nHost: gateway.test\r\n\r\n'
const post = (fields: string[], body = '') =>
  request('POST /api/things/1', [signedIn, 'Content-Type: application/json', ...fields], body)
const get = (...fields: string[]) => request('GET /api/notices', [signedIn, ...fields])
const chunked = (chunks: string) => post(['Transfer-Encoding: chunked'], chunks)

t.test(
  'a request whose length can be read in two ways is refused and its connection ends',
  async t => {
    const cases: Array<[string, string]> = [
      [
        'Content-Length, then Transfer-Encoding',
        post(['Content-Length: 6', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`)
      ],
      [
        'Transfer-Encoding, then Content-Length',
        post(['Transfer-Encoding: chunked', 'Content-Length: 4'], `5c\r\n${smuggled}`)
      ],
      ['an unknown transfer coding', post(['Transfer-Encoding: xchunked'], `0\r\n\r\n${smuggled}`)],
      [
        'a coding behind chunked',
        post(['Transfer-Encoding: chunked, identity'], `0\r\n\r\n${smuggled}`)
      ],
      [
        'chunked in front of gzip',
        post(['Transfer-Encoding: chunked, gzip'], `0\r\n\r\n${smuggled}`)
      ],
      [
        'a blank before the colon of Transfer-Encoding',
        post(['Transfer-Encoding : chunked'], `0\r\n\r\n${smuggled}`)
      ],
      [
        'a blank before the colon of Content-Length',
        post(['Content-Length : 5'], `hello${smuggled}`)
      ],
      [
        'two Transfer-Encoding lines, the last one not chunked',
        post(['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'], `0\r\n\r\n${smuggled}`)
      ],
      [
        'two Transfer-Encoding lines, both chunked',
        post(['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`)
      ],
      [
        'two lengths that differ',
        post(['Content-Length: 5', 'Content-Length: 6'], `hello${smuggled}`)
      ],
      [
        'two lengths that agree',
        post(['Content-Length: 5', 'Content-Length: 5'], `hello${smuggled}`)
      ],
      ['a list of lengths', post(['Content-Length: 0, 44'], smuggled)],
      ['a length with a sign', post(['Content-Length: +5'], `hello${smuggled}`)],
      ['a hexadecimal length', post(['Content-Length: 0x5'], `hello${smuggled}`)],
      ['a length with an underscore', post(['Content-Length: 1_0'], `helloworld${smuggled}`)],
      ['a negative length', post(['Content-Length: -1'], smuggled)],
      ['an empty length', post(['Content-Length:'], smuggled)],
      ['a length with a blank within', post(['Content-Length: 1 0'], smuggled)],
      [
        'a length beyond 64 bits',
        post(['Content-Length: 18446744073709551621'], `hello${smuggled}`)
      ],
      ['a length of many digits', post([`Content-Length: ${'9'.repeat(400)}`], smuggled)],
      [
        'a folded Transfer-Encoding',
        post(['Transfer-Encoding:\r\n chunked'], `0\r\n\r\n${smuggled}`)
      ],
      ['a folded field', get('X-Folded: a\r\n b')],
      [
        'a vertical tab before chunked',
        post(['Transfer-Encoding: \x0bchunked'], `0\r\n\r\n${smuggled}`)
      ],
      ['chunked in quotes', post(['Transfer-Encoding: "chunked"'], `0\r\n\r\n${smuggled}`)],
      [
        'HTTP/1.0 with Transfer-Encoding',
        post(['Transfer-Encoding: chunked'], `0\r\n\r\n${smuggled}`).replace('HTTP/1.1', 'HTTP/1.0')
      ]
    ]
    for (const [title, bytes] of cases) await refuses(t, wire, title, bytes)
    await serves(t, wire)
  }
)

t.test('a head that is not well-formed is refused and its connection ends', async t => {
  const cases: Array<[string, string]> = [
    ['a bare CR within a value', get('X-A: one\rX-B: two')],
    ['bare LF line ends', get('X-A: one').replaceAll('\r\n', '\n')],
    ['one bare LF between two fields', get('X-A: one\nX-B: two')],
    ['NUL in a value', get('X-A: a\0b')],
    ['NUL in a name', get('X\0A: b')],
    ['DEL in a value', get('X-A: a\x7fb')],
    ['a blank before the first field', request('GET /api/notices').replace('Host', ' Host')],
    ['a field without a colon', get('X-NoColon')],
    ['an empty field name', get(': value')],
    ['a blank within a field name', get('X A: b')],
    ['a quote within a field name', get('X"A: b')],
    ['a name that is not ASCII', get('X-\xe4: b')],
    ['HTTP/2.0 in the request line', get().replace('HTTP/1.1', 'HTTP/2.0')],
    ['HTTP/1.2 in the request line', get().replace('HTTP/1.1', 'HTTP/1.2')],
    ['HTTP/0.9 in the request line', get().replace('HTTP/1.1', 'HTTP/0.9')],
    ['a simple request without version', 'GET /api/notices\r\n\r\n'],
    ['a lower-case protocol name', get().replace('HTTP/1.1', 'http/1.1')],
    ['another protocol name', get().replace('HTTP/1.1', 'ICY/1.1')],
    ['a method that is no token', get().replace('GET', 'G(T')],
    ['a method in lower case', get().replace('GET', 'get')],
    ['a method that nobody knows', get().replace('GET', 'FETCH')],
    ['a blank before the method', get().replace('GET', ' GET')],
    ['blanks in the target', get().replace('/api/notices', '/api/notices /api/things/2')],
    ['a tab behind the method', get().replace('GET ', 'GET\t')],
    ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
    ['the greeting of TLS', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03'],
    ['no HTTP at all', 'EHLO gateway.test\r\n']
  ]
  for (const [title, bytes] of cases) await refuses(t, wire, title, Buffer.from(bytes, 'latin1'))
  await serves(t, wire)
})

t.test('a request has exactly one Host, and it is a host', async t => {
  const without = (line: string) => `${line} HTTP/1.1\r\n${signedIn}\r\n\r\n`
  const hosted = (host: string) =>
    `GET /api/notices HTTP/1.1\r\nHost: ${host}\r\n${signedIn}\r\n\r\n`
  await refuses(t, wire, 'no Host', without('GET /api/notices'), { statuses: [400] })
  await refuses(
    t,
    wire,
    'no Host in HTTP/1.0',
    without('GET /api/notices').replace('HTTP/1.1', 'HTTP/1.0'),
    { statuses: [400] }
  )
  await refuses(t, wire, 'two Host lines', get('Host: evil.example'), { statuses: [400] })
  await refuses(t, wire, 'two Host lines that agree', get('hOST: gateway.test'), {
    statuses: [400]
  })
  for (const host of [
    '',
    ' ',
    'gateway.test/api',
    'user@gateway.test',
    'gateway.test?x',
    'gateway.test#x',
    'a b',
    'gateway.test, evil.example',
    'gateway.test:port',
    'gateway.test:123456',
    'gateway.test:80:80',
    '[::1',
    '[zz]',
    '-gateway',
    '"gateway.test"',
    'http://gateway.test',
    'gateway.test\\@evil',
    `${'a'.repeat(300)}.test`,
    'g\xe4teway',
    '%67ateway.test',
    '*'
  ]) {
    await refuses(t, wire, `Host: ${host}`, Buffer.from(hosted(host), 'latin1'), {
      statuses: [400]
    })
  }
  for (const host of ['gateway.test', 'GATEWAY.test:8080', '127.0.0.1:1', '[::1]:8080']) {
    t.equal((await raw(gateway.url, hosted(host))).status, 200, `Host: ${host} is served`)
  }
  await serves(t, wire)
})

t.test(
  'a chunked body that is not well-formed never becomes a request of the back-end',
  async t => {
    const cases: Array<[string, string]> = [
      ['a chunk size with 0x', chunked('0x5\r\nhello\r\n0\r\n\r\n')],
      ['a negative chunk size', chunked('-5\r\nhello\r\n0\r\n\r\n')],
      ['a chunk size that overflows', chunked('FFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n')],
      ['a chunk size with a sign', chunked('+5\r\nhello\r\n0\r\n\r\n')],
      ['a chunk size with a blank before it', chunked(' 5\r\nhello\r\n0\r\n\r\n')],
      ['an empty chunk size', chunked('\r\nhello\r\n0\r\n\r\n')],
      ['data longer than its size', chunked('5\r\nhelloXX\r\n0\r\n\r\n')],
      ['data shorter than its size', chunked(`7\r\nhello\r\n0\r\n\r\n${smuggled}`)],
      ['a chunk that ends in a bare LF', chunked('5\r\nhello\n0\r\n\r\n')],
      ['a chunk size that ends in a bare LF', chunked('5\nhello\r\n0\r\n\r\n')],
      ['a chunk extension with a bare LF', chunked(`5;a\nhello\r\n0\r\n\r\n${smuggled}`)],
      ['a chunk extension with a bare CR', chunked('5;a\rb\r\nhello\r\n0\r\n\r\n')],
      ['NUL in a chunk extension', chunked('5;a\0b\r\nhello\r\n0\r\n\r\n')],
      ['a trailer without a colon', chunked('5\r\nhello\r\n0\r\nBroken\r\n\r\n')]
    ]
    for (const [title, bytes] of cases) await refuses(t, wire, title, bytes, { mayBegin: true })
    await serves(t, wire)
  }
)

t.test('the same body framing is refused at sign-in, and signs nobody in', async t => {
  for (const chunks of [
    '0x5\r\nhello\r\n0\r\n\r\n',
    '5\r\nhelloXX\r\n0\r\n\r\n',
    '5;a\nhello\r\n0\r\n\r\n'
  ]) {
    const answer = await refuses(
      t,
      wire,
      JSON.stringify(chunks),
      request(
        `POST ${loginPath}`,
        ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
        chunks
      )
    )
    t.notMatch(answer.whole, /set-cookie: console_sid/i)
  }
})

t.test('a body is never read as a request', async t => {
  const before = backend.seen.length
  const cl0 = await raw(
    gateway.url,
    request(
      'POST /api/things/cl0',
      [signedIn, 'Content-Type: text/plain', `Content-Length: ${smuggled.length}`],
      smuggled
    )
  )
  t.equal(cl0.status, 200)
  t.equal(backend.seen.at(-1)?.body.toString(), smuggled, 'it arrives as the body it is')
  const withBody = await raw(
    gateway.url,
    request('GET /api/things/body', [signedIn, `Content-Length: ${smuggled.length}`], smuggled) +
      get('Connection: close'),
    { enough: () => false }
  )
  t.equal(answersBegun(withBody.whole), 2, 'a GET with a body is one request')
  t.same(
    backend.seen
      .slice(before)
      .map(({ method, url }) => `${method} ${url}`)
      .sort(),
    ['GET /internal/notices', 'GET /store/body', 'POST /store/cl0']
  )
  t.equal(
    backend.seen.find(({ url }) => url === '/store/body')?.body.length,
    0,
    'whose body goes nowhere'
  )
  const unread = await raw(
    gateway.url,
    request(
      'POST /api/nothing-here',
      [signedIn, `Content-Length: ${smuggled.length}`, 'Content-Type: text/plain'],
      smuggled
    ) + get('Connection: close'),
    { enough: () => false }
  )
  t.same(
    [...unread.whole.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status),
    ['404', '200'],
    'a body that nobody wants is no request either'
  )
  t.equal(backend.seen.length, before + 4)
})

t.test('a body that was refused unread ends the connection', async t => {
  const before = backend.begun()
  const answer = await raw(
    gateway.url,
    request('POST /api/things/1', ['Content-Type: text/plain', 'Content-Length: 400'], smuggled),
    { enough: () => false }
  )
  t.equal(answer.status, 401)
  t.ok(answer.closed)
  t.equal(answersBegun(answer.whole), 1)
  t.equal(backend.begun(), before)
})

t.test('trailers do not become header fields', async t => {
  const trailed = await raw(
    gateway.url,
    post(
      ['Transfer-Encoding: chunked', 'Trailer: X-Late, Cookie'],
      '5\r\nhello\r\n0\r\nX-Late: 1\r\nX-User-Id: 7\r\nAuthorization: Bearer late\r\n\r\n'
    )
  )
  t.equal(trailed.status, 200)
  const { headers, body } = backend.seen.at(-1) ?? {}
  t.equal(body?.toString(), 'hello')
  t.notOk(headers?.['x-late'] ?? headers?.['authorization'] ?? headers?.['trailer'])
  t.equal(headers?.['x-user-id'], '1')
  const before = backend.begun()
  const late = await raw(
    gateway.url,
    request(
      'POST /api/things/1',
      ['Content-Type: text/plain', 'Transfer-Encoding: chunked'],
      `5\r\nhello\r\n0\r\n${signedIn}\r\n\r\n`
    )
  )
  t.equal(late.status, 401, 'a session in a trailer is none')
  t.equal(backend.begun(), before)
})

t.test('each pipelined request is judged on its own', async t => {
  const before = backend.seen.length
  const answer = await raw(gateway.url, get() + request('GET /api/things/second') + get(), {
    enough: received => answers(received) >= 3
  })
  t.same(
    [...answer.whole.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status),
    ['200', '401', '200']
  )
  t.same(
    backend.seen.slice(before).map(({ url }) => url),
    ['/internal/notices', '/internal/notices'],
    'the one without a session went nowhere'
  )
})

t.test(
  'a refusal is never taken for the answer of an earlier request, nor stands within it',
  async t => {
    const behind = [
      get('Broken'),
      'nonsense\r\n\r\n',
      chunked('zz\r\n'),
      request('GET /api/notices', ['Connection: Upgrade', 'Upgrade: websocket']),
      'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'
    ]
    for (const broken of behind) {
      const held = await raw(gateway.url, request('GET /api/things/held', [signedIn]) + broken, {
        enough: () => false
      })
      t.same(
        [held.whole, held.closed],
        ['', true],
        `nothing is answered in its place: ${broken.slice(0, 20)}`
      )
      const line = await open(t.after, gateway.url)
      line.socket.write(request('GET /api/things/begun', [signedIn]))
      await line.until(received => received.length > 90_000)
      line.socket.write(broken)
      await line.closed
      t.equal(answersBegun(line.received()), 1, 'nothing is put into it')
      t.notMatch(line.received(), 'request.malformed')
    }
    await serves(t, wire)
  }
)

t.test('CONNECT and TRACE are refused and echo nothing', async t => {
  const connected = await refuses(
    t,
    wire,
    'CONNECT',
    `CONNECT ${new URL(backend.url).host} HTTP/1.1\r\nHost: gateway.test\r\n${signedIn}\r\n\r\n${smuggled}`,
    { statuses: [405] }
  )
  t.notMatch(connected.whole, 'console_sid')
  for (const path of ['/api/notices', '/', '/api/open/x', loginPath]) {
    const begun = backend.begun()
    const traced = await raw(
      gateway.url,
      request(`TRACE ${path}`, [signedIn, 'X-Secret: mirror-mirror', 'Max-Forwards: 0'])
    )
    t.ok([404, 405].includes(traced.status), `TRACE ${path}: ${traced.status}`)
    t.notMatch(traced.whole, /mirror-mirror|console_sid/)
    isEnvelope(t, traced.body)
    t.equal(backend.begun(), begun)
  }
  await serves(t, wire)
})

t.test('Expect: 100-continue works; any other expectation is 417', async t => {
  const body = 'x'.repeat(2000)
  const asked = await raw(
    gateway.url,
    request(
      'POST /api/things/expect',
      [
        signedIn,
        'Content-Type: text/plain',
        'Expect: 100-continue',
        `Content-Length: ${body.length}`
      ],
      body
    ),
    {
      enough: received =>
        received.startsWith('HTTP/1.1 100 Continue\r\n\r\n') && answers(received.slice(25)) >= 1
    }
  )
  t.match(asked.whole, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
  t.equal(backend.seen.at(-1)?.body.length, 2000)
  t.notOk(backend.seen.at(-1)?.headers['expect'], 'the expectation ends at the gateway')
  for (const expected of ['Expect: 200-ok', 'Expect: 100-continue, x', 'Expect: x=100-continue']) {
    await refuses(t, wire, expected, post([expected, 'Content-Length: 2'], '{}'), {
      statuses: [417]
    })
  }
  await serves(t, wire)
})

t.test('among broken and good requests everyone gets their own answer', async t => {
  const broken = [
    chunked('zz\r\n'),
    get('X-A: a\0b'),
    post(['Content-Length: 5', 'Content-Length: 6'], 'hello'),
    'nonsense\r\n\r\n',
    get() + get('Broken')
  ]
  const rounds = Array.from({ length: 200 }, async (_, index) => {
    if (index % 2 === 1) {
      return void (await raw(gateway.url, broken[Math.floor(index / 2) % broken.length] ?? '', {
        enough: () => false
      }))
    }
    const answer = await gateway.call(`/api/open/${index}`)
    return answer.status
  })
  const good = (await Promise.all(rounds)).filter(status => status !== undefined)
  // One address may have so many requests at once; none is answered with what belongs to another.
  t.same(
    [...new Set(good)].filter(status => status !== 200 && status !== 429),
    []
  )
  t.ok(good.includes(200))
  await serves(t, wire)
})

t.end()

/** A back-end that misbehaves: its fault is told as such, in time, and touches nobody else's answer. */
import t from 'tap'
import type { Socket } from 'node:net'
import { gzipSync } from 'node:zlib'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { rawUpstream } from '../support/upstream.ts'
import { answersBegun, type Assert, inside, isEnvelope, open, wireRoutes } from './support.ts'
import { until } from '../support/until.ts'

const answers = new Map<string, (socket: Socket, head: string) => void>()
const asked = new Map<string, number>()
const backend = await rawUpstream(t.after, (socket, head) => {
  const name = /^\w+ \/[a-z]+\/([\w-]+)/.exec(head)?.[1] ?? ''
  asked.set(name, (asked.get(name) ?? 0) + 1)
  const answer = answers.get(name)
  if (answer === undefined) socket.end('HTTP/1.1 500 Unprepared\r\nContent-Length: 0\r\n\r\n')
  else answer(socket, head)
})
const gateway = await testGateway(t.after, {
  limits: {
    sizes: { shape: '256KiB' },
    limits: { generous: { by: 'user', max: 100_000, window: '1m' } }
  },
  routes: {
    ...wireRoutes(
      backend.url,
      {},
      {
        hasty: {
          path: '/api/hasty/*',
          methods: ['GET', 'POST'],
          access: 'public',
          upstream: 'hasty',
          rewrite: '/hasty/*'
        },
        shaped: {
          path: '/api/shaped/*',
          access: 'public',
          upstream: 'backend',
          rewrite: '/shaped/*',
          shape: 'list'
        },
        redirected: {
          path: '/api/redirected/*',
          access: 'public',
          upstream: 'backend',
          rewrite: '/redirected/*',
          redirects: 'pass'
        }
      }
    ),
    upstreams: {
      backend: { url: backend.url, responseTimeout: '2m' },
      hasty: { url: backend.url, responseTimeout: '300ms' }
    },
    shapes: { list: [{ unwrap: 'items' }, { each: [{ pick: ['id', 'title'] }] }, { wrap: 'list' }] }
  }
})
const cookie = await gateway.signIn()
const port = new URL(backend.url).port

const ok = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const whole =
  (body: string | Buffer, fields = '') =>
  (socket: Socket) => {
    const bytes = Buffer.from(body)
    socket.write(
      Buffer.concat([Buffer.from(`${ok}${fields}Content-Length: ${bytes.length}\r\n\r\n`), bytes])
    )
  }
const bytes = (text: string) => (socket: Socket) => {
  socket.write(Buffer.from(text, 'latin1'))
}
const ended = (text: string) => (socket: Socket) => {
  socket.end(Buffer.from(text, 'latin1'))
}
/**
 * The kernel may drop what was not read yet: the reset follows only once the gateway has it. It is in
 * this process, and reads before an immediate, even after a pause that was longer than the timer.
 */
const reset = (text: string) => (socket: Socket) => {
  const end = () => setImmediate(() => socket.resetAndDestroy())
  if (text === '') socket.resetAndDestroy()
  else socket.write(text, () => setTimeout(end, 30))
}

answers.set('fine', whole('{"fine":true}'))

let count = 0
/** Asks for a fresh address that the back-end answers so. */
async function when(
  answer: (socket: Socket, head: string) => void,
  { method = 'GET', route = 'open' } = {}
) {
  const name = `case-${++count}`
  answers.set(name, answer)
  const result = await raw(
    gateway.url,
    request(
      `${method} /api/${route}/${name}`,
      [
        'Connection: close',
        ...(method === 'POST' ? ['Content-Type: text/plain', 'Content-Length: 2'] : [])
      ],
      method === 'POST' ? 'ok' : ''
    ),
    { enough: () => false }
  )
  return { ...result, asked: asked.get(name) ?? 0 }
}

type Result = Awaited<ReturnType<typeof when>>

/** Whether a client takes the answer for a whole one. */
function isWhole({ head, body, closed }: Result): boolean {
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) return body.length >= Number(length)
  if (/^transfer-encoding: chunked/im.test(head)) return body.endsWith('0\r\n\r\n')
  return closed
}

function isFault(t: Assert, result: Result, title: string, statuses = [502]): void {
  t.ok(statuses.includes(result.status), `${title}: ${result.status}`)
  t.equal(answersBegun(result.whole), 1, `${title}: one answer`)
  isEnvelope(t, result.body, title)
  t.ok(result.closed && isWhole(result), `${title}: whole`)
}

/** What comes after is answered with what belongs to it. */
async function isFineAgain(t: Assert): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    const { status, text } = await gateway.call('/api/open/fine')
    t.equal(`${status} ${text}`, '200 {"fine":true}', 'the next answer is the right one')
  }
}

t.test('a back-end that never answers is 504 within the configured time', async t => {
  answers.set('silent', () => {})
  const patient = await open(t.after, gateway.url)
  patient.socket.write(request('GET /api/open/silent'))
  await until('the silent back-end was asked', () => asked.get('silent') === 1)
  for (const [title, answer] of [
    ['silence', () => {}],
    ['half a status line', bytes('HTTP/1.1 2')],
    ['half its fields', bytes(`${ok}X-Half: `)]
  ] as const) {
    const result = await when(answer, { route: 'hasty' })
    isFault(t, result, title, [504])
    t.ok(result.asked <= 1, 'and is not asked again')
  }
  const posted = await when(() => {}, { method: 'POST', route: 'hasty' })
  isFault(t, posted, 'POST', [504])
  t.same(
    [patient.received(), patient.isClosed()],
    ['', false],
    'where more time is configured, one that began before all these still waits'
  )
  patient.socket.destroy()
  await isFineAgain(t)
})

t.test('a back-end that drips its fields is 504 as well', async t => {
  const result = await when(
    socket => {
      socket.write(ok)
      const timer = setInterval(() => socket.write('X-Drip: 1\r\n'), 50)
      socket.on('close', () => clearInterval(timer))
    },
    { route: 'hasty' }
  )
  isFault(t, result, 'dripping', [504])
})

t.test('an answer that stalls within its body ends within the configured time', async t => {
  const cases = [
    ['of known length', `${ok}Content-Length: 100\r\n\r\n{"half":`],
    ['of great length', `${ok}Content-Length: 200000\r\n\r\n{"half":`],
    ['of unknown length', `${ok}Transfer-Encoding: chunked\r\n\r\n8\r\n{"half":\r\n`],
    ['until the end of the connection', `${ok}Connection: close\r\n\r\n{"half":`]
  ] as const
  const results = await Promise.all(
    cases.map(async ([title, head]) => ({
      title,
      result: await when(bytes(head), { route: 'hasty' })
    }))
  )
  for (const { title, result } of results) {
    t.ok(result.closed, title)
    if (result.status === 200) t.notOk(isWhole(result), `${title}: not whole`)
    else isFault(t, result, title, [502, 504])
  }
  await isFineAgain(t)
})

t.test(
  'a connection that breaks before an answer is 502, and a safe request is tried once more',
  async t => {
    for (const [title, answer] of [
      ['reset', reset('')],
      ['closed', ended('')],
      ['closed within the status line', ended('HTTP/1.')],
      ['closed within the fields', ended(`${ok}X-Half: `)]
    ] as const) {
      const result = await when(answer)
      isFault(t, result, title)
      t.ok(result.asked >= 1 && result.asked <= 2, `${title}: asked ${result.asked} times`)
    }
    for (const answer of [reset(''), ended(''), ended('HTTP/1.')]) {
      const result = await when(answer, { method: 'POST' })
      isFault(t, result, 'POST')
      t.equal(result.asked, 1, 'what changes something is never sent twice')
    }
    await isFineAgain(t)
  }
)

t.test(
  'a back-end that breaks every connection is asked twice for each GET, and no more',
  async t => {
    const requests = 20
    let asked = 0
    const broken = await rawUpstream(t.after, socket => {
      asked++
      socket.destroy()
    })
    const alone = await testGateway(t.after, { routes: wireRoutes(broken.url) })
    const cookie = await alone.signIn()
    for (let index = 0; index < requests; index++) {
      t.equal((await alone.call('/api/things/1', { cookie })).status, 502)
    }
    t.equal(asked, 2 * requests)
  }
)

t.test('an answer that was cut is never taken for a whole one', async t => {
  const half = '{"half":'
  const cases: Array<[string, (socket: Socket) => void]> = [
    ['reset within a body', reset(`${ok}Content-Length: 100\r\n\r\n${half}`)],
    [
      'reset within a large body',
      reset(`${ok}Content-Length: 200000\r\n\r\n${half.repeat(10_000)}`)
    ],
    ['shorter than its length', ended(`${ok}Content-Length: 100\r\n\r\n${half}`)],
    [
      'shorter than its great length',
      ended(`${ok}Content-Length: 200000\r\n\r\n${half.repeat(10_000)}`)
    ],
    [
      'chunked and cut between chunks',
      ended(`${ok}Transfer-Encoding: chunked\r\n\r\n8\r\n${half}\r\n`)
    ],
    ['chunked and cut within one', ended(`${ok}Transfer-Encoding: chunked\r\n\r\nff\r\n${half}`)],
    [
      'chunked and cut before its last line',
      ended(`${ok}Transfer-Encoding: chunked\r\n\r\n8\r\n${half}\r\n0\r\n`)
    ],
    [
      'chunked, large and cut',
      ended(
        `${ok}Transfer-Encoding: chunked\r\n\r\n${`2710\r\n${'x'.repeat(10_000)}\r\n`.repeat(20)}`
      )
    ],
    ['an invalid chunk', bytes(`${ok}Transfer-Encoding: chunked\r\n\r\n8\r\n${half}\r\nzz\r\n`)],
    [
      'an invalid chunk after much',
      bytes(
        `${ok}Transfer-Encoding: chunked\r\n\r\n${`2710\r\n${'x'.repeat(10_000)}\r\n`.repeat(20)}zz\r\n`
      )
    ]
  ]
  for (const [title, answer] of cases) {
    const result = await when(answer)
    if (result.status === 200) t.notOk(isWhole(result), `${title}: not whole`)
    else isFault(t, result, title)
    t.equal(answersBegun(result.whole), 1, title)
    t.ok(result.closed, title)
    t.notMatch(result.whole, inside, title)
  }
  await isFineAgain(t)
})

t.test('bytes behind an answer are served to nobody', async t => {
  const poison = `${ok}Content-Length: 17\r\n\r\n{"poison":"blood"}`
  for (const text of [
    `${ok}Content-Length: 2\r\n\r\n{}${poison}`,
    `${ok}Content-Length: 2\r\n\r\n{}garbage`,
    `HTTP/1.1 204 No Content\r\n\r\n${poison}`,
    `HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello${poison}`,
    `HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello${poison}`,
    `${ok}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n${poison}`
  ]) {
    const result = await when(bytes(text))
    t.ok([200, 204, 304, 502].includes(result.status), `${result.status}`)
    t.notMatch(result.whole, /poison|garbage|hello/)
    await isFineAgain(t)
  }
  const head = await when(bytes(`${ok}Content-Length: 6\r\n\r\nhidden`), {
    method: 'HEAD',
    route: 'open'
  })
  t.equal(head.body, '')
  await isFineAgain(t)
})

t.test('what is no sound HTTP is 502', async t => {
  const body = 'Content-Length: 2\r\n\r\n{}'
  const cases: Array<[string, string, boolean?]> = [
    ['two lengths', `${ok}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`],
    ['a list of lengths', `${ok}Content-Length: 2, 3\r\n\r\n{}`],
    ['a negative length', `${ok}Content-Length: -2\r\n\r\n{}`],
    ['a length and a coding', `${ok}Transfer-Encoding: chunked\r\n${body}`],
    ['another coding', `${ok}Transfer-Encoding: gzip, chunked, x\r\n\r\n{}`],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['HTML only', '<html><body>It works</body></html>\r\n\r\n'],
    ['HTTP/0.9', '{}\r\n\r\n'],
    ['status 0', `HTTP/1.1 000 Nothing\r\n${body}`],
    ['status 99', `HTTP/1.1 099 Less\r\n${body}`],
    ['status 600', `HTTP/1.1 600 More\r\n${body}`],
    ['status 999', `HTTP/1.1 999 Most\r\n${body}`],
    ['status 1000', `HTTP/1.1 1000 Beyond\r\n${body}`],
    ['a status in words', `HTTP/1.1 OK 200\r\n${body}`],
    ['NUL in a field', `${ok}X-A: a\0b\r\n${body}`],
    ['a bare CR in a field', `${ok}X-A: a\rX-Injected: b\r\n${body}`],
    ['a name with a blank', `${ok}X A: b\r\n${body}`],
    ['a line without colon', `${ok}Broken\r\n${body}`],
    ['250 KB of fields', `${ok}${`X-Large: ${'x'.repeat(1000)}\r\n`.repeat(250)}${body}`],
    ['one field of 250 KB', `${ok}X-Large: ${'x'.repeat(250_000)}\r\n${body}`],
    [
      'an unasked 101',
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n'
    ]
  ]
  for (const [title, text] of cases) {
    const result = await when(bytes(text))
    isFault(t, result, title)
    t.notMatch(result.whole, /x-injected|X-Large|SSH-|It works/i, title)
  }
  await isFineAgain(t)
})

t.test('fields without end are cut off', async t => {
  const result = await when(socket => {
    const write = (): void => {
      if (socket.destroyed) return
      if (socket.write(`${'X-Endless: '.padEnd(1000, 'x')}\r\n`.repeat(10))) setImmediate(write)
      else socket.once('drain', write)
    }
    socket.write(ok)
    write()
  })
  isFault(t, result, 'endless')
  await isFineAgain(t)
})

t.test('announcements before an answer do not hide it', async t => {
  for (const hints of [
    'HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n'.repeat(50),
    'HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 199 Odd\r\n\r\n'
  ]) {
    const result = await when(bytes(`${hints}${ok}Content-Length: 2\r\n\r\n{}`))
    t.same([result.status, result.body, answersBegun(result.whole)], [200, '{}', 1])
  }
  const unasked = await when(bytes(`HTTP/1.1 100 Continue\r\n\r\n${ok}Content-Length: 2\r\n\r\n{}`))
  if (unasked.status !== 200) isFault(t, unasked, 'an unasked 100')
  const endless = await when(
    socket => {
      const timer = setInterval(() => socket.write('HTTP/1.1 102 Processing\r\n\r\n'), 20)
      socket.on('close', () => clearInterval(timer))
    },
    { route: 'hasty' }
  )
  isFault(t, endless, 'announcements only', [502, 504])
  await isFineAgain(t)
})

t.test('a redirect to the inside is neither followed nor shown', async t => {
  const elsewhere = [
    'http://internal/secret',
    `http://127.0.0.1:${port}/internal`,
    '//internal/x',
    'https://evil.example/',
    'http://169.254.169.254/latest',
    'javascript:alert(1)',
    'file:///etc/passwd',
    '/internal/secret',
    '/publicity',
    '/public/../internal',
    '\\\\internal\\x',
    'http://[',
    '',
    'data:text/html,x',
    `http://127.0.0.1:${port}@evil.example/public/x`
  ]
  for (const location of elsewhere) {
    for (const status of [301, 302, 303, 307, 308]) {
      const before = backend.requests()
      const result = await when(
        bytes(`HTTP/1.1 ${status} Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`)
      )
      isFault(t, result, `${status} ${location}`)
      t.notMatch(result.head, /^location:/im, location)
      t.equal(backend.requests(), before + 1, 'not followed')
    }
  }
  const within = await when(
    bytes('HTTP/1.1 302 Found\r\nLocation: /public/there?x=1\r\nContent-Length: 0\r\n\r\n')
  )
  t.match(within.head, /^HTTP\/1\.1 302 [^]*^location: \/api\/open\/there\?x=1\r$/im)
  const injected = await when(
    bytes(
      'HTTP/1.1 302 Found\r\nLocation: /public/a%0d%0aX-Injected: 1\r\nContent-Length: 0\r\n\r\n'
    )
  )
  t.notMatch(injected.head, /^x-injected/im)
  const passed = await when(
    bytes('HTTP/1.1 302 Found\r\nLocation: https://idp.example.com/x\r\nContent-Length: 0\r\n\r\n'),
    { route: 'redirected' }
  )
  t.match(
    passed.head,
    /^location: https:\/\/idp\.example\.com\/x\r$/im,
    'but where the route says so'
  )
  for (const location of ['javascript:alert(1)', 'data:text/html,x', 'file:///etc/passwd']) {
    const result = await when(
      bytes(`HTTP/1.1 302 Found\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`),
      { route: 'redirected' }
    )
    t.notMatch(result.head, /^location:/im, location)
  }
})

t.test('a back-end neither sets cookies nor asks browsers for passwords', async t => {
  for (const name of [
    'console_sid',
    '__Host-console_sid',
    'Console_sid',
    'other',
    ' console_sid',
    ''
  ]) {
    const result = await when(
      bytes(
        `${ok}Set-Cookie: ${name}=evil; Path=/\r\nSet-Cookie2: ${name}=evil\r\nContent-Length: 2\r\n\r\n{}`
      )
    )
    t.equal(result.status, 200)
    t.notMatch(result.head, /set-cookie/i, name)
  }
  for (const body of ['{"message":"who are you"}', '<h1>401</h1>']) {
    const result = await when(
      bytes(
        `HTTP/1.1 401 Unauthorized\r\nContent-Type: ${body.startsWith('{') ? 'application/json' : 'text/html'}\r\nWWW-Authenticate: Basic realm="inner"\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      )
    )
    t.equal(result.status, 401)
    t.notMatch(result.whole, /www-authenticate|inner|<h1>/i)
  }
})

t.test('an error page of a back-end is told in the envelope, without its insides', async t => {
  const page =
    '<html><h1>Whitelabel Error</h1><pre>java.lang.NullPointerException at com.example.Dao.find(Dao.java:7) jdbc:mysql://10.0.0.7/prod</pre></html>'
  for (const status of [400, 403, 404, 418, 500, 501, 502, 503, 504, 507]) {
    for (const type of ['text/html', 'text/plain', 'application/xml', '']) {
      const result = await when(
        bytes(
          `HTTP/1.1 ${status} Oops\r\n${type === '' ? '' : `Content-Type: ${type}\r\n`}Content-Length: ${page.length}\r\n\r\n${page}`
        )
      )
      t.equal(result.status, status)
      t.notMatch(result.whole, /Whitelabel|java|jdbc|10\.0\.0\.7/)
      isEnvelope(t, result.body, `${status} ${type}`)
    }
  }
})

t.test('compressed answers pass as they are, a bomb takes no memory', async t => {
  const packed = gzipSync('{"a":1}')
  answers.set('packed', whole(packed, 'Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n'))
  const answer = await raw(gateway.url, request('GET /api/open/packed', ['Accept-Encoding: gzip']))
  t.match(answer.head, /^content-encoding: gzip\r$/im)
  t.equal(Buffer.from(answer.body, 'latin1').compare(packed), 0)
  const bomb = gzipSync(Buffer.alloc(120 * 2 ** 20), { level: 1 })
  const before = process.memoryUsage().rss
  for (const route of ['open', 'shaped']) {
    const result = await when(whole(bomb, 'Content-Encoding: gzip\r\n'), { route })
    if (route === 'open') {
      t.match(result.head, new RegExp(`^content-length: ${bomb.length}\\r$`, 'im'))
    } else isFault(t, result, 'shaped')
  }
  t.ok(process.memoryUsage().rss - before < 90 * 2 ** 20, 'it was not unpacked')
  await isFineAgain(t)
})

t.test(
  'a shaped route gives sound answers of its own or 502, whatever the back-end says',
  async t => {
    const faults: Array<[string, (socket: Socket) => void]> = [
      ['broken JSON', whole('{"items":[')],
      ['text behind JSON', whole('{"items":[]} x')],
      ['HTML that claims to be JSON', whole('<html>It works</html>')],
      ['broken UTF-8', whole(Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]))],
      [
        'gzip that is cut',
        whole(gzipSync('{"items":[]}').subarray(0, 20), 'Content-Encoding: gzip\r\n')
      ],
      // JSON is read all the same (case 2).
      ['what claims to be gzip and is not', whole('items: []', 'Content-Encoding: gzip\r\n')],
      ['an answer larger than is shaped', whole(`{"items":["${'x'.repeat(300_000)}"]}`)],
      [
        'a chunked one larger than is shaped',
        bytes(
          `${ok}Transfer-Encoding: chunked\r\n\r\n${`2710\r\n${' '.repeat(10_000)}\r\n`.repeat(40)}0\r\n\r\n`
        )
      ],
      ['one that is cut', ended(`${ok}Content-Length: 100\r\n\r\n{"items":[]}`)],
      [
        'a chunked one that is cut',
        ended(`${ok}Transfer-Encoding: chunked\r\n\r\nc\r\n{"items":[]}\r\n`)
      ],
      ['NaN', whole('{"items":NaN}')]
    ]
    for (const [title, answer] of faults) {
      const result = await when(answer, { route: 'shaped' })
      isFault(t, result, title)
      t.notMatch(result.whole, /It works/)
    }
    const sound: Array<[string, string, unknown]> = [
      ['nothing', '', []],
      ['null', 'null', []],
      ['a number', '7', []],
      ['a list in its place', '[1,2]', []],
      ['items that are none', '{"items":{"a":1}}', []],
      ['a byte order mark', '\ufeff{"items":[{"id":1,"secret":2}]}', [{ id: 1 }]],
      [
        'items of all kinds',
        '{"items":[null,1,"x",[],{"id":1,"title":"t","secret":"s"}]}',
        undefined
      ],
      [
        'names of JavaScript’s own',
        '{"items":[{"id":1,"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}],"__proto__":{"items":[{"id":9}]}}',
        [{ id: 1 }]
      ],
      ['inherited names', '{"toString":1}', []]
    ]
    for (const [title, body, data] of sound) {
      const result = await when(whole(body), { route: 'shaped' })
      t.equal(result.status, 200, title)
      const parsed = JSON.parse(result.body) as { data: unknown[]; total: number }
      if (data !== undefined) t.same(parsed.data, data, title)
      t.equal(parsed.total, parsed.data.length)
      t.notMatch(result.body, /secret|polluted/, title)
    }
    t.equal(({} as Record<string, unknown>)['polluted'], undefined)
    for (const depth of [3000, 60_000]) {
      const result = await when(
        whole(`{"items":[{"id":${'['.repeat(depth)}${']'.repeat(depth)}}]}`),
        { route: 'shaped' }
      )
      if (result.status !== 200) isFault(t, result, `nested ${depth} deep`)
    }
    await isFineAgain(t)
  }
)

t.test(
  'a shaped route tells an error of the back-end without what it says beside its message',
  async t => {
    const body = '{"message":"no such order","stack":"at Dao.java:7","path":"/internal/x"}'
    const result = await when(
      bytes(
        `HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
      ),
      { route: 'shaped' }
    )
    t.equal(result.status, 404)
    t.match(JSON.parse(result.body), {
      success: false,
      errorCode: 'upstream.error',
      message: 'no such order'
    })
    t.notMatch(result.body, /Dao|internal/)
  }
)

t.test(
  'an answer that comes before the request is whole passes, and what is left of the body is no request',
  async t => {
    const early = 'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}'
    const rest = request('GET /api/open/fine')
    for (const [title, answer, status] of [
      ['early', bytes(`HTTP/1.1 200 OK\r\n${early}`), 200],
      ['early and closed', ended(`HTTP/1.1 413 Too Large\r\nConnection: close\r\n${early}`), 413],
      ['reset', reset(''), 502]
    ] as const) {
      for (const [field, first, last] of [
        ['Content-Length: 300000', 'x'.repeat(100_000), 'x'.repeat(200_000)],
        ['Transfer-Encoding: chunked', `186a0\r\n${'x'.repeat(100_000)}\r\n`, '0\r\n\r\n']
      ] as const) {
        const name = `early-${++count}`
        answers.set(name, answer)
        const line = await open(t.after, gateway.url)
        line.socket.write(
          request(`POST /api/open/${name}`, ['Content-Type: text/plain', field], first)
        )
        await line.until(received => answersBegun(received) === 1)
        line.socket.write(last + rest)
        await line.closed
        t.match(line.received(), new RegExp(`^HTTP/1\\.1 ${status} `), title)
        t.equal(answersBegun(line.received()), 1, title)
      }
    }
    await isFineAgain(t)
  }
)

t.test('a client never waits for the answer of another', async t => {
  const waiting: Socket[] = []
  answers.set('stuck', socket => {
    waiting.push(socket)
  })
  const stuck = await Promise.all(Array.from({ length: 20 }, () => open(t.after, gateway.url)))
  for (const line of stuck) line.socket.write(request('GET /api/open/stuck'))
  await until('twenty requests wait', () => waiting.length === 20)
  await isFineAgain(t)
  t.same(
    stuck.map(line => line.received()),
    stuck.map(() => ''),
    'they still wait'
  )
  for (const socket of waiting) whole('{"late":true}')(socket)
  const told = await Promise.all(
    stuck.map(line => line.until(received => received.includes('late')))
  )
  for (const text of told) t.match(text, /^HTTP\/1\.1 200 /)
})

t.test('the session outlives all faults of a back-end', async t => {
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
  t.notOk(
    gateway.log.some(({ code }) => code === 'gateway.fault'),
    'and none of them was a fault of the gateway'
  )
})

t.end()

/** A back-end that breaks HTTP, breaks off or takes too long, and what its client and others get. */
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { type Line, open, raw, request } from '../support/raw.ts'
import { shorterTimes } from '../support/shorter-times.ts'
import { until } from '../support/until.ts'
import { rawUpstream } from '../support/upstream.ts'
import { answersBegun, inside, isEnvelope } from '../support/wire.ts'

type Behaviour = (socket: Socket) => unknown

const ok = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const chunked = `${ok}Transfer-Encoding: chunked\r\n\r\n`
const stream = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n'
const whole = (body: string) => `${ok}Content-Length: ${body.length}\r\n\r\n${body}`
const sends = (text: string) => (socket: Socket) => socket.write(text, 'latin1')
const ends = (text: string) => (socket: Socket) => socket.end(text, 'latin1')
/**
 * The kernel may drop what was not read yet: the reset follows only once the gateway has it. It is in
 * this process, and reads before an immediate, even after a pause that was longer than the timer.
 */
const resets = (text: string) => (socket: Socket) => {
  const end = () => setImmediate(() => socket.resetAndDestroy())
  if (text === '') socket.resetAndDestroy()
  else socket.write(text, () => setTimeout(end, 30))
}
const drips = (head: string, piece: string) => (socket: Socket) => {
  socket.write(head)
  const timer = setInterval(() => socket.write(piece), 50)
  socket.on('close', () => clearInterval(timer))
}
/** As fast as it is taken. */
const pours = (head: string, piece: string) => (socket: Socket) => {
  const write = (): void => {
    if (socket.destroyed) return
    if (socket.write(piece)) setImmediate(write)
    else socket.once('drain', write)
  }
  socket.write(head)
  write()
}

const answers = new Map<string, Behaviour>([['/api/open/fine', sends(whole('{"fine":true}'))]])
const asked = new Map<string, number>()
const backend = await rawUpstream(t.teardown, (socket, head) => {
  const path = head.split(' ', 2)[1] ?? ''
  asked.set(path, (asked.get(path) ?? 0) + 1)
  answers.get(path)?.(socket)
})
/** Takes connections, and answers no handshake: it waits for the end of a head. */
const noTls = await rawUpstream(t.teardown, () => {})
// Of the pause of an event stream.
shorterTimes(t.teardown, { [5 * 60_000]: 2000 })
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']
const route = (name: string, upstream = name, more: object = {}) => ({
  [name]: { path: `/api/${name}/*`, methods, access: 'public', upstream, ...more }
})
const idleMs = 600
const gateway = await testGateway(t.teardown, {
  gateway: { server: { idleTimeout: `${idleMs}ms` } },
  limits: { sizes: { shape: '256KiB' }, limits: {} },
  routes: {
    upstreams: {
      patient: { url: backend.url, responseTimeout: '2m' },
      hasty: { url: backend.url, responseTimeout: '300ms' },
      brief: { url: backend.url, responseTimeout: '30s', totalTimeout: '500ms' },
      tls: { url: noTls.url.replace('http', 'https'), connectTimeout: '300ms' }
    },
    shapes: { same: [{ drop: ['nothing'] }] },
    routes: {
      ...route('open', 'patient'),
      ...route('hasty'),
      ...route('brief'),
      ...route('tls'),
      ...route('shaped', 'hasty', { shape: 'same' }),
      ...route('shaped-brief', 'brief', { shape: 'same' })
    }
  }
})

/** Asks for an address of its own, which the back-end answers so. */
async function when(behaviour: Behaviour, name = 'open', method = 'GET') {
  const path = `/api/${name}/${answers.size}`
  answers.set(path, behaviour)
  const body = method.startsWith('P') ? 'ok' : ''
  const fields = ['Content-Type: text/plain', `Content-Length: ${body.length}`, 'Connection: close']
  const bytes = request(`${method} ${path}`, fields, body)
  const response = await raw(gateway.url, bytes, { enough: () => false })
  const { code } = await gateway.logged(line => line['msg'] === 'request' && line['path'] === path)
  return { ...response, code, asked: asked.get(path) ?? 0 }
}
type Result = Awaited<ReturnType<typeof when>>

/** Whether a client takes the response for a whole one. */
function isWhole({ head, body, closed }: Result): boolean {
  const length = /^content-length: (\d+)/im.exec(head)?.[1]
  if (length !== undefined) return body.length >= Number(length)
  if (/^transfer-encoding: chunked/im.test(head)) return body.endsWith('0\r\n\r\n')
  return closed
}

/** One whole error with this code, which the log has too. */
function isError(t: Test, result: Result, code: string, title: string): void {
  t.equal(result.status, code.startsWith('upstream.timeout') ? 504 : 502, title)
  t.equal(answersBegun(result.whole), 1, `${title}: one answer`)
  isEnvelope(t, result.body, title)
  t.match(JSON.parse(result.body), { errorCode: code }, title)
  t.equal(result.code, code, `${title}: in the log`)
  t.ok(result.closed && isWhole(result), `${title}: whole`)
}

/** What comes after is answered with what belongs to it, and nothing is left of what was before. */
async function isFineAgain(t: Test): Promise<void> {
  for (let turn = 0; turn < 3; turn++) {
    const { status, text } = await gateway.call('/api/open/fine')
    t.equal(`${status} ${text}`, '200 {"fine":true}', 'the next answer is the right one')
  }
  await until('nothing is in flight', async () => {
    const metrics = await gateway.metrics()
    const counts = metrics.match(/^console_gateway_upstream_in_flight\{.*/gm) ?? []
    return counts.length > 0 && counts.every(line => line.endsWith(' 0'))
  })
  t.notOk(gateway.log.some(({ code }) => code === 'gateway.fault'))
}

const two = 'Content-Length: 2\r\n\r\n{}'
type Fault = readonly [title: string, behaviour: Behaviour, name?: string]
const invalid = (fields: string): Fault => [fields, sends(`${ok}${fields}\r\n\r\n{}`)]
/** What costs the client its response, by the code of the error. */
const faults: Readonly<Record<string, readonly Fault[]>> = {
  'upstream.timeout': [
    ['silence', () => {}, 'hasty'],
    ['fields that drip', drips(ok, 'X-Drip: 1\r\n'), 'hasty'],
    ['announcements only', drips('', 'HTTP/1.1 102 Processing\r\n\r\n'), 'hasty']
  ],
  'upstream.timeout.connect': [['no handshake', () => {}, 'tls']],
  'upstream.timeout.total': [
    ['a first byte later than the whole may be', () => {}, 'brief'],
    ['a drip that is shaped', drips(`${ok}\r\n`, 'x'), 'shaped-brief']
  ],
  'upstream.timeout.idle': [
    ['a body that stalls', sends(`${ok}Content-Length: 100\r\n\r\n{"half":`), 'hasty'],
    ['a body that stalls, shaped', sends(`${ok}\r\n{"half":`), 'shaped']
  ],
  'upstream.reset': [
    ['a reset', resets('')],
    ['an end', ends('')],
    ['an end within the fields', ends(`${ok}X-Half: `)],
    ['a reset within the body', resets(`${ok}Content-Length: 100\r\n\r\n{"half":`)],
    ['a body shorter than its length', ends(`${ok}Content-Length: 100\r\n\r\n{"half":`)],
    ['one that was the last', ends(`${ok}Connection: close\r\nContent-Length: 9\r\n\r\n{}`)],
    ['that, shaped', ends(`${ok}Content-Length: 100\r\n\r\n{"half":`), 'shaped'],
    ['an end within a chunk, shaped', ends(`${chunked}ff\r\n{"half":`), 'shaped']
  ],
  'upstream.invalid': [
    ...['2\r\nContent-Length: 3', '-2'].map(length => invalid(`Content-Length: ${length}`)),
    invalid('Transfer-Encoding: chunked\r\nContent-Length: 2'),
    ['no HTTP', sends('SSH-2.0-OpenSSH_9.2\r\n')],
    ['HTTP/0.9', sends('<html><body>It works</body></html>\r\n\r\n')],
    ...['099 Less', '600 More', 'OK 200'].map((line): Fault => [
      line,
      sends(`HTTP/1.1 ${line}\r\n${two}`)
    ]),
    ...['X-A: a\0b', 'X-A: a\rX-Injected: b', 'X A: b', 'Broken'].map(field =>
      invalid(`${field}\r\nContent-Length: 2`)
    ),
    ['fields without end', pours(ok, `X-A: ${'x'.repeat(1000)}\r\n`)],
    ['a 101 that nobody asked for', sends('HTTP/1.1 101 Switch\r\nUpgrade: websocket\r\n\r\n')]
  ]
}

/** How often the back-end is asked: a broken GET once more. */
const times: Readonly<Record<string, number>> = {
  'upstream.reset': 2,
  'upstream.timeout.connect': 0
}

const great = `${ok}Content-Length: 200000\r\n\r\n${'{"half":'.repeat(10_000)}`
const many = `${chunked}${`2710\r\n${'x'.repeat(10_000)}\r\n`.repeat(20)}`
/** What shows when bytes may have gone to the client already, by the code of the log line. */
const cuts: Readonly<Record<string, readonly Fault[]>> = {
  'upstream.reset': [
    ['a reset within a large body', resets(great)],
    ['a large body shorter than its length', ends(great)],
    ['an end within a chunk', ends(`${chunked}ff\r\n{"half":`)],
    ['an end before the last line', ends(`${chunked}8\r\n{"half":\r\n0\r\n`)]
  ],
  'upstream.invalid': [
    ['a chunk that is none', sends(`${chunked}8\r\n{"half":\r\nzz\r\n`)],
    ['one after many', sends(`${many}zz\r\n`)]
  ],
  'upstream.timeout.idle': [
    ['a large body that stalls', sends(great), 'hasty'],
    ['chunks that stall', sends(`${chunked}8\r\n{"half":\r\n`), 'hasty'],
    ['a body until the end that stalls', sends(`${ok}Connection: close\r\n\r\n{"half":`), 'hasty'],
    ['events that stall', sends(`${stream}data: 1\n\n`)]
  ],
  'upstream.timeout.total': [
    ['a drip after a good start', drips(`${ok}\r\n${'x'.repeat(100_000)}`, 'x'), 'brief'],
    ['an endless body', pours(`${ok}\r\n`, 'x'.repeat(10_000)), 'brief']
  ]
}

for (const [table, mayHaveBegun] of [
  [faults, false],
  [cuts, true]
] as const) {
  for (const [code, rows] of Object.entries(table)) {
    const title = mayHaveBegun ? 'breaks is never taken for a whole one' : 'fails is one error'
    t.test(`a response that ${title}: ${code}`, async t => {
      const results = rows.map(async ([title, behaviour, name]) => {
        const result = await when(behaviour, name)
        // Whether it had begun when it broke is up to the machine where the body is small.
        if (mayHaveBegun && result.status === 200) {
          t.notOk(isWhole(result), `${title}: not whole`)
          t.match(result, { code, closed: true }, `${title}: in the log`)
          t.equal(answersBegun(result.whole), 1, title)
          return t.notMatch(result.whole, inside, title)
        }
        isError(t, result, code, title)
        if (mayHaveBegun) return
        t.notMatch(result.whole, /X-Injected|X-A|SSH-|It works|half/i, title)
        t.equal(result.asked, times[code] ?? 1, `${title}: times`)
      })
      await Promise.all(results)
      await isFineAgain(t)
    })
  }
}

t.test('what changes something is never sent twice', async t => {
  for (const [behaviour, method] of [
    [resets(''), 'POST'],
    [ends(''), 'PUT'],
    [ends('HTTP/1.'), 'PATCH'],
    // without a body
    [ends(''), 'DELETE']
  ] as const) {
    const result = await when(behaviour, 'open', method)
    isError(t, result, 'upstream.reset', method)
    t.equal(result.asked, 1)
  }
  t.equal((await when(() => {}, 'hasty', 'POST')).asked, 1, 'nor after silence')
})

t.test('bytes and trailers behind a response are served to nobody', async t => {
  const poison = whole('{"poison":"blood"}')
  for (const text of [
    whole('{}') + poison,
    `${whole('{}')}poison`,
    `HTTP/1.1 204 No Content\r\n\r\n${poison}`,
    // Django REST framework behind gunicorn writes it so.
    `HTTP/1.1 204 No Content\r\nContent-Length: 6\r\n\r\npoison${poison}`,
    `HTTP/1.1 304 Not Modified\r\nContent-Length: 6\r\n\r\npoison${poison}`,
    `${chunked}2\r\n{}\r\n0\r\nX-Poison: 1\r\nSet-Cookie: poison=1\r\n\r\n${poison}`
  ]) {
    const result = await when(sends(text))
    t.equal(`HTTP/1.1 ${result.status}`, text.slice(0, 12))
    t.notMatch(result.whole, /poison/i)
    await isFineAgain(t)
  }
  t.equal((await when(sends(whole('hidden')), 'open', 'HEAD')).body, '')
  await isFineAgain(t)
})

t.test('announcements before a response do not hide it', async t => {
  for (const [line, times] of [
    ['HTTP/1.1 103 Early Hints\r\nLink: </x.css>; rel=preload\r\n\r\n', 50],
    ['HTTP/1.1 102 Processing\r\n\r\n', 1]
  ] as const) {
    const result = await when(sends(line.repeat(times) + whole('{}')))
    t.same([result.status, result.body, answersBegun(result.whole)], [200, '{}', 1])
  }
})

t.test('an error page of a back-end is told in the envelope, without its insides', async t => {
  const page = '<h1>Whitelabel</h1><pre>java.lang.Exception jdbc:mysql://10.0.0.7</pre>'
  for (const status of [400, 401, 404, 500, 503]) {
    for (const type of ['Content-Type: text/html', 'X-None: 1']) {
      const length = `Content-Length: ${page.length}`
      const fields = [type, 'WWW-Authenticate: Basic realm="inner"', length, '', page]
      const result = await when(sends([`HTTP/1.1 ${status} Oops`, ...fields].join('\r\n')))
      t.equal(result.status, status)
      t.notMatch(result.whole, /Whitelabel|java|jdbc|10\.0\.0\.7|www-authenticate|inner/i)
      isEnvelope(t, result.body, `${status} ${type}`)
    }
  }
})

t.test('a response before the request is whole passes; the rest is no request', async t => {
  const early = `Content-Type: application/json\r\n${two}`
  for (const [behaviour, status] of [
    [sends(`HTTP/1.1 200 OK\r\n${early}`), 200],
    [ends(`HTTP/1.1 413 Too Large\r\nConnection: close\r\n${early}`), 413],
    [resets(''), 502]
  ] as const) {
    for (const [field, first, last] of [
      ['Content-Length: 300000', 'x'.repeat(100_000), 'x'.repeat(200_000)],
      ['Transfer-Encoding: chunked', `186a0\r\n${'x'.repeat(100_000)}\r\n`, '0\r\n\r\n']
    ] as const) {
      const path = `/api/open/${answers.size}`
      answers.set(path, behaviour)
      const line = await open(t.after, gateway.url)
      line.socket.write(request(`POST ${path}`, ['Content-Type: text/plain', field], first))
      await line.until(received => answersBegun(received) === 1)
      line.socket.write(last + request('GET /api/open/fine'))
      await line.closed
      t.match(line.received(), new RegExp(`^HTTP/1\\.1 ${status} `), field)
      t.equal(answersBegun(line.received()), 1, field)
    }
  }
  await isFineAgain(t)
})

t.test('where an upstream sets longer waits, a drip goes on; so do events', async t => {
  const lines: Line[] = []
  for (const [path, behaviour] of [
    ['/api/open/drip', drips(`${ok}\r\n`, 'x')],
    ['/api/open/stall', sends(`${ok}\r\nx`)],
    ['/api/brief/events', drips(stream, 'data: 1\n\n')]
  ] as const) {
    answers.set(path, behaviour)
    const line = await open(t.after, gateway.url)
    line.socket.write(request(`GET ${path}`))
    lines.push(line)
  }
  // As long as what ends others.
  t.equal((await when(drips(`${ok}\r\n`, 'x'), 'brief')).code, 'upstream.timeout.total')
  const isClosed = lines.map(line => line.isClosed())
  t.same(isClosed, [false, false, false])
  for (const line of lines) line.socket.destroy()
  await isFineAgain(t)
})

t.test('a slow reader holds the back-end back, and is not taken for a slow back-end', async t => {
  let sent = () => 0
  answers.set('/api/open/endless', socket => {
    sent = () => socket.bytesWritten
    pours(`${ok}\r\n`, 'x'.repeat(16_384))(socket)
  })
  const { socket, received, until: once } = await open(t.after, gateway.url)
  socket.write(request('GET /api/open/endless'))
  // Reads a little now and then: what the gateway holds back is the back-end's no fault.
  const deadline = performance.now() + 5 * idleMs
  while (performance.now() < deadline) {
    const before = received().length
    socket.resume()
    await once(({ length }) => length > before + 2 ** 16)
    socket.pause()
    await wait(idleMs / 3)
  }
  const told = await gateway.logged(({ path }) => path === '/api/open/endless')
  t.match(told, { status: 499, code: 'request.timeout' })
  const ahead = sent() - received().length
  t.ok(ahead < 32 * 2 ** 20, `it was held back, at ${Math.round(ahead / 2 ** 20)} MiB`)
  socket.destroy()
  await isFineAgain(t)
})

t.test('an upload whose upstream says nothing is answered before it is whole', async t => {
  for (const [field, part] of [
    ['Transfer-Encoding: chunked', `13880\r\n${'x'.repeat(80_000)}\r\n`],
    ['Content-Length: 400000', 'x']
  ] as const) {
    const upload = request('POST /api/hasty/upload', [field, 'Content-Type: text/plain'], part)
    t.match(await raw(gateway.url, upload), { status: 504 }, field)
  }
})

/** Slow, many, gone: no client keeps the gateway from others, however it stalls or leaves. */
import t from 'tap'
import { readdirSync } from 'node:fs'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { password } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json } from '../support/upstream.ts'
import {
  answerLarge,
  answersBegun,
  isEnvelope,
  loginPath,
  open,
  openWire,
  refuses,
  serves
} from './support.ts'
import { until } from '../support/until.ts'

const held: ServerResponse[] = []
const large: ServerResponse[] = []
const perUser = 12
// Nothing here ends because of its time: that has tests of its own.
const wire = await openWire(
  t.after,
  {
    gateway: {
      server: { headersTimeout: '2m', requestTimeout: '2m', idleTimeout: '2m', keepAlive: '2m' }
    },
    limits: {
      inFlightPerUser: perUser,
      limits: { generous: { by: 'user', max: 100_000, window: '1m' } }
    }
  },
  {
    upstream: { connections: 16, queue: 4, responseTimeout: '2m' },
    answer: (question, response, seen) => {
      if (seen.url.includes('held')) keep(held, response)
      else if (seen.url.includes('large')) {
        keep(large, response)
        answerLarge(response)
      } else json(200, { ok: 1 })(question, response, seen)
    }
  }
)
const { gateway, backend, cookie, signedIn } = wire

/** Among those that run, until its end. */
function keep(running: ServerResponse[], response: ServerResponse): void {
  if (response.destroyed) return
  running.push(response)
  response.once('close', () => {
    const at = running.indexOf(response)
    if (at >= 0) running.splice(at, 1)
  })
}

t.test('more header lines than allowed, or larger ones, are refused and never cut', async t => {
  const lines = (count: number) =>
    request('GET /api/notices', [
      signedIn,
      ...Array.from({ length: count - 2 }, (_, index) => `X-${index}: 1`)
    ])
  t.equal((await raw(gateway.url, lines(100))).status, 200)
  for (const count of [101, 102, 200]) {
    await refuses(t, wire, `${count} lines`, lines(count), { statuses: [431] })
  }
  for (const count of [1100, 2100]) {
    await refuses(t, wire, `${count} lines`, lines(count).replaceAll(': 1', ':1'), {
      statuses: [431]
    })
  }
  await refuses(
    t,
    wire,
    '40 KB of fields',
    request('GET /api/notices', [signedIn, `X-Large: ${'x'.repeat(40_000)}`]),
    { statuses: [431] }
  )
  await refuses(
    t,
    wire,
    'a long name',
    request('GET /api/notices', [signedIn, `${'X'.repeat(40_000)}: 1`]),
    { statuses: [431] }
  )
  await refuses(
    t,
    wire,
    '150 lines, a length behind them',
    request(
      'POST /api/things/1',
      [
        signedIn,
        ...Array.from({ length: 150 }, (_, index) => `X-${index}: 1`),
        'Content-Length: 40'
      ],
      'GET /api/things/x HTTP/1.1\r\nHost: x\r\n\r\n'
    ),
    { statuses: [431] }
  )
  await serves(t, wire)
})

t.test('an endless chunk extension or trailer is cut off', async t => {
  const before = backend.seen.length
  for (const [start, piece] of [
    ['1;', 'a'.repeat(5000)],
    ['1\r\nx\r\n0\r\n', `X-T: ${'t'.repeat(5000)}\r\n`]
  ] as const) {
    const line = await open(t.after, gateway.url)
    line.socket.write(
      request(
        'POST /api/things/1',
        [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'],
        start
      )
    )
    let sent = 0
    for (; sent < 200 && !line.isClosed(); sent++) {
      line.socket.write(piece)
      await new Promise(resolve => setImmediate(resolve))
    }
    await line.closed
    t.ok(sent < 200, `${sent} pieces`)
    t.match(line.received(), /^$|^HTTP\/1\.1 4\d\d /)
  }
  const extensions = `${'1;a=b;c=d;eeeeeeee=ffffffff\r\nx\r\n'.repeat(3000)}0\r\n\r\n`
  const many = await raw(
    gateway.url,
    request(
      'POST /api/things/1',
      [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'],
      extensions
    )
  )
  t.ok(many.status === 413 || many.status === 200 || many.status === 0, `${many.status}`)
  t.ok(backend.seen.length <= before + 1)
  await serves(t, wire)
})

t.test('four hundred idle connections do not keep others waiting', async t => {
  const lines = await Promise.all(Array.from({ length: 400 }, () => open(t.after, gateway.url)))
  await serves(t, wire)
  t.notOk(
    lines.some(line => line.isClosed()),
    'nobody waited for one of them to end'
  )
  for (const line of lines) line.socket.destroy()
  await Promise.all(lines.map(line => line.closed))
  await serves(t, wire)
})

t.test('three hundred half requests, reset or ended, leave no descriptor behind', async t => {
  const descriptors = () => readdirSync('/proc/self/fd').length
  await serves(t, wire)
  const before = descriptors()
  const halves = [
    'GET /api/no',
    'POST /api/things/1 HTTP/1.1\r\nHost: gateway.test\r\n',
    request(
      'POST /api/things/1',
      [signedIn, 'Content-Type: text/plain', 'Content-Length: 10'],
      'half'
    ),
    request(
      'POST /api/things/1',
      [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'],
      '5\r\nhe'
    ),
    '\r\n\r\n',
    request('GET /api/things/held', [signedIn])
  ]
  for (let batch = 0; batch < 10; batch++) {
    const lines = await Promise.all(Array.from({ length: 30 }, () => open(t.after, gateway.url)))
    for (const [index, line] of lines.entries()) {
      line.socket.write(halves[index % halves.length] ?? '', () => {
        if (index % 2 === 0) line.socket.resetAndDestroy()
        else line.socket.destroy()
      })
    }
    await Promise.all(lines.map(line => line.closed))
  }
  t.equal((await gateway.call('/api/notices', { cookie })).status, 200, 'the next client is served')
  await until(
    `at most 10 descriptors more than the ${before} before`,
    () => descriptors() <= before + 10
  )
})

t.test('when a client leaves, its request at the back-end ends too', async t => {
  for (const [index, bytes] of [
    request('GET /api/things/held', [signedIn]),
    request(
      'POST /api/things/held',
      [signedIn, 'Content-Type: text/plain', 'Content-Length: 2'],
      'ok'
    ),
    request(
      'POST /api/things/held',
      [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'],
      '2\r\nok\r\n0\r\n\r\n'
    ),
    request('GET /api/open/held')
  ].entries()) {
    for (const begun of [false, true]) {
      const name = `held-${index}-${begun}`
      const line = await open(t.after, gateway.url)
      line.socket.write(bytes.replace('held', name))
      const own = () => held.find(({ req }) => req.url?.endsWith(name))
      await until('the request was logged', () => own() !== undefined)
      const answer = own()
      if (answer === undefined) return t.fail('the back-end was not asked')
      if (begun) {
        answer.writeHead(200, { 'content-type': 'text/plain' }).write('x'.repeat(1000))
        await line.until(received => received.includes('xxxx'))
      }
      const closed = once(answer, 'close')
      line.socket.destroy()
      await closed
      t.notOk(answer.writableFinished, begun ? 'within its answer' : 'before its answer')
    }
  }
  await serves(t, wire)
})

t.test('many readers that stand still do not keep the back-end from another user', async t => {
  const bob = await gateway.signIn('bob')
  const lines = await Promise.all(
    Array.from({ length: 2 * perUser }, () => open(t.after, gateway.url))
  )
  for (const line of lines) {
    line.socket.pause()
    line.socket.write(request('GET /api/things/large', [signedIn]))
  }
  const refused = () =>
    gateway.log.filter(({ code, msg }) => code === 'limit.exceeded' && msg === 'request').length
  await until(
    'one user has only so many requests at once',
    () => large.length === perUser && refused() === perUser
  )
  t.equal((await gateway.call('/api/notices', { cookie: bob })).status, 200)
  t.equal(large.length, perUser, 'while all of them still run')
  for (const line of lines) line.socket.destroy()
  await Promise.all(lines.map(line => line.closed))
  await until('the back-end was told to stop', () => large.length === 0)
  await serves(t, wire)
})

t.test(
  'a back-end at its limit answers 503 at once to those who would only make its queue longer',
  async t => {
    const bob = await gateway.signIn('bob')
    const lines = await Promise.all(
      Array.from({ length: 2 * perUser }, () => open(t.after, gateway.url))
    )
    await until('the back-end holds nothing', () => held.length === 0)
    for (const [index, line] of lines.entries()) {
      line.socket.write(
        request('GET /api/things/held', [index % 2 === 0 ? signedIn : `Cookie: ${bob}`])
      )
    }
    const refused = () => lines.filter(line => line.received().includes('overloaded'))
    await until('the refused were logged', () => refused().length === 2 * perUser - 20)
    for (const line of refused()) {
      t.match(line.received(), /^HTTP\/1\.1 503 /)
      t.match(line.received(), /^retry-after: \d+\r?$/im)
      isEnvelope(t, line.received().split('\r\n\r\n')[1] ?? '')
    }
    await until('no more than its connections are in use', () => held.length === 16)
    t.equal(
      (await gateway.call('/api/account/profile', { cookie })).status,
      200,
      'what needs no back-end is answered'
    )
    for (const line of lines) line.socket.destroy()
    await until('the back-end holds nothing', () => held.length === 0)
    await serves(t, wire)
  }
)

t.test('a hundred and fifty pipelined requests are answered in their order', async t => {
  const line = await open(t.after, gateway.url)
  const ids = Array.from({ length: 150 }, (_, index) => `/api/nothing-${index}`)
  line.socket.write(ids.map(path => request(`GET ${path}`)).join(''))
  await Promise.race([line.until(received => answersBegun(received) === 150), line.closed])
  // Those beyond what one address may have at once are refused, each in its place.
  const statuses = [...line.received().matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
  t.same(
    [...new Set(statuses)].filter(status => status !== '404' && status !== '429'),
    []
  )
  t.ok(statuses.length === 150 || line.isClosed())
  await serves(t, wire)
})

t.test('after all that everyone can still sign in', async t => {
  t.equal((await gateway.call(loginPath, { json: { username: 'alice', password } })).status, 200)
})

t.end()

/** Slow, many, gone: no client keeps the gateway from others, however it stalls or leaves. */
import t from 'tap'
import { readdirSync } from 'node:fs'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { password } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json } from '../support/upstream.ts'
import { answersBegun, eventually, isEnvelope, type Line, loginPath, open, openWire, refuses, serves } from './support.ts'

const held: ServerResponse[] = []
const large: ServerResponse[] = []
const perUser = 12
const wire = await openWire(t.after, {
  gateway: { server: { headersTimeout: '500ms', requestTimeout: '1s', keepAlive: '800ms' } },
  limits: { inFlightPerUser: perUser, limits: { generous: { by: 'user', max: 100_000, window: '1m' } } }
}, {
  upstream: { connections: 16, queue: 4, idleTimeout: '1s' },
  answer: (question, response, seen) => {
    if (seen.url.includes('held')) return void held.push(response)
    if (!seen.url.includes('large')) return json(200, { ok: 1 })(question, response, seen)
    large.push(response)
    // 64 MiB, as fast as they are taken.
    const piece = Buffer.alloc(64 * 1024, 'x')
    response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': 1024 * piece.length })
    let sent = 0
    const more = () => {
      while (sent < 1024 && !response.destroyed) {
        sent++
        if (!response.write(piece)) return void response.once('drain', more)
      }
      response.end()
    }
    more()
  }
})
const { gateway, backend, cookie, signedIn } = wire

/** Sends one piece after the other until the gateway ends it. */
async function dribble (line: Line, pieces: () => string, everyMs = 100): Promise<number> {
  const start = performance.now()
  const timer = setInterval(() => { if (line.socket.writable) line.socket.write(pieces()) }, everyMs)
  await line.closed
  clearInterval(timer)
  return performance.now() - start
}

t.test('clients that never finish what they send are cut off in time', async t => {
  const field = () => `X-${Math.random().toString(36).slice(2)}: 1\r\n`
  const cases: Array<[string, string, () => string]> = [
    ['nothing at all', '', () => ''],
    ['a request line without end', 'GET /', () => 'a'],
    ['header fields without end', `GET /api/notices HTTP/1.1\r\nHost: gateway.test\r\n${signedIn}\r\n`, field],
    ['one field without end', 'GET /api/notices HTTP/1.1\r\nHost: gateway.test\r\nX-Slow: ', () => 'a'],
    ['a slow sign-in', request(`POST ${loginPath}`, ['Content-Type: application/json', 'Content-Length: 3000']), () => ' '],
    ['a slow chunked sign-in', request(`POST ${loginPath}`, ['Content-Type: application/json', 'Transfer-Encoding: chunked']), () => '1\r\n \r\n'],
    ['a slow small body', request('POST /api/things/slow', [signedIn, 'Content-Type: text/plain', 'Content-Length: 3000']), () => 'x'],
    ['a slow large body', request('POST /api/things/slow', [signedIn, 'Content-Type: text/plain', 'Content-Length: 300000']), () => 'x'],
    ['a slow chunked body', request('POST /api/things/slow', [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked']), () => '1\r\nx\r\n'],
    ['a slow body to sign-out', request('POST /api/account/logout', ['Content-Type: text/plain', 'Content-Length: 300000']), () => 'x'],
    ['a slow body to nowhere', request('POST /api/nothing', ['Content-Type: text/plain', 'Content-Length: 300000']), () => 'x'],
    ['a slow body of someone who may not', request('POST /api/things/slow', ['Content-Type: text/plain', 'Content-Length: 300000']), () => 'x'],
    ['a slow body of a GET', request('GET /api/open/slow', ['Content-Type: text/plain', 'Content-Length: 300000']), () => 'x'],
    ['a slow second request', request('GET /api/open/first') + 'GET /api/open/sec', () => 'o'],
    ['blank lines', '', () => '\r\n']
  ]
  const whole = backend.seen.filter(({ url }) => url.includes('slow')).length
  await Promise.all(cases.map(async ([title, head, pieces]) => {
    const line = await open(t.after, gateway.url)
    line.socket.write(head)
    const ms = await dribble(line, pieces)
    t.ok(ms < 4000, `${title}: ${Math.round(ms)} ms`)
    t.notMatch(line.received(), / 5\d\d /, title)
  }))
  t.equal(backend.seen.filter(({ url, method }) => method === 'POST' && url.includes('slow')).length, whole)
  await serves(t, wire)
})

t.test('an unused connection is closed, one in use is kept', async t => {
  const line = await open(t.after, gateway.url)
  line.socket.write(request('GET /api/open/1'))
  await line.until(received => answersBegun(received) === 1)
  line.socket.write(request('GET /api/open/2'))
  await line.until(received => answersBegun(received) === 2)
  const start = performance.now()
  await line.closed
  t.ok(performance.now() - start < 4000)
})

t.test('more header lines than allowed, or larger ones, are refused and never cut', async t => {
  const lines = (count: number) => request('GET /api/notices', [signedIn, ...Array.from({ length: count - 2 }, (_, index) => `X-${index}: 1`)])
  t.equal((await raw(gateway.url, lines(100))).status, 200)
  for (const count of [101, 102, 200]) await refuses(t, wire, `${count} lines`, lines(count), { statuses: [431] })
  for (const count of [1100, 2100]) await refuses(t, wire, `${count} lines`, lines(count).replaceAll(': 1', ':1'), { statuses: [431] })
  await refuses(t, wire, '40 KB of fields', request('GET /api/notices', [signedIn, `X-Large: ${'x'.repeat(40_000)}`]), { statuses: [431] })
  await refuses(t, wire, 'a long name', request('GET /api/notices', [signedIn, `${'X'.repeat(40_000)}: 1`]), { statuses: [431] })
  await refuses(t, wire, '150 lines, a length behind them', request('POST /api/things/1', [signedIn, ...Array.from({ length: 150 }, (_, index) => `X-${index}: 1`), 'Content-Length: 40'], 'GET /api/things/x HTTP/1.1\r\nHost: x\r\n\r\n'), { statuses: [431] })
  await serves(t, wire)
})

t.test('an endless chunk extension or trailer is cut off', async t => {
  const before = backend.seen.length
  for (const [start, piece] of [['1;', 'a'.repeat(5000)], ['1\r\nx\r\n0\r\n', `X-T: ${'t'.repeat(5000)}\r\n`]] as const) {
    const line = await open(t.after, gateway.url)
    line.socket.write(request('POST /api/things/1', [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'], start))
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
  const many = await raw(gateway.url, request('POST /api/things/1', [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'], extensions), { enough: () => false, timeoutMs: 4000 })
  t.ok(many.status === 413 || many.status === 200 || many.status === 0, `${many.status}`)
  t.ok(backend.seen.length <= before + 1)
  await serves(t, wire)
})

t.test('four hundred idle connections do not keep others waiting', async t => {
  const lines = await Promise.all(Array.from({ length: 400 }, () => open(t.after, gateway.url)))
  const start = performance.now()
  await serves(t, wire)
  t.ok(performance.now() - start < 1000)
  await Promise.all(lines.map(line => line.closed))
  await serves(t, wire)
})

t.test('three hundred half requests, reset or ended, leave no descriptor behind', async t => {
  const descriptors = () => readdirSync('/proc/self/fd').length
  await serves(t, wire)
  const before = descriptors()
  const halves = ['GET /api/no', 'POST /api/things/1 HTTP/1.1\r\nHost: gateway.test\r\n', request('POST /api/things/1', [signedIn, 'Content-Type: text/plain', 'Content-Length: 10'], 'half'), request('POST /api/things/1', [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'], '5\r\nhe'), '\r\n\r\n', request('GET /api/things/held', [signedIn])]
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
  t.ok(await eventually(() => descriptors() <= before + 10, 8000), `${descriptors()} descriptors, ${before} before`)
  held.splice(0)
})

t.test('when a client leaves, its request at the back-end ends too', async t => {
  for (const bytes of [request('GET /api/things/held', [signedIn]), request('POST /api/things/held', [signedIn, 'Content-Type: text/plain', 'Content-Length: 2'], 'ok'), request('POST /api/things/held', [signedIn, 'Content-Type: text/plain', 'Transfer-Encoding: chunked'], '2\r\nok\r\n0\r\n\r\n'), request('GET /api/open/held')]) {
    for (const begun of [false, true]) {
      const line = await open(t.after, gateway.url)
      line.socket.write(bytes)
      t.ok(await eventually(() => held.length === 1))
      const [answer] = held.splice(0)
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

t.test('a reader that stands still holds little of a large answer, and its connections for a short time only', async t => {
  const line = await open(t.after, gateway.url)
  line.socket.pause()
  const before = process.memoryUsage().arrayBuffers
  line.socket.write(request('GET /api/things/large', [signedIn]))
  t.ok(await eventually(() => large.length === 1))
  const [answer] = large.splice(0)
  await serves(t, wire)
  if (answer?.destroyed === false) await once(answer, 'close')
  t.equal(answer?.writableFinished, false, 'the back-end was told to stop')
  t.ok(process.memoryUsage().arrayBuffers - before < 16 * 2 ** 20, 'it was not collected')
  line.socket.resume()
  await line.closed
  t.ok(line.received().length < 60 * 2 ** 20, 'what it gets in the end is not taken for whole')
})

t.test('many readers that stand still do not keep the back-end from another user', async t => {
  const bob = await gateway.signIn('bob')
  const lines = await Promise.all(Array.from({ length: 2 * perUser }, () => open(t.after, gateway.url)))
  for (const line of lines) {
    line.socket.pause()
    line.socket.write(request('GET /api/things/large', [signedIn]))
  }
  t.ok(await eventually(() => large.length >= perUser))
  t.equal((await gateway.call('/api/notices', { cookie: bob })).status, 200)
  t.ok(gateway.log.some(({ code }) => code === 'limit.exceeded'), 'one user has only so many requests at once')
  t.equal(large.length, perUser)
  for (const answer of large.splice(0)) if (!answer.destroyed) await once(answer, 'close')
  t.equal((await gateway.call('/api/notices', { cookie: bob })).status, 200)
  for (const line of lines) line.socket.destroy()
  await Promise.all(lines.map(line => line.closed))
  let status = 0
  for (let turn = 0; turn < 100 && status !== 200; turn++) status = (await gateway.call('/api/notices', { cookie })).status
  t.equal(status, 200, 'who left has them back')
})

t.test('a back-end at its limit answers 503 at once to those who would only make its queue longer', async t => {
  const bob = await gateway.signIn('bob')
  const lines = await Promise.all(Array.from({ length: 2 * perUser }, () => open(t.after, gateway.url)))
  for (const [index, line] of lines.entries()) line.socket.write(request('GET /api/things/held', [index % 2 === 0 ? signedIn : `Cookie: ${bob}`]))
  const refused = () => lines.filter(line => line.received().includes('overloaded'))
  t.ok(await eventually(() => refused().length === 2 * perUser - 20))
  for (const line of refused()) {
    t.match(line.received(), /^HTTP\/1\.1 503 /)
    t.match(line.received(), /^retry-after: \d+\r?$/im)
    isEnvelope(t, line.received().split('\r\n\r\n')[1] ?? '')
  }
  t.ok(await eventually(() => held.length === 16), 'no more than its connections are in use')
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200, 'what needs no back-end is answered')
  for (const line of lines) line.socket.destroy()
  for (const answer of held.splice(0)) if (!answer.destroyed) await once(answer, 'close')
  await serves(t, wire)
})

t.test('a hundred and fifty pipelined requests are answered in their order', async t => {
  const line = await open(t.after, gateway.url)
  const ids = Array.from({ length: 150 }, (_, index) => `/api/nothing-${index}`)
  line.socket.write(ids.map(path => request(`GET ${path}`)).join(''))
  await Promise.race([line.until(received => answersBegun(received) === 150), line.closed])
  // Those beyond what one address may have at once are refused, each in its place.
  const statuses = [...line.received().matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status)
  t.same([...new Set(statuses)].filter(status => status !== '404' && status !== '429'), [])
  t.ok(statuses.length === 150 || line.isClosed())
  await serves(t, wire)
})

t.test('after all that everyone can still sign in', async t => {
  t.equal((await gateway.call(loginPath, { json: { username: 'alice', password } })).status, 200)
})

t.end()

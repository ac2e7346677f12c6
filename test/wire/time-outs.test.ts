/** Time-outs: who never finishes a request, never uses a connection or never reads is cut off when config says so, and not before. */
import t from 'tap'
import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { testGateway } from '../support/gateway.ts'
import { request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'
import {
  answerLarge,
  answersBegun,
  type Line,
  loginPath,
  open,
  openWire,
  serves,
  wireRoutes
} from './support.ts'
import { until } from '../support/until.ts'

const backend = await testUpstream(t.after)
const gatewayWith = (server: object) =>
  testGateway(t.after, { gateway: { server }, routes: wireRoutes(backend.url) })
const hasty = await gatewayWith({
  headersTimeout: '500ms',
  requestTimeout: '1s',
  keepAlive: '800ms'
})
const patient = await gatewayWith({ headersTimeout: '2m', requestTimeout: '2m', keepAlive: '2m' })

/** The hasty gateway refuses whatever a machine that stands still makes late, so what should go through is tried again. */
async function patiently<T>(attempt: () => Promise<T | undefined>): Promise<T | undefined> {
  for (let turn = 0; turn < 20; turn++) {
    const result = await attempt().catch(() => undefined)
    if (result !== undefined) return result
  }
  return undefined
}

const servesStill = async () =>
  (await patiently(async () =>
    (await hasty.call('/api/open/x')).status === 200 ? true : undefined
  )) === true

/** Sends one piece after the other until the gateway ends it. */
function dribble(line: Line, pieces: () => string): void {
  const timer = setInterval(() => {
    if (line.socket.writable) line.socket.write(pieces())
  }, 100)
  void line.closed.then(() => clearInterval(timer))
}

t.test('clients that never finish what they send are cut off in time', async t => {
  const cookie = await patiently(() => hasty.signIn())
  const signedIn = `Cookie: ${cookie ?? ''}`
  const field = () => `X-${Math.random().toString(36).slice(2)}: 1\r\n`
  const cases: Array<[title: string, head: string, pieces: () => string]> = [
    ['nothing at all', '', () => ''],
    ['a request line without end', 'GET /', () => 'a'],
    [
      'header fields without end',
      `GET /api/open/slow HTTP/1.1\r\nHost: gateway.test\r\n${signedIn}\r\n`,
      field
    ],
    [
      'one field without end',
      'GET /api/open/slow HTTP/1.1\r\nHost: gateway.test\r\nX-Slow: ',
      () => 'a'
    ],
    [
      'a slow sign-in',
      request(`POST ${loginPath}`, ['Content-Type: application/json', 'Content-Length: 3000']),
      () => ' '
    ],
    [
      'a slow chunked sign-in',
      request(`POST ${loginPath}`, [
        'Content-Type: application/json',
        'Transfer-Encoding: chunked'
      ]),
      () => '1\r\n \r\n'
    ],
    [
      'a slow small body',
      request('POST /api/open/slow', ['Content-Type: text/plain', 'Content-Length: 3000']),
      () => 'x'
    ],
    [
      'a slow large body',
      request('POST /api/open/slow', ['Content-Type: text/plain', 'Content-Length: 300000']),
      () => 'x'
    ],
    [
      'a slow chunked body',
      request('POST /api/open/slow', ['Content-Type: text/plain', 'Transfer-Encoding: chunked']),
      () => '1\r\nx\r\n'
    ],
    ['a slow second request', request('GET /api/open/first') + 'GET /api/open/sec', () => 'o'],
    ['blank lines', '', () => '\r\n']
  ]
  const refused: typeof cases = [
    [
      'a slow small body of someone signed in',
      request('POST /api/things/slow', [
        signedIn,
        'Content-Type: text/plain',
        'Content-Length: 3000'
      ]),
      () => 'x'
    ],
    [
      'a slow chunked body of someone signed in',
      request('POST /api/things/slow', [
        signedIn,
        'Content-Type: text/plain',
        'Transfer-Encoding: chunked'
      ]),
      () => '1\r\nx\r\n'
    ],
    [
      'a slow body to sign-out',
      request('POST /api/account/logout', ['Content-Type: text/plain', 'Content-Length: 300000']),
      () => 'x'
    ],
    [
      'a slow body to nowhere',
      request('POST /api/nothing', ['Content-Type: text/plain', 'Content-Length: 300000']),
      () => 'x'
    ],
    [
      'a slow body of someone who may not',
      request('POST /api/things/slow', ['Content-Type: text/plain', 'Content-Length: 300000']),
      () => 'x'
    ],
    [
      'a slow body of a GET',
      request('GET /api/open/slow', ['Content-Type: text/plain', 'Content-Length: 300000']),
      () => 'x'
    ]
  ]
  const start = async (url: string, [title, head, pieces]: (typeof cases)[number]) => {
    const line = await open(t.after, url)
    line.socket.write(head)
    dribble(line, pieces)
    return { title, line }
  }
  const others = await Promise.all(cases.map(each => start(patient.url, each)))
  const lines = await Promise.all([...cases, ...refused].map(each => start(hasty.url, each)))
  for (const { title, line } of lines) {
    await line.closed
    t.notMatch(line.received(), / 5\d\d /, title)
  }
  t.same(
    others.filter(({ line }) => line.isClosed()).map(({ title }) => title),
    [],
    'where more time is configured, those that began before still may go on'
  )
  for (const { line } of others) line.socket.destroy()
  t.equal(
    backend.seen.filter(({ url, method }) => method === 'POST' && url.includes('slow')).length,
    0
  )
  t.ok(await servesStill(), 'the next client is served')
})

t.test('an unused connection is closed, one in use is kept', async t => {
  const unused = await open(t.after, patient.url)
  unused.socket.write(request('GET /api/open/1'))
  await unused.until(received => answersBegun(received) === 1)
  t.ok(
    await patiently(async () => {
      const line = await open(t.after, hasty.url)
      for (const turn of [1, 2, 3]) {
        line.socket.write(request(`GET /api/open/${turn}`))
        await line.until(received => answersBegun(received) === turn)
      }
      await line.closed
      return true
    })
  )
  t.notOk(unused.isClosed(), 'where more time is configured, it stays')
})

t.test('four hundred connections that are never used are all closed', async t => {
  const lines = await Promise.all(Array.from({ length: 400 }, () => open(t.after, hasty.url)))
  await Promise.all(lines.map(line => line.closed))
  t.ok(await servesStill(), 'the next client is served')
})

t.test(
  'a reader that stands still holds little of a large answer, and its connections for a short time only',
  async t => {
    const large: ServerResponse[] = []
    const wire = await openWire(
      t.after,
      { gateway: { server: { idleTimeout: '1s' } } },
      {
        answer: (question, response, seen) => {
          if (!seen.url.includes('large')) return json(200, { ok: 1 })(question, response, seen)
          large.push(response)
          answerLarge(response)
        }
      }
    )
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const held = () => {
      collect()
      return process.memoryUsage().arrayBuffers
    }
    const line = await open(t.after, wire.gateway.url)
    line.socket.pause()
    const before = held()
    line.socket.write(request('GET /api/things/large', [wire.signedIn]))
    await until('the large answer began', () => large.length === 1)
    const [answer] = large
    await serves(t, wire)
    if (answer?.destroyed === false) await once(answer, 'close')
    t.equal(answer?.writableFinished, false, 'the back-end was told to stop')
    t.ok(held() - before < 16 * 2 ** 20, 'it was not collected')
    line.socket.resume()
    await line.closed
    t.ok(line.received().length < 60 * 2 ** 20, 'what it gets in the end is not taken for whole')
  }
)

t.end()

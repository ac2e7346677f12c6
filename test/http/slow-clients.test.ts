/** Clients that never finish what they send, never read or are gone are cut off in their time. */
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { standstill } from '../support/machine.ts'
import { type Line, open, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { answersBegun, loginPath, wireRoutes } from '../support/wire.ts'

const idleMs = 800
const size = 32 * 1024 * 1024
const big = JSON.stringify({ big: 'x'.repeat(12 * 1024 * 1024) })
/** Responses that wait, by the path at the back-end. */
const held = new Map<string, ServerResponse>()
const backend = await testUpstream(t.teardown, (question, response, seen) => {
  if (seen.url.includes('held')) held.set(seen.url, response)
  else if (seen.url.includes('big')) response.end(big)
  else json(200, { ok: 1 })(question, response, seen)
})
const shaped = { path: '/api/shaped/*', access: 'public', upstream: 'backend', shape: 'same' }
const gatewayWith = async (server: object) =>
  await testGateway(t.after, {
    gateway: { server, console: { root: 'dist' } },
    code: { 'dist/large.bin': '0'.repeat(size) },
    limits: { limits: {}, sizes: { shape: '16MiB' } },
    routes: {
      ...wireRoutes(backend.url, {}, { shaped }),
      shapes: { same: [{ drop: ['nothing'] }] }
    }
  })
const hasty = await gatewayWith({ requestTimeout: '1s', keepAlive: '800ms' })
const impatient = await gatewayWith({ idleTimeout: `${idleMs}ms` })
const patient = await gatewayWith({ requestTimeout: '2m', keepAlive: '2m', idleTimeout: '2m' })
const cookie = await patient.signIn()
const signedIn = `Cookie: ${cookie}`
let hastyCookie = ''
await until('a sign-in is quick enough', async () => {
  hastyCookie = await hasty.signIn()
  return true
})

/** Whoever is quick is served; a machine that stands still makes anyone slow, so it is tried again. */
const servesStill = async () =>
  await until('the next client is served', async () => {
    return (await hasty.call('/api/open/x')).status === 200
  })

/** Sends the head, then one piece after the other until the gateway ends it. */
async function dribble(url: string, title: string, head: string, piece: string) {
  const line = await open(t.after, url)
  line.socket.write(head)
  const timer = setInterval(() => {
    if (line.socket.writable) line.socket.write(piece)
  }, 100)
  void line.closed.then(() => clearInterval(timer))
  return { title, line }
}

type Slow = readonly [title: string, head: string, piece: string]
const heads: readonly Slow[] = [
  ['nothing at all', '', ''],
  ['blank lines', '', '\r\n'],
  ['a request line without end', 'GET /', 'a'],
  ['fields without end', 'GET /api/open/x HTTP/1.1\r\nHost: gateway.test\r\n', 'X-A: 1\r\n'],
  ['a slow second request', `${request('GET /api/open/1')}GET /api/open/sec`, 'o']
]
const bodiesOf = (line: string, fields: string[] = []): readonly Slow[] =>
  [
    ['Content-Length: 3000', 'x'],
    ['Content-Length: 300000', 'x'],
    ['Transfer-Encoding: chunked', '1\r\nx\r\n']
  ].map(([framing = '', piece = '']) => {
    const sent = [...fields, framing, 'Content-Type: application/json']
    return [`${line} ${framing}`, request(line, sent), piece]
  })
const awaited = bodiesOf('POST /api/open/slow')
const signIns = bodiesOf(`POST ${loginPath}`).filter(([title]) => !title.includes('300000'))
const bodies = [
  ...awaited,
  ...signIns,
  ...bodiesOf('POST /api/things/slow', [`Cookie: ${hastyCookie}`]),
  ...bodiesOf('POST /api/things/slow'),
  ...bodiesOf('POST /api/account/logout'),
  ...bodiesOf('GET /api/open/slow')
]

t.test('clients that never finish what they send are cut off in time', async t => {
  const lines = await Promise.all(heads.map(each => dribble(hasty.url, ...each)))
  const others = await Promise.all(
    [...awaited, ...signIns].map(each => dribble(patient.url, ...each))
  )
  const slow = await Promise.all(bodies.map(each => dribble(hasty.url, ...each)))
  const small = slow.filter(({ title }) => !title.includes('300000'))
  await Promise.all(small.map(({ line }) => line.closed))
  const cut = others.filter(({ line }) => line.isClosed()).map(({ title }) => title)
  t.same(cut, [], 'where more time is configured, those that began before still may go on')
  for (const { title, line } of [...lines, ...slow]) {
    await line.closed
    t.match(line.received(), /^$|^HTTP\/1\.1 [24]\d\d /, title)
    t.notMatch(line.received(), / 5\d\d /, title)
  }
  for (const { line } of others) line.socket.destroy()
  t.notOk(backend.seen.some(({ url, method }) => method === 'POST' && url.includes('slow')))
  await servesStill()
})

t.test('an upload slower than 1 KiB a second over 10 s is 408', async t => {
  const startedAt = performance.now()
  const large = ['Content-Length: 400000', 'Content-Type: text/plain']
  const slow = [
    ...awaited,
    ['much, then little', request('POST /api/open/slow', large, 'x'.repeat(100_000)), 'x'] as const
  ]
  const lines = await Promise.all(slow.map(each => dribble(impatient.url, ...each)))
  for (const { title, line } of lines) {
    await line.closed
    t.match(line.received(), /^HTTP\/1\.1 408 [^]*"errorCode":"request\.timeout"/, title)
  }
  t.ok(performance.now() - startedAt < 29_000, 'before the time for a whole request is over')
})

t.test('an unused connection is closed, one in use is kept', async t => {
  const unused = await open(t.after, patient.url)
  unused.socket.write(request('GET /api/open/1'))
  await unused.until(received => answersBegun(received) === 1)
  await until('one in use is kept, until it is used no more', async () => {
    const line = await open(t.after, hasty.url)
    for (const turn of [1, 2, 3]) {
      line.socket.write(request(`GET /api/open/${turn}`))
      await line.until(received => answersBegun(received) === turn)
    }
    await line.closed
    return true
  })
  t.notOk(unused.isClosed(), 'where more time is configured, it stays')
})

t.test('when a client leaves, its request at the back-end ends too', async t => {
  let count = 0
  for (const [path, arrived, method, framing, body] of [
    ['/api/things', '/store', 'GET', '', ''],
    ['/api/shaped', '/api/shaped', 'GET', '', ''],
    ['/api/things', '/store', 'POST', 'Content-Length: 2', 'ok'],
    ['/api/things', '/store', 'POST', 'Transfer-Encoding: chunked', '2\r\nok\r\n0\r\n\r\n']
  ] as const) {
    for (const hasBegun of [false, true]) {
      const name = `/held-${++count}`
      const { socket, until: received } = await open(t.after, patient.url)
      const fields = [signedIn, 'Content-Type: text/plain', framing].filter(each => each !== '')
      socket.write(request(`${method} ${path}${name}`, fields, body))
      await until('the back-end has it', () => held.has(arrived + name))
      const response = held.get(arrived + name) as ServerResponse
      if (hasBegun) {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"a":')
        if (path === '/api/things') await received(text => text.includes('{"a":'))
      }
      const closed = once(response, 'close')
      socket.destroy()
      await closed
      t.notOk(response.writableFinished, `${method} ${path} ${framing} ${hasBegun}`)
    }
  }
})

/** How many descriptors of this process, and so of the gateway, are a file of that name. */
function openFiles(name: string): number {
  return readdirSync('/proc/self/fd').filter(fd => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith(name)
    } catch {
      return false
    }
  }).length
}

/** Asks for something large, and reads no more than its beginning. */
async function stall(target: string): Promise<Line> {
  const line = await open(t.after, impatient.url)
  line.socket.write(request(`GET ${target}`))
  await line.until(received => received !== '')
  // A gateway on a machine that stands still refuses for a moment.
  if (line.received().includes('"overloaded"')) return await stall(target)
  line.socket.pause()
  return line
}

const logged = async (target: string, from: number) =>
  await impatient.logged(({ path, code }) => path === target && code !== 'overloaded', from)

t.test('a reader that stands still loses its connection, after once the time', async t => {
  for (const target of ['/large.bin', '/api/shaped/big', '/api/open/big']) {
    const from = impatient.log.length
    const startedAt = performance.now()
    const stoodStillMs = standstill()
    const { socket } = await stall(target)
    const line = await logged(target, from)
    const ms = performance.now() - startedAt
    t.match(line, { status: 499, code: 'request.timeout' }, target)
    t.ok(ms > 0.9 * idleMs, `${target}: not before its time, after ${Math.round(ms)} ms`)
    // A pause of this process looks like a reader's progress: its time begins anew.
    const pausedMs = stoodStillMs()
    const anew = pausedMs > idleMs / 20 ? idleMs : 0
    t.ok(ms < 1.3 * idleMs + anew + pausedMs, `${target}: case V4, after ${Math.round(ms)} ms`)
    socket.destroy()
  }
  t.equal(openFiles('large.bin'), 0)
})

t.test('a reader that is slow, but reads, gets the whole file', async t => {
  const from = impatient.log.length
  const startedAt = performance.now()
  const { socket, received, isClosed } = await stall('/large.bin')
  let mayHave = 0
  const timer = setInterval(() => {
    mayHave += 2 ** 20
    socket.resume()
  }, idleMs / 8)
  socket.on('data', () => {
    if (received().length > mayHave) socket.pause()
  })
  await until('all has come, or the connection ended', () => received().length > size || isClosed())
  clearInterval(timer)
  t.ok(received().length > size)
  t.ok(performance.now() - startedAt > 2 * idleMs, 'longer than a reader may stand still')
  t.match(await logged('/large.bin', from), { status: 200 })
})

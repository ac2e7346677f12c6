/** More requests than an upstream has connections: they wait, bounded, and leave nothing behind. */
import { Agent, type ServerResponse, request as send } from 'node:http'
import type { Socket } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { lookAgain } from '../support/look-again.ts'
import { open, request } from '../support/raw.ts'
import { retainedBytes } from '../support/retained.ts'
import { shorterTimes } from '../support/shorter-times.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { isEnvelope, wireRoutes } from '../support/wire.ts'

/** A gateway before a back-end that holds what has `held` in its path until `finish`. */
async function before(t: Test, upstream: object) {
  const held: ServerResponse[] = []
  const backend = await testUpstream(t.after, (question, response, seen) => {
    if (seen.url.includes('held')) held.push(response)
    else json(200, { ok: 1 })(question, response, seen)
  })
  const gateway = await testGateway(t.after, {
    limits: { limits: {}, inFlightPerUser: 10_000 },
    routes: wireRoutes(backend.url, upstream)
  })
  const metric = async (name: string) => {
    const line = new RegExp(`^console_gateway_upstream_${name}\\{.*\\} (\\d+)$`, 'm')
    return Number(line.exec(await gateway.metrics())?.[1])
  }
  const lines = async (count: number) =>
    await Promise.all(Array.from({ length: count }, () => open(t.after, gateway.url)))
  const finish = () => held.shift()?.end()
  return { backend, gateway, held, finish, metric, lines }
}

t.test('thousands of large requests that time out leave nothing', async t => {
  // Of the time in the queue.
  shorterTimes(t.after, { 10_000: 300 })
  const upstream = { connections: 4, queue: 10_000, responseTimeout: '30m' }
  const { backend, gateway, held, finish, metric } = await before(t, upstream)
  const agent = new Agent({ keepAlive: true, maxSockets: 200 })
  t.after(() => agent.destroy())
  const body = Buffer.alloc(60_000, 'x')
  const headers = { 'content-length': body.length, 'content-type': 'text/plain' }
  const options = { method: 'POST', agent, headers }
  const post = () =>
    new Promise<number>((resolve, reject) => {
      send(`${gateway.url}/api/open/held`, options, response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
        .on('error', reject)
        .end(body)
    })
  const posts = (count: number) => Promise.all(Array.from({ length: count }, post))
  const first = posts(4)
  await until('all connections are taken', () => held.length === 4)
  const statuses = await posts(500)
  const retained = await retainedBytes(async () => statuses.push(...(await posts(7500))))
  const grown = retained / 2 ** 20
  t.same([...new Set(statuses)], [503], 'not that the upstream is slow')
  t.same([await metric('waiting'), await metric('in_flight')], [0, 4])
  t.ok(grown < 150, `${Math.round(grown)} MiB more than after the first 500`)
  while (held.length > 0) finish()
  t.same(await first, [200, 200, 200, 200])
  await wait(100)
  t.equal(backend.begun(), 4, 'what timed out opens no connection afterwards')
  t.equal(await metric('in_flight'), 0)
})

t.test('who leaves while it waits is forgotten at once; others come in their order', async t => {
  const { backend, gateway, held, finish, metric, lines } = await before(t, { connections: 1 })
  const running = gateway.call('/api/open/held-first')
  await until('the connection is taken', () => held.length === 1)
  const left = await lines(20)
  for (const { socket } of left) socket.write(request('GET /api/open/left'))
  await until('all wait', async () => (await metric('waiting')) === 20)
  for (const { socket } of left) socket.resetAndDestroy()
  await until('none waits', async () => (await metric('waiting')) === 0)
  const names = ['b', 'c', 'a']
  const waiting = [running]
  for (const name of names) {
    waiting.push(gateway.call(`/api/open/${name}`))
    await until('it waits', async () => (await metric('waiting')) === waiting.length - 1)
  }
  finish()
  for (const { status } of await Promise.all(waiting)) t.equal(status, 200)
  const paths = backend.seen.map(({ url }) => url.replace('/public/', ''))
  t.same(paths, ['held-first', ...names])
})

t.test('time in the queue is no time of the upstream’s', async t => {
  const upstream = { connections: 1, responseTimeout: '2s' }
  const { gateway, held, finish } = await before(t, upstream)
  const look = async () => {
    const calls = [1, 2, 3].map(() => gateway.call('/api/open/held'))
    for (let turn = 0; turn < 3; turn++) {
      await until('one has its turn', () => held.length === 1)
      await wait(900)
      finish()
    }
    return (await Promise.all(calls)).map(({ status }) => status)
  }
  const all = [200, 200, 200]
  t.same(await lookAgain(look, seen => isDeepStrictEqual(seen, all)), all)
})

t.test('an upstream whose queue is full is 503 at once', async t => {
  const { gateway, held, lines } = await before(t, { connections: 16, queue: 4 })
  const cookie = await gateway.signIn()
  const all = await lines(24)
  for (const { socket } of all) {
    socket.write(request('GET /api/things/held', [`Cookie: ${cookie}`]))
  }
  const refused = () => all.filter(line => line.received().includes('overloaded'))
  await until('more than its connections and its queue are refused', () => refused().length === 4)
  for (const line of refused()) {
    t.match(line.received(), /^HTTP\/1\.1 503 [^]*^retry-after: \d+\r?$/im)
    isEnvelope(t, line.received().split('\r\n\r\n')[1] ?? '')
  }
  await until('no more than its connections are in use', () => held.length === 16)
  const profile = await gateway.call('/api/account/profile', { cookie })
  t.equal(profile.status, 200, 'what needs no back-end is answered')
})

const chunks = ['Transfer-Encoding: chunked', 'Content-Type: text/plain']
const chunk = (size: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`

const ways: Readonly<Record<string, (socket: Socket) => unknown>> = {
  'a reset': socket => socket.resetAndDestroy(),
  'an end within the body': socket => socket.end(),
  'a malformed chunk': socket => socket.end('zz\r\n')
}

/** Ten uploads at once end in each way, once `isTime`; the process goes on. */
async function abandon(
  t: Test,
  { gateway, lines }: Awaited<ReturnType<typeof before>>,
  size: number,
  isTime: () => Promise<boolean> | boolean
): Promise<void> {
  const bytes = request('POST /api/open/x', chunks, chunk(size))
  for (const [title, leave] of Object.entries(ways)) {
    const uploads = await lines(10)
    await Promise.all(
      uploads.map(({ socket }) => new Promise(resolve => socket.write(bytes, resolve)))
    )
    await until('it is time to leave', isTime)
    for (const { socket } of uploads) leave(socket)
    await Promise.all(uploads.map(line => line.closed))
    t.equal((await gateway.call('/api/session')).status, 401, `served after ${title}`)
  }
}

// The larger is more than is collected before an upstream is asked.
t.test('uploads that are abandoned end alone: they wait for others, or are refused', async t => {
  const all = await before(t, { connections: 1 })
  const { backend, metric, lines } = all
  const [first] = await lines(1)
  first?.socket.write(request('GET /api/open/held'))
  await until('the only connection is taken', () => backend.begun() === 1)
  const waits = async (count: number) => (await metric('waiting')) === count
  await abandon(t, all, 5, () => waits(0))
  await abandon(t, all, 98_304, () => waits(10))
  await until('none of them waits', () => waits(0))
  t.equal(backend.begun(), 1, 'none of them reached the upstream')
  await backend.close()
  for (const size of [5, 98_304]) await abandon(t, all, size, () => true)
})

/** More requests than an upstream has connections: they wait, bounded, and leave nothing behind. */
import { setTimeout as wait } from 'node:timers/promises'
import { Agent, request as send } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { lookAgain } from '../support/look-again.ts'
import { askOps } from '../support/ops.ts'
import { request } from '../support/raw.ts'
import { shorterTimes } from '../support/shorter-times.ts'
import { until } from '../support/until.ts'
import { testUpstream } from '../support/upstream.ts'
import { open, wireRoutes } from '../support/wire.ts'

const limits = {
  limits: { all: { by: 'address', max: 1_000_000, window: '1h' } },
  inFlightPerUser: 10_000
}

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What lives after a collection: of the resident memory a part is free, and how much is up to the machine. */
function liveBytes(): number {
  collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function metric(gateway: TestGateway, name: string): Promise<number> {
  const text = await (await askOps(gateway.opsUrl, '/metrics')).text()
  return Number(new RegExp(`^${name}\\{.*\\} (\\d+)$`, 'm').exec(text)?.[1])
}

t.test('thousands of large requests that time out leave nothing', async t => {
  // Of the time in the queue.
  shorterTimes(t.after, { 10_000: 300 })
  const held: Array<() => void> = []
  const upstream = await testUpstream(t.after, (_request, response) =>
    held.push(() => response.end())
  )
  const routes = wireRoutes(upstream.url, {
    connections: 4,
    queue: 10_000,
    responseTimeout: '30m'
  })
  const gateway = await testGateway(t.after, { limits, routes })
  const agent = new Agent({ keepAlive: true, maxSockets: 200 })
  t.after(() => agent.destroy())
  const body = Buffer.alloc(60_000, 'x')
  const post = () =>
    new Promise<number>((resolve, reject) => {
      const headers = { 'content-length': body.length, 'content-type': 'text/plain' }
      const asked = send(
        `${gateway.url}/api/open/x`,
        { method: 'POST', agent, headers },
        answer => {
          answer.resume().on('end', () => resolve(answer.statusCode ?? 0))
        }
      )
      asked.on('error', reject)
      asked.end(body)
    })
  const first = Array.from({ length: 4 }, post)
  await until('all connections are taken', () => upstream.seen.length === 4)
  const statuses = new Map<number, number>()
  const flood = async (count: number) => {
    const codes = await Promise.all(Array.from({ length: count }, post))
    for (const code of codes) statuses.set(code, (statuses.get(code) ?? 0) + 1)
  }
  await flood(500)
  const before = liveBytes()
  await flood(7500)
  const grown = (liveBytes() - before) / 2 ** 20
  t.same(
    [...statuses],
    [[503, 8000]],
    'who waited in vain is told so, and not that the upstream is slow'
  )
  t.equal(await metric(gateway, 'console_gateway_upstream_waiting'), 0)
  t.equal(await metric(gateway, 'console_gateway_upstream_in_flight'), 4)
  t.ok(grown < 150, `${Math.round(grown)} MiB more than after the first 500`)
  for (const finish of held.splice(0)) finish()
  t.same(await Promise.all(first), [200, 200, 200, 200])
  const begun = upstream.begun()
  t.equal(begun, 4)
  await wait(100)
  t.equal(upstream.begun(), begun, 'what timed out opens no connection afterwards')
  t.equal(await metric(gateway, 'console_gateway_upstream_in_flight'), 0)
})

t.test('a client that leaves while it waits is forgotten at once', async t => {
  const held: Array<() => void> = []
  const upstream = await testUpstream(t.after, (_request, response) =>
    held.push(() => response.end())
  )
  const routes = wireRoutes(upstream.url, { connections: 1 })
  const gateway = await testGateway(t.after, { limits, routes })
  const running = gateway.call('/api/open/first')
  await until('the connection is taken', () => held.length === 1)
  const lines = await Promise.all(Array.from({ length: 20 }, () => open(t.after, gateway.url)))
  for (const line of lines) line.socket.write(request('GET /api/open/left'))
  const waiting = async () => await metric(gateway, 'console_gateway_upstream_waiting')
  await until('all wait', async () => (await waiting()) === 20)
  for (const line of lines) line.socket.resetAndDestroy()
  await until('none waits', async () => (await waiting()) === 0)
  const last = gateway.call('/api/open/last')
  await until('one waits', async () => (await waiting()) === 1)
  held.shift()?.()
  t.equal((await running).status, 200)
  await until('the last one has its turn', () => held.length === 1)
  held.shift()?.()
  t.equal((await last).status, 200)
  t.same(
    upstream.seen.map(({ url }) => url),
    ['/public/first', '/public/last']
  )
})

t.test('time in the queue is no time of the upstream’s', async t => {
  const held: Array<() => void> = []
  const upstream = await testUpstream(t.after, (_request, response) =>
    held.push(() => response.end())
  )
  const routes = wireRoutes(upstream.url, { connections: 1, responseTimeout: '2s' })
  const gateway = await testGateway(t.after, { limits, routes })
  const look = async () => {
    const calls = [1, 2, 3].map(() => gateway.call('/api/open/x'))
    for (let turn = 0; turn < 3; turn++) {
      await until('one has its turn', () => held.length === 1)
      await wait(900)
      held.shift()?.()
    }
    return (await Promise.all(calls)).map(({ status }) => status)
  }
  const all = [200, 200, 200]
  t.same(await lookAgain(look, seen => isDeepStrictEqual(seen, all)), all)
})

t.end()

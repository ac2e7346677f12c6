/** What many connections cost in memory: a thousand quiet WebSockets, and large bodies both ways. */
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { pipeline, Readable } from 'node:stream'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { adopt } from '../../src/observability/emitters.ts'
import { configFolder } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { listen } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { dial, webSocketUpstream } from '../support/websocket.ts'

t.setTimeout(900_000)

const limits = {
  inFlightPerUser: 200,
  limits: { user: { by: 'user', max: 100_000, window: '1m' } }
}
const connections = 1000
const maxHeapKiB = 12
/** The system gives and takes memory by large pieces: from 29 to 44 KiB each in runs of one build. */
const maxResidentKiB = 60

t.test(`${connections} idle WebSockets take less than ${maxHeapKiB} KiB of heap each`, async t => {
  const backend = await webSocketUpstream(t.after)
  // Without Redis the requests that `why` tells of are in memory, and each handshake is one.
  const redis = await testRedis(t.after)
  const folder = await configFolder({
    redis: redis.url,
    backend: { url: backend.url, connections: 400 },
    routes: {
      // A user has ten on each.
      routes: Object.fromEntries(
        Array.from({ length: connections / 10 }, (_, index) => [`chat-${index}`, { websocket: {} }])
      )
    },
    limits
  })
  const gateway = await startGatewayProcess(t.after, folder)
  await gateway.ready()
  const cookie = await gateway.signIn()
  const openAll = async () => {
    const opened = []
    for (let index = 0; index < connections / 10; index += 5) {
      const urls = Array.from({ length: 50 }, (_, each) => {
        return `${gateway.url}/api/chat-${index + (each % 5)}`
      })
      opened.push(...(await Promise.all(urls.map(url => dial(url, { cookie })))))
    }
    return opened
  }
  // What the first ones load and compile is no connection's.
  for (const client of await openAll()) client.terminate()
  await until('the first ones are gone', () => backend.open().length === 0)
  const before = await gateway.collect()
  await openAll()
  let after = await gateway.collect()
  const kib = (of: 'rss' | 'heapUsed') =>
    (after.memory[of] - before.memory[of]) / 1024 / connections
  // What their opening took, such as lines of the log that wait, is gone soon, but not at once.
  for (let tries = 0; tries < 10 && kib('heapUsed') >= maxHeapKiB; tries++) {
    await wait(500)
    after = await gateway.collect()
  }
  t.ok(kib('heapUsed') < maxHeapKiB, `${kib('heapUsed').toFixed(1)} KiB of heap each`)
  t.ok(kib('rss') < maxResidentKiB, `${kib('rss').toFixed(1)} KiB resident each`)
  t.equal(backend.open().length, connections)
  await gateway.call('/api/account/logout', { method: 'POST', cookie })
  await until('all end with their session', () => backend.open().length === 0)
})

const transfers = 20
/** More show more: TRANSFER_MB=500. */
const megabytes = Number(process.env['TRANSFER_MB'] ?? 20)
const bytes = megabytes * 1_000_000
/** Measured: 17 to 60 MB with 20 MB each, on a busy machine; 85 MB with 150 as with 500 MB each. */
const maxGrowthMB = 120

/** A body without end in memory: one piece, again and again. */
function bodyOf(length: number): Readable {
  const piece = Buffer.alloc(64 * 1024, 'x')
  function* pieces() {
    for (let left = length; left > 0; left -= piece.length) yield piece.subarray(0, left)
  }
  return adopt(Readable.from(pieces()))
}

async function countBytes(readable: Readable): Promise<number> {
  let count = 0
  for await (const chunk of readable) count += (chunk as Buffer).length
  return count
}

t.test(`${2 * transfers} transfers of ${megabytes} MB at once: memory stays`, async t => {
  const server = createServer((incoming, response) => {
    if (incoming.method === 'GET') {
      response.writeHead(200, { 'content-type': 'application/zip', 'content-length': bytes })
      return void pipeline(bodyOf(bytes), response, () => {})
    }
    void countBytes(incoming).then(
      received => response.end(JSON.stringify({ received })),
      () => {}
    )
  })
  const port = await listen(server)
  t.after(() => server.close())
  const methods = ['GET', 'POST']
  const folder = await configFolder({
    backend: `http://127.0.0.1:${port}`,
    routes: { routes: { files: { methods, maxBody: '2GiB', timeout: '1h' } } },
    limits
  })
  const gateway = await startGatewayProcess(t.after, folder)
  const cookie = await gateway.signIn()

  const transfer = async (method: 'GET' | 'POST', length: number) =>
    await new Promise<Readable>((resolve, reject) => {
      const headers = { cookie, ...(method === 'POST' && { 'content-length': length }) }
      const asked = request(`${gateway.url}/api/files`, { method, agent: false, headers })
      asked.on('error', reject).on('response', response => resolve(adopt(response)))
      if (method === 'POST') pipeline(bodyOf(length), asked, () => {})
      else asked.end()
    })
  const upload = async (length: number) => {
    const [answer] = await (await transfer('POST', length)).toArray()
    return (JSON.parse(String(answer)) as { received: number }).received
  }
  const download = async () => await countBytes(await transfer('GET', 0))

  // What the first ones load and compile is no transfer's.
  for (let n = 0; n < 3; n++) t.equal(await upload(200_000), 200_000)
  const idle = await gateway.collect()
  let peak = 0
  const sample = setInterval(() => {
    const pages = Number(readFileSync(`/proc/${gateway.pid}/statm`, 'latin1').split(' ')[1])
    peak = Math.max(peak, pages * 4096)
  }, 20)
  t.after(() => clearInterval(sample))
  const counts = await Promise.all(
    Array.from({ length: transfers }, () => [upload(bytes), download()]).flat()
  )
  t.same([...new Set(counts)], [bytes], 'each came whole')
  const growthMB = (peak - idle.memory.rss) / 1e6
  t.comment(`${(idle.memory.rss / 1e6).toFixed(0)} MB idle`)
  t.ok(growthMB < maxGrowthMB, `+${growthMB.toFixed(1)} MB at most`)
})

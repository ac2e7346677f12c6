/** What a thousand WebSockets cost that nobody writes to. */
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { standstill, waitedForCoreMs } from '../support/machine.ts'
import { testRedis } from '../support/redis.ts'
import { readyProcess } from '../support/session-process.ts'
import { until } from '../support/until.ts'
import { closed, dial, webSocketUpstream } from '../support/websocket.ts'

const connections = 1000
const maxHeapKiB = 12
/** The system gives and takes memory by large pieces: from 29 to 44 KiB each in runs of one build. */
const maxResidentKiB = 60

t.test(`${connections} idle WebSockets take less than ${maxHeapKiB} KiB of heap each`, async t => {
  const backend = await webSocketUpstream(t.after)
  // Without Redis the requests that `why` tells of are in memory, and each handshake is one.
  const redis = await testRedis(t.after)
  const { gateway, signIn } = await readyProcess(t, {
    gateway: { redis: { url: redis.url }, session: { secrets: ['${SESSION_SECRET}'] } },
    routes: {
      upstreams: { b: { url: backend.url, connections: 400 } },
      // A user has ten on each.
      routes: Object.fromEntries(
        Array.from({ length: connections / 10 }, (_, index) => [
          `chat-${index}`,
          { path: `/api/chat/${index}`, upstream: 'b', websocket: {} }
        ])
      )
    },
    limits: { inFlightPerUser: 200, limits: { user: { by: 'user', max: 100_000, window: '1m' } } }
  })
  const cookie = await signIn()
  const openSome = async (count: number) => {
    const opened = []
    for (let index = 0; index < count / 10; index += 5) {
      const urls = Array.from({ length: 50 }, (_, each) => {
        return `${gateway.url}/api/chat/${index + (each % 5)}`
      })
      opened.push(...(await Promise.all(urls.map(url => dial(url, { cookie })))))
    }
    return opened
  }
  // What the first ones load and compile is no connection's.
  for (const client of await openSome(connections)) client.terminate()
  await until('the first ones are gone', () => backend.open().length === 0)
  const before = await gateway.collect()
  const clients = await openSome(connections)
  let after = await gateway.collect()
  const kib = (of: 'rss' | 'heapUsed') =>
    (after.memory[of] - before.memory[of]) / 1024 / connections
  // What their opening took, such as lines of the log that wait, is gone soon, but not at once.
  for (let tries = 0; tries < 10 && kib('heapUsed') >= maxHeapKiB; tries++) {
    await wait(500)
    after = await gateway.collect()
  }
  t.comment(`resident: ${kib('rss').toFixed(1)} KiB, heap: ${kib('heapUsed').toFixed(1)} KiB each`)
  t.ok(kib('heapUsed') < maxHeapKiB, `${kib('heapUsed').toFixed(1)} KiB of heap each`)
  t.ok(kib('rss') < maxResidentKiB, `${kib('rss').toFixed(1)} KiB resident each`)
  const last = clients.at(-1)
  const told = last && closed(last)
  await fetch(`${gateway.url}/api/account/logout`, { method: 'POST', headers: { cookie } })
  const startedAt = performance.now()
  const stoodStillMs = standstill()
  const machineMs = () => waitedForCoreMs([process.pid, gateway.pid])
  const waitedBefore = machineMs()
  t.match(await told, { code: 4401 })
  const ms = performance.now() - startedAt
  const waitedMs = machineMs() - waitedBefore + stoodStillMs()
  t.comment(`${Math.round(ms)} ms, of them ${Math.round(waitedMs)} ms of standing still`)
  t.ok(
    ms < 2000 + waitedMs,
    `all of them end with their session, the last one after ${Math.round(ms)} ms`
  )
})

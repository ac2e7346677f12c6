/** How much more than a limit passes over several processes; a still Redis refuses nobody. */
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { configFolder } from '../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../support/gateway-process.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'

const windowMs = 60_000
const limits = [600, 30, 5]
const minutely = { by: 'address', window: `${windowMs}ms` }
const routeOf = (max: number) => `most-${max}`

/** Processes with one Redis; `call` gives the status of a client's request at one of the first of them. */
async function fleet(t: Test, size: number) {
  const redis = await testRedis(t.after)
  const { url } = await testUpstream(t.after)
  const byName = (entry: (max: number) => object) =>
    Object.fromEntries(limits.map(max => [routeOf(max), entry(max)]))
  const folder = await configFolder({
    gateway: { server: { trustedProxies: ['127.0.0.1'] } },
    redis: redis.url,
    backend: url,
    routes: { routes: byName(max => ({ path: `/api/${max}`, access: 'public' })) },
    limits: {
      limits: byName(max => ({ ...minutely, max, routes: [routeOf(max)] }))
    }
  })
  const all: GatewayProcess[] = []
  for (let index = 0; index < size; index++) {
    const process = await startGatewayProcess(t.after, folder)
    await process.ready()
    all.push(process)
  }
  const agent = new Agent({ keepAlive: true, maxSockets: 12 })
  t.after(() => agent.destroy())
  let turn = 0
  const call = async (max: number, client: string, processes: number) => {
    const target = `${all[turn++ % processes]?.url}/api/${max}`
    const asked = get(target, { agent, headers: { 'x-forwarded-for': client } })
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    await once(response.resume(), 'end')
    return response.statusCode
  }
  // Counts have a connection of their own: each process has used it.
  for (let index = 0; index < size * 2; index++) await call(5, `203.0.113.${index}`, size)
  return { redis, call }
}

t.test('a limit is exceeded by little, once, however many processes there are', async t => {
  const { call } = await fleet(t, 10)
  let client = 1
  for (const processes of [2, 4, 10]) {
    for (const max of limits) {
      for (const way of ['at once', 'spread'] as const) {
        const address = `198.51.100.${client++}`
        const calls = max * 3
        const startedAt = performance.now()
        const answers: Array<Promise<number | undefined>> = []
        for (let index = 0; index < calls; index++) {
          if (way === 'spread') {
            await wait(startedAt + (index * 12_000) / calls - performance.now())
          }
          answers.push(call(max, address, processes))
        }
        const statuses = await Promise.all(answers)
        const passed = statuses.filter(status => status === 200).length
        t.ok(statuses.every(status => status === 200 || status === 429))
        const refilled = Math.floor(((performance.now() - startedAt) * max) / windowMs)
        const more = passed - max - refilled
        const share = `${((100 * more) / max).toFixed(1)} %`
        t.comment(
          `max ${max}, ${processes} processes, ${way}: ${passed} passed, ${more} more (${share})`
        )
        t.ok(passed >= max, 'none is refused too early')
        t.ok(more <= (max > 60 ? max / 4 : 0), 'a quarter more at most, small limits exact')
      }
    }
  }
})

t.test('Redis stands still for 20 s: who is at 60 % of a limit is never refused', async t => {
  const { redis, call } = await fleet(t, 2)
  const statuses = new Map<number | undefined, number>()
  const eachMs = windowMs / (600 * 0.6)
  const startedAt = performance.now()
  let sent = 0
  const goOnFor = async (ms: number) => {
    const end = performance.now() + ms
    while (performance.now() < end) {
      await wait(startedAt + sent * eachMs - performance.now())
      sent++
      const status = await call(600, '192.0.2.1', 2)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  await goOnFor(10_000)
  redis.signal('SIGSTOP')
  await goOnFor(20_000)
  redis.signal('SIGCONT')
  await goOnFor(20_000)
  t.same([...statuses.keys()], [200])
  t.ok((statuses.get(200) ?? 0) > 250)
})

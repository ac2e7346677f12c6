import { rmSync } from 'node:fs'
import t, { type Test } from 'tap'
import { configFolder } from '../support/gateway.ts'
import { opsSecret } from '../support/gateway-process.ts'
import { isAlive, startRestartable } from '../support/restartable.ts'
import { steadyLoad } from '../support/steady-load.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

// The whole size: REQUESTS=10000
const requests = Number(process.env['REQUESTS'] ?? 2000)

async function open(
  t: Test,
  { gateway = {}, words = [] }: { gateway?: Record<string, unknown>; words?: string[] } = {}
) {
  const upstream = await testUpstream(t.after)
  const folder = await configFolder({
    gateway: {
      ops: { listen: '127.0.0.1:0', secret: '${OPS_SECRET}' },
      server: { listen: '127.0.0.1:0', keepAlive: '3s' },
      ...gateway
    },
    routes: {
      upstreams: { b: { url: upstream.url } },
      routes: {
        data: { path: '/api/data', methods: ['GET', 'POST'], upstream: 'b', access: 'public' }
      }
    },
    limits: { limits: {} }
  })
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const gatewayProcess = await startRestartable(t.after, {
    folder,
    words,
    environment: { OPS_SECRET: opsSecret, SECRET: opsSecret }
  })
  return { folder, upstream, gateway: gatewayProcess }
}

for (const workers of [1, 2]) {
  const name = `0 of ${requests} requests fail while the process with ${workers} workers is replaced twice`
  t.test(name, t => replaceTwice(t, workers))
}

async function replaceTwice(t: Test, workers: number): Promise<void> {
  const redis = workers > 1 ? await testRedis(t.after) : undefined
  const { gateway } = await open(t, {
    gateway: {
      server: { listen: '127.0.0.1:0', keepAlive: '3s', workers },
      ...(redis && { redis: { url: redis.url }, session: { secrets: ['${SECRET}'] } })
    }
  })
  const load = steadyLoad({ url: `${gateway.url}/api/data`, kept: 16, fresh: 4 })
  await until('the load runs', () => load.sent() > requests / 8)
  const first = await gateway.restart()
  t.match(first, { outcome: 'restarted' })
  await until('the load goes on', () => load.sent() > requests / 2)
  const second = await gateway.restart()
  t.match(second, { outcome: 'restarted' })
  await until('the load is done', () => load.sent() > requests)
  const { failures } = await load.stop()
  t.same(failures, [])
  t.equal(await gateway.serving(), second['pid'])
  await until('the former processes ended', () => ![gateway.pid, first['pid']].some(isAlive))
}

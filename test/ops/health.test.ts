import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { dependenciesOf } from '../../src/ops/health.ts'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

interface Shown {
  readonly status: string
  readonly dependencies: ReadonlyArray<Record<string, unknown> & { readonly name: string }>
}

t.test('/readyz?verbose tells operators each dependency, and since when', async t => {
  const startedAt = Date.now()
  const redis = await testRedis(t.after)
  const url = `http://127.0.0.1:${await freePort()}`
  const gateway = await testGateway(
    t.after,
    {
      gateway: {
        redis: { url: redis.url, commandTimeout: '1s', connectTimeout: '1s' },
        session: { secrets: ['${SESSION_SECRET}'] }
      },
      routes: {
        upstreams: { b: { url } },
        routes: { r: { path: '/api/r', upstream: 'b', access: 'public' } }
      }
    },
    { SESSION_SECRET: 's'.repeat(32) }
  )
  const verbose = async () => (await (await gateway.ops('/readyz?verbose')).json()) as Shown
  const named = async (name: string) =>
    (await verbose()).dependencies.find(each => each.name === name) ?? { name }
  await until('Redis is up', async () => (await named('redis'))['state'] === 'up')
  t.match((await verbose()).dependencies, [
    { kind: 'config', state: 'up' },
    { kind: 'redis', state: 'up' },
    { kind: 'upstream', name: 'b', state: 'up', addresses: [{ state: 'up' }] }
  ])

  const failedAt = Date.now()
  await until('the breaker opens', async () => {
    await gateway.call('/api/r')
    return (await named('b'))['state'] === 'down'
  })
  const since = (each: Record<string, unknown>) => Date.parse(String(each['since']))
  t.ok(since(await named('b')) >= failedAt)
  t.ok(since(await named('redis')) >= startedAt && since(await named('redis')) <= failedAt)

  await redis.kill()
  await until('Redis is down', async () => (await named('redis'))['state'] === 'down')
  t.ok(since(await named('redis')) >= failedAt)

  writeFileSync(join(gateway.folder, 'routes.yaml'), 'routes: 1')
  await gateway.ops('/ops/api/reload', { json: {} })
  t.match(await named('config'), { state: 'degraded', detail: 'the files were refused' })

  const open = await fetch(`${gateway.opsUrl}/readyz?verbose`)
  t.match(Object.keys((await open.json()) as object), ['status'], 'nobody else sees any of it')
})

t.test('an upstream is degraded since its first address failed, and down since its last', t => {
  const address = (name: string, state: 'up' | 'open' | 'unhealthy', since: number) => {
    return { upstream: 'b', address: name, state, inFlight: 0, since }
  }
  const others = { config: { files: { state: 'running' } }, maintenance: [] }
  const healthOf = (...upstreams: ReadonlyArray<ReturnType<typeof address>>) => {
    const [, only] = dependenciesOf({ ...others, upstreams } as never)
    return [only?.state, Date.parse(only?.since ?? '')]
  }
  const up = address('1', 'up', 5)
  t.same(healthOf(up, address('2', 'up', 3)), ['up', 5])
  t.same(healthOf(up, address('2', 'open', 7), address('3', 'unhealthy', 6)), ['degraded', 6])
  t.same(healthOf(address('1', 'open', 7), address('2', 'open', 6)), ['down', 7])
  t.end()
})

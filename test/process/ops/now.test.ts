/** The present of two replicas over a real Redis. */
import t from 'tap'
import type { ConfigNow } from '../../../src/admin/config-data.ts'
import type { Now } from '../../../src/admin/now-schema.ts'
import { start } from '../../support/command.ts'
import { configFolder } from '../../support/gateway.ts'
import { askOps } from '../../support/ops.ts'
import { freePorts } from '../../support/ports.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

t.test('replicas stand side by side, and Redis shows', async t => {
  const redis = await testRedis(t.after)
  const ports = await freePorts(4)
  async function replica(place: number) {
    const [port, opsPort] = ports.slice(place, place + 2)
    const folder = await configFolder({
      gateway: {
        server: { listen: `127.0.0.1:${port}` },
        ops: { listen: `127.0.0.1:${opsPort}` },
        redis: { url: redis.url },
        session: { secrets: ['${SESSION_SECRET}'] }
      },
      users: { users: {} },
      limits: { limits: { all: { by: 'address', max: 1_000_000, window: '1h' } } }
    })
    const gateway = start(t.after, folder, environment)
    await gateway.says(`listening on http://127.0.0.1:${port}`)
    const read = async <T>(path: string) =>
      (await (await askOps(`http://127.0.0.1:${opsPort}`, `/ops/api/${path}`)).json()) as T
    return { url: `http://127.0.0.1:${port}`, read }
  }
  const asked = await replica(0)
  const other = await replica(2)
  const now = async () => await asked.read<Now>('now')
  await until('both replicas say how they are', async () => {
    const { replicas } = await now()
    return replicas.filter(({ requestsPerSecond }) => requestsPerSecond !== undefined).length === 2
  })
  const connection = { connection: 'close' }
  for (let count = 0; count < 40; count++) {
    await (await fetch(`${asked.url}/api/session`, { headers: connection })).arrayBuffer()
  }
  await until('all requests are counted', async () => (await now()).requestsPerSecond >= 3)
  const { redis: state, config, routes } = await now()
  t.match(state, { state: 'up', since: String })
  t.equal(routes.length, 1)
  await until('the other replica has heard of them', async () => {
    const { replicas, replica } = await other.read<Now>('now')
    const busy = replicas.find(({ id }) => id !== replica)
    return (busy?.requestsPerSecond ?? 0) >= 1
  })
  const [ours, theirs] = await Promise.all([
    asked.read<ConfigNow>('config'),
    other.read<ConfigNow>('config')
  ])
  t.equal(ours.hash, theirs.hash)
  t.equal(ours.hash, config.hash)
  const { replicas } = await now()
  t.ok(replicas.every(({ configHash }) => configHash === config.hash))
  await redis.kill()
  await until('Redis is down', async () => (await now()).redis.state === 'down')
})

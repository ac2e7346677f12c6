/**
 * `limits show` and `limits reset` where replicas share Redis; the rest stands in
 * operators.transcript.yaml.
 */
import t, { type Test } from 'tap'
import { run } from '../../support/command.ts'
import { password, testGateway, type TestGateway } from '../../support/gateway.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'

const env = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const limits = async ({ folder }: TestGateway, what: string) =>
  await run(['limits', what, '127.0.0.1', '-c', folder, '--json'], { env })

const redis = await testRedis(t.after)
const backend = await testUpstream(t.after)

async function replica(t: Test, commandTimeout: string) {
  const files = {
    gateway: {
      redis: { url: redis.url, commandTimeout },
      session: { secrets: ['${SESSION_SECRET}'] }
    },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { open: { path: '/api/open', access: 'public', upstream: 'b' } }
    },
    limits: { limits: { anonymous: { by: 'address', max: 5, window: '1h' } } }
  }
  const gateway = await testGateway(t.after, files, env)
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
  return { gateway, status: async () => (await gateway.call('/api/open')).status }
}

t.test('a reset at one replica holds at the others within a second or two', async t => {
  const [one, other] = [await replica(t, '30s'), await replica(t, '30s')]
  await until('both know that the address is over its limit', async () => {
    const statuses = [await one.status(), await other.status()]
    return statuses.every(status => status === 429)
  })
  const { out } = await limits(one.gateway, 'show')
  t.match(JSON.parse(out), { limits: [{ limit: 'anonymous', exceeded: true }] })
  await limits(one.gateway, 'reset')
  t.equal(await one.status(), 200, 'at once where it was said')
  await until('the other has heard of it', async () => (await other.status()) === 200, 10_000)
})

t.test('what Redis cannot be asked for is said', async t => {
  const { gateway } = await replica(t, '300ms')
  await gateway.call('/api/auth/admin/login', { json: { username: 'alice', password } })
  await redis.kill()
  const err = /Redis, which holds the counts, does not answer/
  t.match(await limits(gateway, 'show'), { code: 1, err })
})

t.end()

/** `limits show` and `limits reset` with replicas. The rest: operators.transcript.yaml. */
import t, { type Test } from 'tap'
import { run } from '../../support/command.ts'
import { testGateway, type TestGateway } from '../../support/gateway.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { testUpstream } from '../../support/upstream.ts'

const limits = async ({ folder }: TestGateway, what: string) =>
  await run(['limits', what, '127.0.0.1', '-c', folder, '--json'])

const redis = await testRedis(t.after)
const backend = await testUpstream(t.after)

async function replica(t: Test, commandTimeout: string) {
  const gateway = await testGateway(t.after, {
    redis: { url: redis.url, commandTimeout },
    backend: backend.url,
    routes: { routes: { open: { access: 'public' } } },
    limits: { limits: { anonymous: { by: 'address', max: 5, window: '1h' } } }
  })
  await gateway.ready()
  return gateway
}

t.test('a reset at one replica holds at the others within a second or two', async t => {
  const [one, other] = [await replica(t, '30s'), await replica(t, '30s')]
  await until('both know that the address is over its limit', async () => {
    const statuses = [await one.status('/api/open'), await other.status('/api/open')]
    return statuses.every(status => status === 429)
  })
  const { out } = await limits(one, 'show')
  t.match(JSON.parse(out), { limits: [{ limit: 'anonymous', exceeded: true }] })
  await limits(one, 'reset')
  t.equal(await one.status('/api/open'), 200, 'at once where it was said')
  await until(
    'the other has heard of it',
    async () => (await other.status('/api/open')) === 200,
    10_000
  )
})

t.test('what Redis cannot be asked for is said', async t => {
  const gateway = await replica(t, '300ms')
  await gateway.attempt('alice')
  await redis.kill()
  const err = /Redis, which holds the counts, does not answer/
  t.match(await limits(gateway, 'show'), { code: 1, err })
})

t.end()

/** A gateway whose Redis is not there, or not to be entered. */
import t, { type Test } from 'tap'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { type TestRedis, testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const profile = '/api/account/profile'
const backend = await testUpstream(t.teardown)

/** Of much patience: whatever fails here, it is not for a moment in which this machine stood still. */
async function gatewayWith(t: Test, redis: object): Promise<TestGateway> {
  const files = {
    redis: { commandTimeout: '30s', ...redis },
    backend: backend.url,
    routes: { routes: { open: { access: 'public' } } }
  }
  return await testGateway(t.after, files)
}

const fromTheStart: ReadonlyArray<
  readonly [what: string, begin: (redis: TestRedis) => unknown, end: (redis: TestRedis) => unknown]
> = [
  ['away', async ({ kill }) => await kill(), async ({ start }) => await start()],
  ['frozen', ({ signal }) => signal('SIGSTOP'), ({ signal }) => signal('SIGCONT')]
]
for (const [what, begin, end] of fromTheStart) {
  t.test(`Redis ${what} at start: up, alive, not ready, and it heals by itself`, async t => {
    const redis = await testRedis(t.after)
    await begin(redis)
    const gateway = await gatewayWith(t, { url: redis.url, commandTimeout: '400ms' })
    t.equal((await gateway.ops('/healthz')).status, 200)
    const notReady = await gateway.ops('/readyz')
    t.equal(notReady.status, 503)
    t.match(await notReady.json(), { redis: 'not reached yet' })
    t.match(await gateway.attempt('alice'), {
      status: 503,
      json: { errorCode: 'session.unavailable' }
    })
    t.equal(await gateway.status('/api/open'), 200)
    await gateway.logged(({ msg }) => String(msg).startsWith('Redis unavailable'))
    await end(redis)
    await gateway.ready()
    // So short a time-out may strike by itself where this machine stands still.
    await until('signed in', async () => (await gateway.signIn()) !== '')
  })
}

t.test('Redis killed under traffic: 503 with the cookie kept, public routes go on', async t => {
  const redis = await testRedis(t.after)
  const gateway = await gatewayWith(t, { url: redis.url })
  await gateway.ready()
  const cookie = await gateway.signIn()
  const ask = () => gateway.call(profile, { cookie })
  for (const { status } of await Promise.all(Array.from({ length: 20 }, ask))) t.equal(status, 200)
  await redis.kill()
  for (let count = 0; count < 20; count++) {
    const answer = await ask()
    t.match(answer, { status: 503, json: { errorCode: 'session.unavailable' } })
    t.ok(Number(answer.headers.get('retry-after')) >= 1)
    t.same(answer.headers.getSetCookie(), [], 'the cookie is kept')
  }
  t.equal(await gateway.status('/api/open'), 200, 'a public route goes on')
  const logout = '/api/account/logout'
  const undone = await gateway.call(logout, { cookie })
  t.equal(undone.status, 503, 'no sign-out is promised that was not done')
  t.equal(await gateway.status(logout), 200, 'without a session nothing is asked')
  t.equal((await gateway.ops('/readyz')).status, 200, 'the replicas next door have the same Redis')
})

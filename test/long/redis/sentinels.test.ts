import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { redisConfig } from '../../support/config.ts'
import { password } from '../../support/gateway.ts'
import { standstill } from '../../support/machine.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { testSentinel, type TestSentinel } from '../../support/sentinel.ts'
import { replica } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

/** Of +switch-master, to the first sign-in; a second covers what Sentinels take to tell each other. */
const signInWithinMs = 300
/** More runs: FAILOVER_RUNS=5. */
const runs = Number(process.env['FAILOVER_RUNS'] ?? 1)

/** When a Sentinel announces another primary, by this process' clock. */
async function whenSwitched(
  t: Test,
  sentinel: TestSentinel
): Promise<{ readonly heard: Promise<number> }> {
  const ports = sentinel.sentinels.map(address => Number(address.split(':')[1]))
  const listeners = ports.map(port => new Redis({ port, enableReadyCheck: false }))
  t.after(() => {
    for (const each of listeners) each.disconnect()
  })
  const heard = new Promise<number>(resolve => {
    for (const each of listeners) each.on('message', () => resolve(performance.now()))
  })
  await Promise.all(listeners.map(async each => await each.subscribe('+switch-master')))
  return { heard }
}

t.test(
  'a gateway that knows one Sentinel of three finds the others, and follows them when the one is gone',
  async t => {
    const sentinel = await testSentinel(t.after)
    const [old, heir] = sentinel.servers
    const config = redisConfig({
      sentinels: sentinel.sentinels.slice(0, 1),
      primary: sentinel.name,
      commandTimeout: 400
    })
    const dialler = createRedisDialler(config, '.')
    const client = dialler.client() as Redis
    t.after(() => {
      client.disconnect()
      dialler.close()
    })
    const port = async () => Number(((await client.config('GET', 'port')) as string[])[1])
    await until('the primary answers', async () => (await port()) === old.port)
    const known = Number(sentinel.sentinels[0]?.split(':')[1])
    await redisCli(known, 'SHUTDOWN', 'NOSAVE').catch(() => {})
    await sentinel.failover(1)
    await until('the new primary answers', async () => (await port()) === heir.port)
    t.pass('followed')
  }
)

for (const how of ['planned', 'killed'] as const) {
  for (let run = 1; run <= runs; run++) {
    t.test(
      `${how} failover, run ${run}: sign-ins work as soon as Sentinel has told of it`,
      async t => {
        const sentinel = await testSentinel(t.after)
        const [old, heir] = sentinel.servers
        const gateway = await replica(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
        const { heard } = await whenSwitched(t, sentinel)
        const attempts: Array<{ readonly endedAt: number; readonly status: number }> = []
        const loop = { running: true }
        const signingIn = (async () => {
          while (loop.running) {
            const json = { username: 'alice', password }
            const { status } = await gateway.call('/api/auth/admin/login', { json })
            attempts.push({ endedAt: performance.now(), status })
            await wait(10)
          }
        })()
        const promoted = (async () => {
          let at = 0
          await until('the replica is promoted', async () => {
            at = performance.now()
            return (await redisCli(heir.port, 'ROLE')).startsWith('master')
          })
          return at
        })()
        if (how === 'planned') {
          await sentinel.failover()
        } else {
          await old.kill()
          await sentinel.downAfter(500)
        }
        const at = await heard
        const stoodStillMs = standstill()
        await wait(4000)
        loop.running = false
        await signingIn
        const refused = attempts.filter(({ status }) => status !== 200)
        const lastRefused = refused.at(-1)?.endedAt ?? -Infinity
        const worksAt = attempts.find(({ endedAt }) => endedAt > Math.max(lastRefused, at))?.endedAt
        const ms = Math.round((worksAt ?? Infinity) - at)
        const afterPromotion = Math.round((worksAt ?? Infinity) - (await promoted))
        const measured = { how, refused: refused.length, ms, afterPromotion }
        t.comment(`measured ${JSON.stringify(measured)}`)
        t.same(
          refused.filter(({ status }) => status !== 503),
          [],
          'every answer is 200 or 503'
        )
        t.ok(ms < signInWithinMs + stoodStillMs(), `sign-ins work ${ms} ms after +switch-master`)
      }
    )
  }
}

import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { standstill } from '../../support/machine.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { testSentinel } from '../../support/sentinel.ts'
import { storeAt } from '../../support/sessions.ts'
import { replica } from '../../support/trial.ts'
import { again, until } from '../../support/until.ts'

/** Of +switch-master, to the first sign-in; a second covers what Sentinels take to tell each other. */
const signInWithinMs = 300

const portOf = (address = '') => Number(address.split(':')[1])

/** Gives the time at which the first Sentinel announces another primary. */
async function listenTo(t: Test, sentinels: readonly string[]): Promise<() => Promise<number>> {
  const { promise, resolve } = Promise.withResolvers<number>()
  for (const address of sentinels) {
    const client = new Redis({ port: portOf(address), enableReadyCheck: false })
    t.after(() => client.disconnect())
    client.on('message', () => resolve(performance.now()))
    await client.subscribe('+switch-master')
  }
  return () => promise
}

t.test('a gateway that knows one Sentinel of three finds the others, and follows them', async t => {
  const { sentinels, name, servers, failover } = await testSentinel(t.after)
  const [old, heir] = servers
  const known = sentinels.slice(0, 1)
  const config = { sentinels: known, primary: name, commandTimeout: 400 }
  const client = (await storeAt(t.after, config)).client as Redis
  const port = async () => Number(((await client.config('GET', 'port')) as string[])[1])
  t.equal(await port(), old.port)
  await redisCli(portOf(known[0]), 'SHUTDOWN', 'NOSAVE').catch(() => {})
  await failover(1)
  await until('the new primary answers', async () => (await port()) === heir.port)
  t.pass('followed')
})

for (const how of ['planned', 'killed'] as const) {
  t.test(`${how} failover: sign-ins work as soon as Sentinel has told of it`, async t => {
    const { sentinels, name, servers, failover, downAfter } = await testSentinel(t.after)
    const gateway = await replica(t, { sentinels, primary: name })
    const switched = await listenTo(t, sentinels)
    const attempts: Array<{ readonly endedAt: number; readonly status: number }> = []
    const end = again(async () => {
      const { status } = await gateway.attempt('alice')
      attempts.push({ endedAt: performance.now(), status })
      await wait(10)
    })
    if (how === 'planned') await failover()
    else {
      await servers[0].kill()
      await downAfter(500)
    }
    const at = await switched()
    const stoodStillMs = standstill()
    await wait(4000)
    await end()
    const refused = attempts.filter(({ status }) => status !== 200)
    const lastRefused = refused.at(-1)?.endedAt ?? -Infinity
    const worksAt = attempts.find(({ endedAt }) => endedAt > Math.max(lastRefused, at))?.endedAt
    const ms = Math.round((worksAt ?? Infinity) - at)
    t.ok(refused.every(({ status }) => status === 503))
    t.ok(ms < signInWithinMs + stoodStillMs(), `sign-ins work ${ms} ms after +switch-master`)
  })
}

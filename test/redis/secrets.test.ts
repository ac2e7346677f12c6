import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { profile } from '../support/trial.ts'
import { until } from '../support/until.ts'

const environment = {
  OLD_SECRET: 'an older secret of at least thirty-two characters',
  NEW_SECRET: 'a newer secret of at least thirty-two characters!'
}
const [old, young] = ['${OLD_SECRET}', '${NEW_SECRET}']

/** Starts replicas with these secrets, the first of which signs and seals. */
async function onRedis(t: Test) {
  const { url } = await testRedis(t.after)
  return async (...secrets: readonly string[]) => {
    const redis = { url, commandTimeout: '20s' }
    const gateway = await testGateway(
      t.after,
      { gateway: { redis, session: { secrets } } },
      environment
    )
    await until('it is ready', async () => (await gateway.ops('/readyz')).status === 200)
    const statusOf = async (cookie: string) => (await gateway.call(profile, { cookie })).status
    return { ...gateway, statusOf }
  }
}

t.test(
  'secrets are rotated as documented, replica by replica: nobody is signed out at any moment',
  async t => {
    const replica = await onRedis(t)
    const steps = [[old], [old, young], [young, old]]
    const cookies: string[] = []
    for (const [index, secrets] of steps.entries()) {
      // While a step is rolled out, one replica is there already and one is still at the step before.
      const both = [
        await replica(...secrets),
        await replica(...(steps[Math.max(0, index - 1)] ?? []))
      ]
      for (const { signIn } of both) cookies.push(await signIn())
      for (const { statusOf } of both) {
        const statuses = await Promise.all(cookies.map(statusOf))
        t.same(new Set(statuses), new Set([200]), `step ${index}`)
      }
    }
    // Once the old sessions are over, the old secret goes: what was opened since is read without it.
    const [last, before] = [await replica(young), await replica(young, old)]
    t.equal(await last.statusOf(await before.signIn()), 200)
  }
)

t.test(
  'a new secret that is put first at once signs people out where it is not known yet, and ends nothing',
  async t => {
    const replica = await onRedis(t)
    const [ahead, behind] = [await replica(young, old), await replica(old)]
    const cookie = await ahead.signIn()
    t.same([await behind.statusOf(cookie), await ahead.statusOf(cookie)], [401, 200])
    const listed = await behind.ops('/ops/api/sessions?user=1')
    t.match(await listed.json(), { sessions: [] })
    const closed = await behind.ops('/ops/api/sessions/close', { json: { user: '1' } })
    t.match(await closed.json(), { closed: 1 })
    t.equal(await ahead.statusOf(cookie), 401)
  }
)

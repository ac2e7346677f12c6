import t, { type Test } from 'tap'
import { configFolder, testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { profile } from '../support/trial.ts'
import { until } from '../support/until.ts'

const environment = {
  OLD_SECRET: 'an older secret of at least thirty-two characters',
  NEW_SECRET: 'a newer secret of at least thirty-two characters!'
}
const old = '${OLD_SECRET}'
const young = '${NEW_SECRET}'

/** A replica with these secrets, the first of which signs and seals. */
async function withSecrets(t: Test, url: string, secrets: readonly string[]) {
  const config = await configFolder({
    gateway: { redis: { url, commandTimeout: '20s' }, session: { secrets } }
  })
  const gateway = await testGateway(t.after, config, environment)
  await until('it is ready', async () => (await fetch(`${gateway.opsUrl}/readyz`)).status === 200)
  return gateway
}

t.test(
  'secrets are rotated as documented, replica by replica: nobody is signed out at any moment',
  async t => {
    const { url } = await testRedis(t.after)
    const steps = [[old], [old, young], [young, old]]
    const cookies: string[] = []
    for (const [index, secrets] of steps.entries()) {
      // While a step is rolled out, one replica is there already and one is still at the step before.
      const [ahead, behind] = [
        await withSecrets(t, url, secrets),
        await withSecrets(t, url, steps[Math.max(0, index - 1)] ?? [])
      ]
      for (const gateway of [ahead, behind]) cookies.push(await gateway.signIn())
      for (const gateway of [ahead, behind]) {
        for (const [at, cookie] of cookies.entries()) {
          t.equal(
            (await gateway.call(profile, { cookie })).status,
            200,
            `step ${index}, session ${at}`
          )
        }
      }
    }
    // Once the old sessions are over, the old secret goes: what was opened since is read without it.
    const [last, before] = [
      await withSecrets(t, url, [young]),
      await withSecrets(t, url, [young, old])
    ]
    const cookie = await before.signIn()
    t.equal((await last.call(profile, { cookie })).status, 200)
  }
)

t.test(
  'a new secret that is put first at once signs people out where it is not known yet, and ends nothing',
  async t => {
    const { url } = await testRedis(t.after)
    const [ahead, behind] = [
      await withSecrets(t, url, [young, old]),
      await withSecrets(t, url, [old])
    ]
    const cookie = await ahead.signIn()
    t.equal((await behind.call(profile, { cookie })).status, 401)
    t.equal((await ahead.call(profile, { cookie })).status, 200)
    const listed = await (await behind.ops('/ops/api/sessions?user=1')).json()
    t.match(listed, { sessions: [] })
    t.match(await (await behind.ops('/ops/api/sessions/close', { json: { user: '1' } })).json(), {
      closed: 1
    })
    t.equal((await ahead.call(profile, { cookie })).status, 401)
  }
)

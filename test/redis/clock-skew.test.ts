import { join } from 'node:path'
import t, { type Test } from 'tap'
import { configFolder, password } from '../support/gateway.ts'
import { opsSecret, startGatewayProcess } from '../support/gateway-process.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replica } from '../support/trial.ts'
import { until } from '../support/until.ts'

const root = join(import.meta.dirname, '../..')
const hour = 3_600_000

/** A replica in a process whose wall clock is wrong. */
async function skewed(t: Test, url: string, shiftMs: number, session: object) {
  const config = await configFolder({
    gateway: {
      redis: { url, commandTimeout: '20s', connectTimeout: '20s' },
      session: { secrets: ['${SESSION_SECRET}'], ...session },
      log: { format: 'json' },
      ops: { secret: '${OPS_SECRET}' }
    }
  })
  const gateway = await startGatewayProcess(t.after, {
    checkout: root,
    folder: config,
    preload: join(root, 'test/support/shift-clock.ts'),
    environment: {
      SESSION_SECRET: 'a secret of at least thirty-two characters',
      OPS_SECRET: opsSecret,
      CLOCK_SHIFT_MS: String(shiftMs)
    }
  })
  await until('it is ready', async () => (await gateway.ask('/readyz')).status === 200)
  const call = async (path: string, cookie: string) =>
    await fetch(gateway.url + path, { headers: { cookie } })
  const signIn = async () => {
    const answer = await fetch(`${gateway.url}/api/auth/admin/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'alice', password })
    })
    return answer.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
  }
  return { ...gateway, call, signIn }
}

for (const [name, shiftMs] of [
  ['behind', -hour],
  ['ahead', hour]
] as const) {
  t.test(
    `a replica whose clock is an hour ${name}: its sessions are used, kept and told as elsewhere`,
    async t => {
      const redis = await testRedis(t.after)
      const right = await replica(t, {
        url: redis.url,
        commandTimeout: '20s',
        connectTimeout: '20s'
      })
      const wrong = await skewed(t, redis.url, shiftMs, { idle: '4s', absolute: '30m' })
      const cookie = await wrong.signIn()
      t.equal(
        (await right.call(profile, { cookie })).status,
        200,
        'an absolute end of half an hour is not over elsewhere'
      )
      const began = performance.now()
      let uses = 0
      let fault = ''
      await until('it was used for longer than it may be idle', async () => {
        const answer = await wrong.call(profile, cookie)
        uses++
        const passed = Math.round(performance.now() - began)
        if (answer.status !== 200) fault = `over after ${passed} ms and ${uses} uses`
        const left = Number(answer.headers.get('x-session-absolute-in'))
        if (answer.ok && (left < 1700 || left > 1800)) fault = `${left} s are said to be left`
        return fault !== '' || passed > 6000
      })
      t.equal(fault, '')
      t.equal(
        (await right.call(profile, { cookie })).status,
        200,
        'the other replica knows that it is used'
      )
    }
  )
}

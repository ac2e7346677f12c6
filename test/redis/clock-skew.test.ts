import { join } from 'node:path'
import t from 'tap'
import { testRedis } from '../support/redis.ts'
import { sessionProcess } from '../support/session-process.ts'
import { profile, replica } from '../support/trial.ts'
import { until } from '../support/until.ts'

const hour = 3_600_000

for (const [name, shiftMs] of Object.entries({ behind: -hour, ahead: hour })) {
  t.test(
    `a replica whose clock is an hour ${name}: its sessions are used, kept and told as elsewhere`,
    async t => {
      const { url } = await testRedis(t.after)
      const redis = { url, commandTimeout: '20s' }
      const right = await replica(t, redis)
      // In a process whose wall clock is wrong.
      const wrong = await sessionProcess(t, {
        redis,
        session: { idle: '4s', absolute: '30m' },
        environment: { CLOCK_SHIFT_MS: String(shiftMs) },
        preload: join(import.meta.dirname, '../support/shift-clock.ts')
      })
      const cookie = await wrong.signIn()
      const elsewhere = async () => (await right.call(profile, { cookie })).status
      t.equal(await elsewhere(), 200, 'an absolute end of half an hour is not over elsewhere')
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
      t.equal(await elsewhere(), 200, 'the other replica knows that it is used')
    }
  )
}

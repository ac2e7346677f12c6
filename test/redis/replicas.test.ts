/** Replicas that share a Redis: use that nobody announces, rotated secrets, clocks that differ. */
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { passTime } from '../support/clock.ts'
import { configFolder, type TestGateway, testGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replica, replicas } from '../support/trial.ts'
import { until } from '../support/until.ts'

const minute = 60_000

/** The code of an error, else the minutes that are left, rounded. */
async function idleIn(gateway: TestGateway, cookie: string): Promise<number | string> {
  const { data, errorCode } = (await gateway.call('/api/session', { cookie })).json
  return data === undefined ? errorCode : Math.round(data.idleIn / 60)
}

t.test('used at one gateway, asked for at the other: with their headers and answers', async t => {
  const redis = await testRedis(t.after)
  const client = redis.client()
  const both = await replicas(t, { url: redis.url, commandTimeout: '20s' })
  const [first, second] = both
  const cookie = await first.signIn()
  /** What each is asked may still be under way. */
  const pass = async (minutes: number, left: number | string) => {
    await passTime(client, minutes * minute)
    for (const each of both) {
      await until(`${left} is told`, async () => (await idleIn(each, cookie)) === left)
    }
  }
  const [record = ''] = await client.keys('{cg}:s:*')
  const [list = ''] = await client.keys('{cg}:u:*')
  const idleEnd = async () => Number((await client.zrange(list, '0', '0', 'WITHSCORES'))[1])
  t.match(await client.get(record), /^0 [\w-]{6}\./)
  await pass(10, 20)
  const [before, idleBefore] = [await client.pttl(record), await idleEnd()]
  t.equal(await first.status(profile, { cookie }), 200)
  await until('the use is written', async () => (await idleEnd()) > idleBefore + 9.5 * minute)
  t.ok((await client.pttl(record)) <= before, 'the record was left alone')
  t.equal(await idleIn(second, cookie), 30, 'the other asks')
  const { headers } = await second.call('/api/session', { cookie })
  t.ok(Number(headers.get('x-session-idle-in')) > 29.5 * 60)
  await pass(30, 'session.idle')
  await pass(8 * 60, 'session.unknown')
})

const environment = {
  OLD_SECRET: 'an older secret of at least thirty-two characters',
  NEW_SECRET: 'a newer secret of at least thirty-two characters!'
}
const [old, young] = ['${OLD_SECRET}', '${NEW_SECRET}']

/** Starts replicas with these secrets, the first of which signs and seals. */
async function onRedis(t: Test) {
  const { url } = await testRedis(t.after)
  return async (...secrets: readonly string[]) => {
    const files = { gateway: { session: { secrets } }, redis: { url, commandTimeout: '20s' } }
    const gateway = await testGateway(t.after, files, environment)
    await gateway.ready()
    return gateway
  }
}

t.test('secrets are rotated replica by replica: nobody is ever signed out', async t => {
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
    for (const { status } of both) {
      for (const cookie of cookies) t.equal(await status(profile, { cookie }), 200, `step ${index}`)
    }
  }
  // Once the old sessions are over, the old secret goes: what was opened since is read without it.
  const [last, before] = [await replica(young), await replica(young, old)]
  t.equal(await last.status(profile, { cookie: await before.signIn() }), 200)
})

t.test('a new secret that is put first at once is unknown elsewhere, and ends nothing', async t => {
  const replica = await onRedis(t)
  const [ahead, behind] = [await replica(young, old), await replica(old)]
  const cookie = await ahead.signIn()
  t.equal(await behind.status(profile, { cookie }), 401)
  t.equal(await ahead.status(profile, { cookie }), 200)
  t.match(await behind.opsJson('sessions?user=1'), { sessions: [] })
  t.match(await behind.opsJson('sessions/close', { user: '1' }), { closed: 1 })
  t.equal(await ahead.status(profile, { cookie }), 401)
})

for (const [name, minutes] of Object.entries({ behind: -60, ahead: 60 })) {
  t.test(`a clock an hour ${name}: sessions are used, kept and told as elsewhere`, async t => {
    const { url } = await testRedis(t.after)
    const redis = { url, commandTimeout: '20s' }
    const right = await replica(t, redis)
    // In a process whose wall clock is wrong.
    const session = { idle: '4s', absolute: '30m' }
    const shifted = { CLOCK_SHIFT_MS: String(minutes * minute) }
    const preload = join(import.meta.dirname, '../support/shift-clock.ts')
    const folder = await configFolder({ redis, gateway: { session } })
    const wrong = await startGatewayProcess(t.after, folder, { environment: shifted, preload })
    await wrong.ready()
    const cookie = await wrong.signIn()
    const elsewhere = async () => await right.status(profile, { cookie })
    t.equal(await elsewhere(), 200, 'an absolute end of half an hour is not over elsewhere')
    const began = performance.now()
    let uses = 0
    let fault = ''
    await until('it was used for longer than it may be idle', async () => {
      const answer = await wrong.call(profile, { cookie })
      uses++
      const passed = Math.round(performance.now() - began)
      const left = Number(answer.headers.get('x-session-absolute-in'))
      if (answer.status !== 200) fault = `over after ${passed} ms and ${uses} uses`
      else if (left < 1700 || left > 1800) fault = `${left} s are said to be left`
      return fault !== '' || passed > 6000
    })
    t.equal(fault, '')
    t.equal(await elsewhere(), 200, 'the other replica knows that it is used')
  })
}

t.test('CLIENT TRACKING is refused: sessions work, and one line says what to do', async t => {
  const { cli, url } = await testRedis(t.after)
  const words = ['on', '>secret', '~*', '&*', '+@all', '-client|tracking']
  await cli('ACL', 'SETUSER', 'gateway', ...words)
  const redis = { url, username: 'gateway', password: '${REDIS_PASSWORD}' }
  const [a, b] = await replicas(t, redis, { REDIS_PASSWORD: 'secret' })
  const cookie = await a.signIn()
  for (const gateway of [a, b, a, b]) {
    t.equal(await gateway.status(profile, { cookie }), 200)
  }
  // Longer than several attempts would take.
  await wait(1500)
  const stats = await cli('INFO', 'commandstats')
  t.match(stats, /cmdstat_client\|tracking:.*rejected_calls=2,/, 'once by each process')
  t.equal(await b.status('/api/account/logout', { cookie, method: 'POST' }), 200)
  for (const gateway of [a, b]) {
    t.equal(await gateway.status(profile, { cookie }), 401)
    const said = gateway.log.filter(({ msg }) => String(msg).includes('CLIENT TRACKING'))
    t.equal(said.length, 1)
    t.match(said, [{ level: 'error', msg: /not cached.*"Rights of an ACL user"/ }])
  }
})

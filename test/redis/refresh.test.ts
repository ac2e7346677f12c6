/** Refresh calls and use at different replicas: use at one is known at the others. */
import { Redis } from 'ioredis'
import t from 'tap'
import { passTime } from '../support/clock.ts'
import { testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const minute = 60_000
const path = '/auth/refresh'
const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

t.test('a refresh tells of use at another replica, and extends nothing itself', async t => {
  const redis = await testRedis(t.after)
  const client = new Redis(redis.url)
  t.after(() => client.quit())
  const replica = async () =>
    await testGateway(
      t.after,
      {
        gateway: {
          session: { secrets: ['${SESSION_SECRET}'], idle: '30m', absolute: '8h' },
          redis: { url: redis.url }
        },
        routes: { endpoints: { refresh: { path } } }
      },
      environment
    )
  const [first, second] = [await replica(), await replica()]
  const cookie = await first.signIn()
  type Replica = typeof first
  const idleIn = async (of: Replica) =>
    Number((await of.call('/api/session', { cookie })).json.data?.idleIn)
  const pass = async (minutes: number) => {
    const before = await idleIn(second)
    await passTime(client, minutes * minute)
    const isNoticed = async (of: Replica) => (await idleIn(of)) <= before - minutes * 60 + 5
    await until(
      'both see the time that passed',
      async () => (await isNoticed(first)) && (await isNoticed(second))
    )
  }
  const refresh = async (of: Replica) => {
    const { json } = await of.call(path, { method: 'POST', cookie })
    return Math.round(json.data.idleIn / 60)
  }
  const use = async (of: Replica) => {
    t.equal((await of.call('/api/account/profile', { cookie })).status, 200)
    await until('the use is written', async () => (await idleIn(of)) >= 29.5 * 60)
  }
  await pass(10)
  t.equal(await refresh(first), 20)
  await pass(5)
  t.equal(await refresh(second), 15)
  await use(first)
  t.equal(await refresh(second), 30)
  await pass(5)
  t.equal(await refresh(first), 25)
})

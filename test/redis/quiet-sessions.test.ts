/** Sessions whose use is announced to nobody, at gateways that share a Redis. */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { passTime } from '../support/clock.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { profile } from '../support/trial.ts'
import { until } from '../support/until.ts'

const minute = 60_000
const refreshPath = '/auth/refresh'

async function setUp(t: Test) {
  const { url } = await testRedis(t.after)
  const client = new Redis(url)
  t.after(() => client.disconnect())
  const gateway = {
    redis: { url, commandTimeout: '20s' },
    session: { secrets: ['${SECRET}'], idle: '30m', absolute: '8h' }
  }
  const routes = { endpoints: { refresh: { path: refreshPath } } }
  const replica = async () => {
    const SECRET = 'a secret of at least thirty-two characters'
    const started = await testGateway(t.after, { gateway, routes }, { SECRET })
    await until('it is ready', async () => (await started.ops('/readyz')).status === 200)
    return started
  }
  const [first, second] = [await replica(), await replica()]
  return { client, first, second, cookie: await first.signIn() }
}

/** The code of an error, else the minutes that are left, rounded. */
async function idleIn(gateway: TestGateway, cookie: string): Promise<number | string> {
  const { data, errorCode } = (await gateway.call('/api/session', { cookie })).json
  return data === undefined ? errorCode : Math.round(data.idleIn / 60)
}

/** Until the replica says so: what it is asked may still be under way. */
async function says(gateway: TestGateway, cookie: string, expected: unknown, what: string) {
  let said: unknown
  await until(what, async () => (said = await idleIn(gateway, cookie)) === expected)
  t.equal(said, expected, what)
}

t.test('used at one gateway, asked for at the other: with their headers and answers', async t => {
  const { client, first, second, cookie } = await setUp(t)
  const [record = ''] = await client.keys('{cg}:s:*')
  const [list = ''] = await client.keys('{cg}:u:*')
  const idleEnd = async () => Number((await client.zrange(list, '0', '0', 'WITHSCORES'))[1])
  t.match(await client.get(record), /^0 [\w-]{6}\./)
  await passTime(client, 10 * minute)
  for (const each of [first, second]) await says(each, cookie, 20, 'ten minutes have passed')
  const [before, idleBefore] = [await client.pttl(record), await idleEnd()]
  t.equal((await first.call(profile, { cookie })).status, 200)
  await until('the use is written', async () => (await idleEnd()) > idleBefore + 9.5 * minute)
  t.ok((await client.pttl(record)) <= before, 'the record was left alone')
  t.equal(await idleIn(second, cookie), 30, 'the other asks')
  const { headers } = await second.call('/api/session', { cookie })
  t.ok(Number(headers.get('x-session-idle-in')) > 29.5 * 60)
  await passTime(client, 30 * minute)
  for (const each of [first, second]) await says(each, cookie, 'session.idle', 'it is over')
  await passTime(client, 8 * 60 * minute)
  for (const each of [first, second]) await says(each, cookie, 'session.unknown', 'long over')
})

t.test('a refresh tells of use at another replica, and extends nothing itself', async t => {
  const { client, first, second, cookie } = await setUp(t)
  const pass = async (minutes: number, left: number) => {
    await passTime(client, minutes * minute)
    for (const each of [first, second]) await says(each, cookie, left, 'the time has passed')
  }
  const refresh = async (gateway: TestGateway) => {
    const { json } = await gateway.call(refreshPath, { method: 'POST', cookie })
    return Math.round(json.data.idleIn / 60)
  }
  await pass(10, 20)
  t.equal(await refresh(first), 20)
  await pass(5, 15)
  t.equal(await refresh(second), 15)
  t.equal((await first.call(profile, { cookie })).status, 200)
  await says(second, cookie, 30, 'the use is written')
  t.equal(await refresh(second), 30)
  await pass(5, 25)
  t.equal(await refresh(first), 25)
})

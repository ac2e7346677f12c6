/** Sessions whose use is announced to nobody, at gateways that share a Redis. */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { passTime } from '../support/clock.ts'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { profile } from '../support/trial.ts'

const minute = 60_000
const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }

async function setUp(t: Test) {
  const redis = await testRedis(t.after)
  const client = new Redis(redis.url)
  t.after(() => client.disconnect())
  const folder = async () =>
    await configFolder({
      gateway: {
        redis: { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' },
        session: {
          secrets: ['${SESSION_SECRET}'],
          idle: '30m',
          absolute: '8h'
        },
        log: { format: 'json' }
      }
    })
  const replica = async () => {
    const gateway = await testGateway(t.after, await folder(), environment)
    await until('it is ready', async () => (await gateway.ops('/readyz')).status === 200)
    return callerOf(gateway.url)
  }
  return { client, replica }
}

type Replica = ReturnType<typeof callerOf>

function callerOf(url: string) {
  const call = async (path: string, cookie: string) =>
    await fetch(url + path, { headers: { cookie } })
  return {
    url,
    signIn: async () => {
      const { headers } = await fetch(`${url}/api/auth/admin/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username: 'alice', password })
      })
      return headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
    },
    use: async (cookie: string) => (await call(profile, cookie)).status,
    signOut: async (cookie: string) => (await call('/api/account/logout', cookie)).status,
    /** The code of an error, else the minutes that are left, rounded. */
    idleIn: async (cookie: string) => {
      const response = await call('/api/session', cookie)
      const { data, errorCode } = (await response.json()) as {
        readonly data?: { readonly idleIn: number }
        readonly errorCode?: string
      }
      return data === undefined ? errorCode : Math.round(data.idleIn / 60)
    }
  }
}

/** Until the replica says so: what it is asked may still be under way. */
async function says(t: Test, replica: Replica, cookie: string, expected: unknown, what: string) {
  let said: unknown
  await until(what, async () => (said = await replica.idleIn(cookie)) === expected)
  t.equal(said, expected, what)
}

t.test('used at one gateway, asked for at the other: with their headers and answers', async t => {
  const { client, replica } = await setUp(t)
  const [first, second] = [await replica(), await replica()]
  const cookie = await first.signIn()
  const [record = ''] = await client.keys('{cg}:s:*')
  const [list = ''] = await client.keys('{cg}:u:*')
  const idleEnd = async () => Number((await client.zrange(list, '0', '0', 'WITHSCORES'))[1])
  t.match(await client.get(record), /^0 1[\w-]{6}\./)
  await passTime(client, 10 * minute)
  for (const each of [first, second]) await says(t, each, cookie, 20, 'ten minutes have passed')
  const [before, idleBefore] = [await client.pttl(record), await idleEnd()]
  t.equal(await first.use(cookie), 200)
  await until('the use is written', async () => (await idleEnd()) > idleBefore + 9.5 * minute)
  t.ok((await client.pttl(record)) <= before, 'the record was left alone')
  t.equal(await second.idleIn(cookie), 30, 'the other asks')
  const response = await fetch(`${second.url}/api/session`, { headers: { cookie } })
  t.ok(Number(response.headers.get('x-session-idle-in')) > 29.5 * 60)
  await passTime(client, 30 * minute)
  for (const each of [first, second]) await says(t, each, cookie, 'session.idle', 'it is over')
  await passTime(client, 8 * 60 * minute)
  for (const each of [first, second]) await says(t, each, cookie, 'session.unknown', 'long over')
})

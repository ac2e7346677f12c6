import { Redis } from 'ioredis'
import t from 'tap'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { hasCommit, startAt, unpack } from '../support/old-version.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replica } from '../support/trial.ts'

/** The last commit that wrote records without a version. */
const oldCommit = '1afc4ed'
const logout = '/api/account/logout'
const list = '/api/session/list'

t.test(
  'a session of a newer version answers 503 and keeps its cookie; signing out and in again end it',
  async t => {
    const redis = await testRedis(t.after)
    const client = new Redis(redis.url)
    t.after(() => client.disconnect())
    const gateway = await replica(t, { url: redis.url, commandTimeout: '20s' })
    const newer = async () => {
      const cookie = await gateway.signIn()
      const keys = await client.keys('cg:session:*')
      const values = await client.mget(keys)
      const key = keys.find((_, index) => values[index]?.startsWith('!') === false) ?? ''
      await client.set(key, '4.of.later', 'PX', 600_000)
      await until(
        'the change is seen',
        async () => (await gateway.call(profile, { cookie })).status === 503
      )
      return { cookie, key }
    }

    const first = await newer()
    const refused = await gateway.call(profile, { cookie: first.cookie })
    t.match(refused, { status: 503, json: { errorCode: 'session.unavailable' } })
    t.same(refused.headers.getSetCookie(), [])
    t.equal(await client.get(first.key), '4.of.later', 'the record is left alone')
    t.equal((await gateway.call(logout, { cookie: first.cookie })).status, 200)
    t.equal(await client.get(first.key), '!revoked')

    const second = await newer()
    const signIn = await gateway.call('/api/auth/admin/login', {
      cookie: second.cookie,
      json: { username: 'alice', password }
    })
    t.equal(signIn.status, 200)
    t.equal(await client.get(second.key), '!replaced')
  }
)

const skip = hasCommit(oldCommit) ? false : `the history does not hold ${oldCommit}`

async function status(url: string, cookie: string, path = profile): Promise<number> {
  return (await fetch(url + path, { headers: { cookie } })).status
}

async function signIn(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'alice', password })
  })
  t.equal(answer.status, 200)
  return answer.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

async function listed(url: string, cookie: string): Promise<number> {
  const answer = await fetch(url + list, { headers: { cookie } })
  return ((await answer.json()) as { data: unknown[] }).data.length
}

t.test(
  'a rolling update from the version without record versions, and back: nobody is signed out',
  { skip },
  async t => {
    const redis = await testRedis(t.after)
    const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
    const files = {
      gateway: {
        redis: { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' },
        session: { secrets: ['${SESSION_SECRET}'] },
        log: { format: 'json' }
      }
    }
    const old = unpack(t.after, oldCommit)
    const startOldOne = async () => {
      const gateway = await startAt(t.after, old, await configFolder(files), environment)
      await until('it is ready', async () => (await fetch(`${gateway.ops}/readyz`)).status === 200)
      return gateway
    }

    // Before: the old version alone.
    const before = await startOldOne()
    const ofOld = await signIn(before.url)
    // Meanwhile: both.
    const young = await testGateway(t.after, await configFolder(files), environment)
    await until('it is ready', async () => (await fetch(`${young.opsUrl}/readyz`)).status === 200)
    t.equal(await status(young.url, ofOld), 200, 'the old one’s session at the new one')
    const ofNew = await signIn(young.url)
    t.equal(await status(before.url, ofNew), 200, 'the new one’s session at the old one')
    t.equal(await listed(young.url, ofOld), 2, 'the new one lists both')
    t.equal(await listed(before.url, ofNew), 2, 'the old one lists both')
    const leaving = await signIn(young.url)
    t.equal(await status(before.url, leaving, logout), 200)
    t.equal(await status(young.url, leaving), 401, 'signed out at the old one')
    // After: the new version alone.
    await before.stop()
    t.equal(await status(young.url, ofOld), 200)
    const late = await signIn(young.url)
    // Back: the old version again.
    const back = await startOldOne()
    for (const cookie of [ofOld, ofNew, late]) t.equal(await status(back.url, cookie), 200)
    t.equal(await listed(back.url, late), 3)
    const closed = await fetch(`${back.ops}/sessions/close`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"user":"1"}'
    })
    t.same(await closed.json(), { closed: 3 })
    for (const cookie of [ofOld, ofNew, late]) t.equal(await status(young.url, cookie), 401)
  }
)

t.test(
  'records: 2 after that update, and back to the old version: lists and closes are whole',
  { skip },
  async t => {
    const redis = await testRedis(t.after)
    const client = new Redis(redis.url)
    t.after(() => client.disconnect())
    const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
    const connection = { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' }
    const folderWith = async (session: object) =>
      await configFolder({
        gateway: {
          redis: connection,
          session: { secrets: ['${SESSION_SECRET}'], ...session },
          log: { format: 'json' }
        }
      })
    const old = unpack(t.after, oldCommit)
    const startOldOne = async () => {
      const gateway = await startAt(t.after, old, await folderWith({}), environment)
      await until('it is ready', async () => (await fetch(`${gateway.ops}/readyz`)).status === 200)
      return gateway
    }
    const startYoungOne = async (records: number) => {
      const gateway = await testGateway(t.after, await folderWith({ records }), environment)
      await until(
        'it is ready',
        async () => (await fetch(`${gateway.opsUrl}/readyz`)).status === 200
      )
      return gateway
    }
    const noted = async () => await client.zcard('cg:user:1')

    const before = await startOldOne()
    const ofOld = await signIn(before.url)
    const first = await startYoungOne(1)
    await before.stop()
    const ofFirst = await signIn(first.url)
    t.equal(await noted(), 2)
    const second = await startYoungOne(2)
    const ofSecond = await signIn(second.url)
    t.equal(await noted(), 2, 'nobody needs the former note of this one')
    for (const { url } of [first, second]) t.equal(await listed(url, ofSecond), 3)
    // A restart reads them once more.
    const again = await startYoungOne(2)
    t.equal(await listed(again.url, ofSecond), 3)
    const closed = await again.ops('/sessions/close', { json: { user: '1' } })
    t.match(await closed.json(), { closed: 3 })
    for (const cookie of [ofOld, ofFirst, ofSecond]) t.equal(await status(first.url, cookie), 401)

    // Going back: records: 1 first, then the old version.
    const third = await startYoungOne(1)
    const ofThird = await signIn(third.url)
    const back = await startOldOne()
    t.equal(await listed(back.url, ofThird), 1)
    const ofBack = await signIn(back.url)
    t.equal(await listed(third.url, ofBack), 2, 'and forward again')
  }
)

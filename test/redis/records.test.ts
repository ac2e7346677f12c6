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
      await client.set(key, '3.of.later', 'PX', 600_000)
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
    t.equal(await client.get(first.key), '3.of.later', 'the record is left alone')
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
    const status = async (url: string, cookie: string, path = profile) =>
      (await fetch(url + path, { headers: { cookie } })).status
    const signIn = async (url: string, username = 'alice') => {
      const answer = await fetch(`${url}/api/auth/admin/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username, password })
      })
      t.equal(answer.status, 200)
      return answer.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
    }
    const listed = async (url: string, cookie: string) => {
      const { data } = (await (await fetch(url + list, { headers: { cookie } })).json()) as {
        data: unknown[]
      }
      return data.length
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

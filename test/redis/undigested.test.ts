/** Sessions that the version without digests of passwords opened end with the password all the same. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { stringify } from 'yaml'
import { hashPassword } from '../../src/login/argon2.ts'
import { configFolder, password, type TestGateway, testGateway } from '../support/gateway.ts'
import { hasCommit, startAt, unpack } from '../support/old-version.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { profile } from '../support/trial.ts'

/** The last commit whose sessions hold no digests. */
const oldCommit = '1afc4ed'
const skip = hasCommit(oldCommit) ? false : `the history does not hold ${oldCommit}`
const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
const [hash, otherHash] = await Promise.all([hashPassword(password), hashPassword('another')])
const names = ['ann', 'ben', 'cat', 'dan']
const users = Object.fromEntries(names.map(name => [name, { password: hash, roles: ['user'] }]))
const changeAll = (given: object) => {
  return Object.fromEntries(
    Object.entries(users).map(([name, user]) => [name, { ...user, ...given }])
  )
}

async function statusOf(url: string, cookie: string): Promise<number> {
  return (await fetch(url + profile, { headers: { cookie } })).status
}

async function signInAt(url: string, username: string): Promise<string> {
  const answer = await fetch(`${url}/api/auth/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password })
  })
  t.equal(answer.status, 200)
  return answer.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
}

async function reload(gateway: TestGateway, next: object): Promise<Record<string, any>> {
  writeFileSync(join(gateway.folder, 'users.yaml'), stringify({ users: next }))
  return (await (await gateway.ops('/reload', { json: {} })).json()) as Record<string, any>
}

for (const records of [1, 2]) {
  t.test(
    `with records: ${records}, another password ends sessions of the version without digests`,
    { skip },
    async t => {
      const redis = await testRedis(t.after)
      const client = new Redis(redis.url)
      t.after(() => client.disconnect())
      const connection = { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' }
      const files = (session: object) => ({
        gateway: {
          redis: connection,
          session: { secrets: ['${SESSION_SECRET}'], ...session },
          log: { format: 'json' }
        },
        users: { users }
      })
      const folder = await configFolder(files({}))
      const old = await startAt(t.after, unpack(t.after, oldCommit), folder, environment)
      await until(
        'the old one is ready',
        async () => (await fetch(`${old.ops}/readyz`)).status === 200
      )
      const [ann, ben] = [await signInAt(old.url, 'ann'), await signInAt(old.url, 'ben')]
      const [annsKey = ''] = await client.keys('cg:session:*')
      const asOpened = await client.get(annsKey)

      // It may not run beside replicas that write the newer format.
      if (records === 2) await old.stop()
      const gateway = await testGateway(t.after, files({ records }), environment)
      await until('the new one is ready', async () => (await gateway.ops('/readyz')).status === 200)
      // Nobody uses them: the start alone gives them digests.
      await until(
        'the start has looked at them',
        async () => (await client.get(annsKey)) !== asOpened
      )
      const later =
        records === 2 ? [] : [await signInAt(old.url, 'cat'), await signInAt(old.url, 'dan')]
      for (const cookie of later) t.equal(await statusOf(gateway.url, cookie), 200)
      t.equal(
        gateway.log.filter(({ event }) => event === 'users.changed').length,
        0,
        'nobody changed'
      )

      await t.test('roles that change and come back leave them alive', async t => {
        t.match(await reload(gateway, changeAll({ roles: ['admin'] })), { outcome: 'reloaded' })
        t.match(await reload(gateway, users), { outcome: 'reloaded' })
        for (const cookie of [ann, ...later]) t.equal(await statusOf(gateway.url, cookie), 200)
        if (records === 1) t.equal(await statusOf(old.url, ann), 200, 'the old version reads them')
      })

      await t.test('one that is used only after the change has ended too', async t => {
        if (records === 1) later.push(await signInAt(old.url, 'dan'))
        const { sessions } = await reload(gateway, changeAll({ password: otherHash }))
        t.same(sessions, [
          'users.ann password changed; 1 session closed',
          'users.ben password changed; 1 session closed',
          `users.cat password changed; ${records === 1 ? '1 session' : '0 sessions'} closed`,
          `users.dan password changed; ${records === 1 ? '2 sessions' : '0 sessions'} closed`
        ])
        for (const cookie of [ann, ben, ...later]) t.equal(await statusOf(gateway.url, cookie), 401)
      })
    }
  )
}

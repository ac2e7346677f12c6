import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import type { RedisConfig } from '../../../src/config/schema/gateway.ts'
import { createRedisCounts } from '../../../src/limits/redis-counts.ts'
import { createRedisLockouts } from '../../../src/limits/redis-lockouts.ts'
import { lockoutsContract } from '../../ports/lockouts.ts'
import { sessionStoreContract } from '../../ports/session-store.ts'
import { testAuthority } from '../../support/authority.ts'
import { passTime } from '../../support/clock.ts'
import { testCluster } from '../../support/cluster.ts'
import { until } from '../../support/until.ts'
import { freePort } from '../../support/ports.ts'
import { flags, testRedis, tlsOptions } from '../../support/redis.ts'
import { otherServers } from '../../support/other-redis.ts'
import { testSentinel } from '../../support/sentinel.ts'
import { storeAt } from '../../support/sessions.ts'
import { profile, replicas } from '../../support/trial.ts'

/** The rights that docs/operations.md gives, for a user with this password. */
const documentedRights = (password: string): string[] => {
  const line = /^ *user gateway (on >PASSWORD .*)$/m.exec(
    readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8')
  )?.[1]
  if (line === undefined) throw new Error('docs/operations.md does not say what an ACL user needs')
  return line.replace('PASSWORD', password).split(' ')
}

const acl = {
  gateway: documentedRights('gateway-password'),
  admin: ['on', '>admin-password', '~*', '&*', '+@all']
}

type Shape = (t: Test) => Promise<Partial<RedisConfig>>

const shapes: Record<string, Shape> = {
  'one server, another database': async t => ({ url: `${(await testRedis(t.after)).url}/3` }),

  'a primary that Sentinels know, all with TLS': async t => {
    const authority = testAuthority(t.after)
    const { sentinels, name } = await testSentinel(t.after, { tls: authority })
    return { sentinels, primary: name, tls: true, ca: authority.certificate }
  },

  'one server with TLS': async t => {
    const authority = testAuthority(t.after)
    const port = await freePort()
    await testRedis(t.after, flags(tlsOptions(port, authority)))
    return { url: `rediss://localhost:${port}`, ca: authority.certificate }
  },

  'a Cluster with TLS': async t => {
    const authority = testAuthority(t.after)
    const { nodes } = await testCluster(t.after, authority)
    return { cluster: nodes.slice(0, 2), tls: true, ca: authority.certificate }
  },

  'an ACL user with no more rights than the documents say': async t => {
    const users = Object.entries(acl).flatMap(([name, rights]) => ['--user', name, ...rights])
    const { url } = await testRedis(t.after, ['--user', 'default', 'off', ...users])
    return { url, username: 'gateway', password: 'gateway-password' }
  },

  'an ACL user with no more rights than the documents say, in a Cluster': async t => {
    const { nodes, servers } = await testCluster(t.after)
    for (const { cli } of servers) {
      for (const [name, rights] of Object.entries(acl)) {
        await cli('ACL', 'SETUSER', name, ...rights)
      }
    }
    return { cluster: nodes, username: 'gateway', password: 'gateway-password' }
  }
}

const patient = { commandTimeout: 20_000 }

for (const [name, program] of Object.entries(otherServers())) {
  shapes[name] = async t => ({ url: (await testRedis(t.after, [], program)).url })
}

/** Making time pass takes rights that a gateway has no need of. */
const clockOf = async (t: Test, given: Partial<RedisConfig>) => {
  const admin = { username: 'admin', password: 'admin-password' }
  const all = given.username === undefined ? given : { ...given, ...admin }
  return (await storeAt(t.teardown, all)).client
}

for (const [name, start] of Object.entries(shapes)) {
  t.test(`Redis as ${name}`, async t => {
    const given = await start(t)
    // In place of the file that config names, a store has its text.
    const read = given.ca === undefined ? given : { ...given, ca: readFileSync(given.ca, 'utf8') }

    await t.test('keeps the contract of lockouts', async t => {
      const { client } = await storeAt(t.teardown, read)
      const clock = await clockOf(t, read)
      lockoutsContract(t, createRedisLockouts(client, '{cg}:'), ms => passTime(clock, ms))
    })

    await t.test('counts the limits of a caller, and resets them', async t => {
      const { client } = await storeAt(t.teardown, read)
      const counts = createRedisCounts(client, '{cg}:')
      const caller = 'a:192.0.2.1'
      const rate = { max: 3, windowMs: 3_600_000, burst: 3 }
      await counts.tell(`${caller} told`, rate, 2)
      const taken: boolean[] = []
      for (let index = 0; index < 4; index++) {
        taken.push(((await counts.take(`${caller} taken`, rate)) ?? -1) > 0)
      }
      t.same(taken, [true, true, true, false])
      const known = async () => (await counts.ofCaller(caller)).map(({ limit }) => limit).toSorted()
      t.same(await known(), ['taken', 'told'])
      await counts.forget(caller)
      t.same(await known(), [])
    })

    await t.test('keeps the contract of session stores', async t => {
      const clock = await clockOf(t, read)
      const { store, refusals } = await storeAt(t.teardown, { ...patient, ...read })
      sessionStoreContract(t, store, ms => passTime(clock, ms))
      t.same(refusals, [])
    })

    const title = 'serves whole gateways: sign in, profile, sign out, and the other replica knows'
    await t.test(title, async t => {
      const { password, ...rest } = given
      const secret = password === undefined ? {} : { password: '${REDIS_PASSWORD}' }
      const environment = { REDIS_PASSWORD: password ?? '' }
      const [a, b] = await replicas(t, { ...rest, commandTimeout: '20s', ...secret }, environment)
      const cookies = await Promise.all(Array.from({ length: 8 }, async () => await a.signIn()))
      const statusAt = async ({ call }: typeof a, cookie = '') =>
        (await call(profile, { cookie })).status
      for (const cookie of cookies) {
        for (const gateway of [a, b, b]) t.equal(await statusAt(gateway, cookie), 200)
      }
      const [first = ''] = cookies
      t.equal((await b.call('/api/account/logout', { cookie: first })).status, 200)
      await until('the other replica knows', async () => (await statusAt(a, first)) === 401)
      t.equal((await a.ops('/ops/api/sessions/close', { json: { user: '1' } })).status, 200)
      for (const cookie of cookies) {
        for (const gateway of [a, b]) {
          await until('revoked', async () => (await statusAt(gateway, cookie)) === 401)
        }
      }
      const levels = new Set([...a.log, ...b.log].map(({ level }) => level))
      t.notOk(levels.has('error') || levels.has('fatal'), 'nothing was amiss')
    })
  })
}

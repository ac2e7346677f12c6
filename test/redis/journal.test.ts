import t from 'tap'
import { createSecretId, keyOf } from '../../src/session/types.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { testSentinel } from '../support/sentinel.ts'
import { hour, redisStore } from '../support/sessions.ts'
import { profile, replica } from '../support/trial.ts'
import { until } from '../support/until.ts'

t.test('a replica of Redis that hangs holds up no sign-in and no sign-out', async t => {
  const sentinel = await testSentinel(t.after)
  const gateway = await replica(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  sentinel.servers[1].signal('SIGSTOP')
  const cookie = await gateway.signIn()
  const answer = await gateway.call('/api/account/logout', { cookie, method: 'POST' })
  t.equal(answer.status, 200)
  sentinel.servers[1].signal('SIGCONT')
  t.equal((await gateway.call(profile, { cookie })).status, 401)
})

const user = { source: 's', id: '1', username: 'u' }
const stored = { sealed: 'sealed', idleMs: hour, absoluteMs: hour }
const newKey = () => keyOf(createSecretId(user))
const opening = (key: string, max = 1) => ({ key, stored, user, max, refuse: false })

t.test(
  'a primary that has not heard of a revocation of the last minutes hears of it before it is read from',
  async t => {
    const { url, port } = await testRedis(t.after)
    const { client, store } = await redisStore(t.after, url)
    const key = newKey()
    await store.open(opening(key))
    const record = `{test}:s:${key}`
    const [dump, [list = '']] = [await client.get(record), await client.keys('{test}:u:*')]
    const [id = ''] = await client.zrange(list, '0', '-1')
    await store.end(user, [key], 'revoked')
    await redisCli(port, 'SET', record, dump ?? '', 'PX', String(hour))
    await redisCli(port, 'ZADD', list, String(Date.now() + hour), id)
    t.match(await store.read(key), { sealed: 'sealed' }, 'as a primary that missed it')
    await redisCli(port, 'CLIENT', 'KILL', 'TYPE', 'normal')
    let found: unknown
    await until('the store answers again', async () => {
      found = await store.read(key)
      return found !== undefined
    })
    t.same(found, { ended: 'revoked' })
  }
)

t.test(
  'after a failover a session is not unknown before its process has written it again',
  async t => {
    const { url } = await testRedis(t.after)
    const opener = await redisStore(t.after, url)
    const reader = await redisStore(t.after, url)
    const [late, never] = [newKey(), newKey()]
    t.equal(await reader.store.read(late), undefined)
    // As at a connection to another server than before.
    reader.store.replay(true)
    await t.rejects(reader.store.read(late), { code: 'session.unavailable' })
    await opener.store.open(opening(late))
    t.match(await reader.store.read(late), { sealed: 'sealed' })
    await until('what nobody wrote is unknown', async () => {
      return (await reader.store.read(never).catch(() => null)) === undefined
    })
  }
)

t.test('a sign-out holds also where the sign-in is written again after it', async t => {
  const { url, port } = await testRedis(t.after)
  const opener = await redisStore(t.after, url)
  const closer = await redisStore(t.after, url)
  const [key, later] = [newKey(), newKey()]
  await opener.store.open(opening(key))
  // As a new primary that has not heard of the sign-in.
  await redisCli(port, 'FLUSHALL')
  await closer.store.end(user, [key], 'revoked')
  opener.store.replay(true)
  await opener.store.open(opening(later, 9))
  t.same(await closer.store.read(key), { ended: 'revoked' })
  t.match(await closer.store.read(later), { sealed: 'sealed' })
})

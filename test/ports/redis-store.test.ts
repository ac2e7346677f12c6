import { readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import t from 'tap'
import type { Opening } from '../../src/session/store.ts'
import { createSecretId, keyOf, type SignedIn } from '../../src/session/types.ts'
import { passTime } from '../support/clock.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { hour, minute, redisStore } from '../support/sessions.ts'
import { until } from '../support/until.ts'
import { sessionStoreContract } from './session-store.ts'

const user: SignedIn = { source: 's', id: 'u', username: 'u' }
const other: SignedIn = { source: 's', id: 'v', username: 'v' }
const stored = { sealed: 'sealed', idleMs: 10 * minute, absoluteMs: hour }
const openingOf = (whose: SignedIn, more: Partial<Opening> = {}): Opening => ({
  key: keyOf(createSecretId(whose)),
  stored,
  user: whose,
  max: 3,
  refuse: false,
  ...more
})
const gone = { code: 'session.unavailable' }

t.test('sessions in Redis', async t => {
  const { url } = await testRedis(t.after)
  const { client, store } = await redisStore(t.after, url)
  sessionStoreContract(t, store, async ms => await passTime(client, ms))
})

t.test('V1: bursts of 15 sign-ins at once over three replicas leave exactly three', async t => {
  const { url } = await testRedis(t.after)
  const replicas = await Promise.all([1, 2, 3].map(() => redisStore(t.after, url)))
  const at = (index: number) => replicas[index % 3]!.store
  const aliveOf = async (keys: readonly string[]) => {
    const found = await Promise.all(keys.map(async (key, index) => await at(index).read(key)))
    return keys.filter((_, index) => 'sealed' in (found[index] ?? {}))
  }
  const all: string[] = []
  for (let burst = 0; burst < 20; burst++) {
    const openings = Array.from({ length: 15 }, () => openingOf(user))
    const ended = await Promise.all(openings.map(async (each, n) => await at(n).open(each)))
    const keys = openings.map(({ key }) => key)
    all.push(...keys)
    const alive = await aliveOf(all)
    t.equal(alive.length, 3)
    t.ok(
      alive.every(key => keys.includes(key)),
      'of the latest burst'
    )
    t.equal(new Set(ended.flat()).size, burst === 0 ? 12 : 15, 'each ended once')
  }
  for (let burst = 0; burst < 20; burst++) {
    const whose = { ...user, id: `refused ${burst}` }
    const openings = Array.from({ length: 15 }, () => openingOf(whose, { refuse: true }))
    const ended = await Promise.all(openings.map(async (each, n) => await at(n).open(each)))
    t.equal(ended.filter(each => each === 'full').length, 12)
    t.equal((await aliveOf(openings.map(({ key }) => key))).length, 3)
  }
})

t.test('a full Redis opens no session; ends and use go on', async t => {
  const { url } = await testRedis(t.after)
  const { client, store } = await redisStore(t.after, url)
  const [used, ended, former, last] = [1, 2, 3, 4].map(() => openingOf(user, { max: 9 }))
  for (const each of [used, ended, former, last]) await store.open(each!)
  await client.config('SET', 'maxmemory', '1')
  await t.rejects(store.open(openingOf(user, { former: former! })), gone)
  t.match(await store.read(former!.key), { sealed: 'sealed' }, 'R8')
  t.equal(await store.touch(used!.key, hour + 0.5678, user), true, 'parts of a ms are no fault')
  t.ok(((await store.read(used!.key)) as typeof stored).idleMs > 50 * minute)
  t.same(await store.end(user, [ended!.key], 'revoked'), [ended!.key])
  t.same(await store.read(ended!.key), { ended: 'revoked' })
  await store.endAll()
  t.same(await store.read(last!.key), { ended: 'revoked' })
})

t.test('a damaged key is no session, and keeps nobody from signing in', async t => {
  const { url } = await testRedis(t.after)
  const { client, store } = await redisStore(t.after, url)
  const { key: damaged, ...opening } = openingOf(user, { refuse: true, max: 1 })
  t.same(await store.open({ key: damaged, ...opening }), [])
  await client.set(`{test}:s:${damaged}`, 'no record of ours', 'PX', hour)
  t.equal(await store.read(damaged), undefined)
  t.equal(await store.touch(damaged, hour, user), false)
  const next = openingOf(user, { refuse: true, max: 1 })
  t.same(await store.open(next), [], 'it takes no place')
  t.same(await store.end(user, [next.key, damaged], 'revoked'), [next.key])
  const { key } = openingOf(user)
  await client.set(`{test}:s:${key}`, '0 sealed', 'PX', hour)
  t.ok(((await store.read(key)) as typeof stored).idleMs <= 0, 'a record without its user’s list')
  await client.set(`{test}:s:${key}`, '!a reason of tomorrow', 'PX', hour)
  t.same(await store.read(key), { ended: 'revoked' })
  await client.lpush('{test}:users', 'x')
  await t.rejects(store.signedIn(1), gone)
})

t.test('keys are named, in one slot, and end by themselves', async t => {
  const { url } = await testRedis(t.after)
  const { client, store } = await redisStore(t.after, url)
  const opening = openingOf(user)
  await store.open(opening)
  await store.open(openingOf(user, { former: opening }))
  await store.lock('renew', 'me', 1000)
  const keys = await client.keys('*')
  t.equal(keys.length, 5)
  for (const key of keys) {
    t.match(key, /^\{test\}:/)
    if (!key.endsWith(':users')) t.ok((await client.pttl(key)) > 0, key)
  }
  t.notMatch(await client.get(`{test}:s:${opening.key}`), 'sealed', 'of an ended one the reason')
})

t.test('a Redis that lost what was written gets it again: openings, ends, everyone', async t => {
  const redis = await testRedis(t.after)
  const [a, b] = [await redisStore(t.after, redis.url), await redisStore(t.after, redis.url)]
  const [before, kept, endedByA, endedByB, evicted] = [other, user, user, user, other].map(whose =>
    openingOf(whose)
  )
  await a.store.open(before!)
  await b.store.endAll()
  for (const each of [kept, endedByA, endedByB, evicted]) await a.store.open(each!)
  await a.store.end(user, [endedByA!.key], 'upstream')
  await b.store.end(user, [endedByB!.key], 'revoked')
  const newer = openingOf(other, { max: 1 })
  await b.store.open(newer)
  for (const order of [
    [a, b],
    [b, a],
    [a, b, a, b]
  ]) {
    await a.client.flushall()
    for (const { store } of order) store.replay(true)
    await Promise.all(order.map(async ({ client }) => await client.ping()))
    t.match(await a.store.read(kept!.key), { sealed: 'sealed' })
    t.match(await a.store.read(newer.key), { sealed: 'sealed' })
    t.same(await a.store.read(endedByA!.key), { ended: 'upstream' })
    t.same(await a.store.read(endedByB!.key), { ended: 'revoked' })
    t.same(await a.store.read(evicted!.key), { ended: 'replaced' })
    const revoked = await a.store.read(before!.key).catch(() => undefined)
    t.ok(revoked === undefined || 'ended' in revoked, 'everyone was out before the others came')
    t.equal((await a.store.signedIn(0)).total, 2)
  }
  await redis.kill()
  await t.rejects(a.store.read(kept!.key), gone)
  await t.rejects(a.store.end(user, [kept!.key], 'revoked'), gone, 'it is done later')
  await redis.start()
  await until('both are back', () => [a, b].every(({ client }) => client.status === 'ready'))
  await b.client.ping()
  await until('the same server has lost it', async () => {
    return (await b.store.read(newer.key).catch(() => null)) === undefined
  })
  t.same(await a.store.read(kept!.key), { ended: 'revoked' })
  const last = openingOf(other)
  await b.store.open(last)
  await a.store.endAll()
  for (const { store } of [a, b]) store.replay(true)
  await b.client.ping()
  t.same(await a.store.read(last.key), { ended: 'revoked' }, 'an epoch is never used twice')
})

t.test(
  'a sign-out of a session that Redis has forgotten holds where another one has it',
  async t => {
    const { url } = await testRedis(t.after)
    const { client, store } = await redisStore(t.after, url)
    const opening = openingOf(user)
    await store.open(opening)
    const record = `{test}:s:${opening.key}`
    const dump = await client.dumpBuffer(record)
    await client.del(record)
    t.equal(await store.read(opening.key), undefined)
    await store.end(undefined, [opening.key], 'revoked')
    await client.restore(record, 0, dump as never, 'REPLACE')
    store.replay(true)
    t.same(await store.read(opening.key), { ended: 'revoked' })
  }
)

t.test('a server that became a replica does not say that there is no session', async t => {
  const [{ url, port }, primary] = [await testRedis(t.after), await testRedis(t.after)]
  const { store } = await redisStore(t.after, url)
  const { key } = openingOf(user)
  t.equal(await store.read(key), undefined)
  await redisCli(port, 'REPLICAOF', '127.0.0.1', String(primary.port))
  await t.rejects(store.read(key), gone)
})

t.test('the rights of the docs are all that sessions need', async t => {
  const { url, port } = await testRedis(t.after)
  const admin = new Redis(url)
  t.after(() => admin.disconnect())
  const docs = readFileSync('docs/operations.md', 'utf8')
  const rights = /user gateway on >PASSWORD (.*)/.exec(docs)?.[1]?.split(' ') ?? []
  await admin.call('ACL', 'SETUSER', 'gateway', 'on', '>password', ...rights)
  const { store, refusals } = await redisStore(
    t.after,
    `redis://gateway:password@127.0.0.1:${port}`,
    '{cg}:'
  )
  sessionStoreContract(t, store, async ms => await passTime(admin, ms))
  t.same(refusals, [])
})

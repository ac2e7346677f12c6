import t, { type Test } from 'tap'
import { createRedisDialler } from '../../src/services/redis.ts'
import { followRedis } from '../../src/session/redis-invalidation.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { StoreUnavailable, tombstoneMark } from '../../src/session/store.ts'
import { sessionStoreContract } from '../suites/session-store.ts'
import { passTime } from '../support/clock.ts'
import { redisConfig } from '../support/config.ts'
import { until } from '../support/until.ts'
import { testRedis, type TestRedis } from '../support/redis.ts'

/** A store on a Redis of its own, and when its client is ready. */
async function opened(t: Test, commandTimeout: number, redis?: TestRedis) {
  redis ??= await testRedis(t.after)
  const up: Array<() => void> = []
  const dialler = createRedisDialler(
    redisConfig({ url: redis.url, connectTimeout: 30_000, commandTimeout }),
    '.'
  )
  const client = dialler.client({
    onUp: () => up.splice(0).forEach(tell => tell()),
    onDown: () => {}
  })
  t.after(() => {
    client.disconnect()
  })
  const ready = () =>
    new Promise<void>(resolve => {
      if (client.status === 'ready') resolve()
      else up.push(resolve)
    })
  await ready()
  const store = createRedisStore({
    redis: client,
    prefix: 'test:',
    follow: (follower, names) => {
      t.after(
        followRedis({
          dial: () => dialler.trackingConnections(client),
          onTopology: changed => dialler.onTopology(client, changed),
          follower,
          names,
          maxStalenessMs: 120_000
        })
      )
    }
  })
  return { redis, client, store, ready }
}

const patient = 30_000

t.test('sessions in Redis', async t => {
  const { client, store } = await opened(t, patient)
  sessionStoreContract(t, store, ms => passTime(client, ms), Date.now)
})

t.test('a key of another type, or without a time to live, is no session', async t => {
  const { client, store } = await opened(t, patient)
  await client.lpush('test:session:list', 'x')
  t.equal(await store.read('list'), undefined)
  await client.set('test:session:eternal', '{}')
  t.equal(await store.read('eternal'), undefined)
})

t.test('a full Redis extends a session that is used, and ends it', async t => {
  const { client, store } = await opened(t, patient)
  const record = 'sealed'
  const hour = 3_600_000
  for (const key of ['used', 'refreshed']) await store.create(key, record, hour)
  await store.touchAfterUse('refreshed', hour, 0)
  await client.config('SET', 'maxmemory', '1')
  for (const key of ['used', 'refreshed']) {
    t.equal(await store.touch(key, 9 * hour, 0), true)
    t.ok(((await store.read(key))?.ttlMs ?? 0) > 8 * hour, key)
  }
  t.equal(await store.touchAfterUse('used', hour, 0), false)
  t.equal(await store.end('used', `${tombstoneMark}revoked`, hour), true)
  t.not((await store.read('used'))?.record, record)
  await client.config('SET', 'maxmemory', '0')
})

// Redis 7.0 lets time pass within a script: two moments that are one or not, each a millisecond's
// change. About one of 700 pairs met it.
t.test('a second touch after use adds nothing, however the first fell', async t => {
  const { client, store } = await opened(t, patient)
  const minute = 60_000
  const pair = async (index: number) => {
    const key = `s${index}`
    await store.create(key, 'sealed', 2 * minute)
    const touches = [store.touchAfterUse(key, minute, 1), store.touchAfterUse(key, minute, 1)]
    return await Promise.all(touches)
  }
  const seen = await Promise.all(
    Array.from({ length: 6000 }, async (_, index) => await pair(index))
  )
  t.equal(seen.filter(([first]) => first === true).length, seen.length)
  t.equal(seen.filter(([, second]) => second === true).length, 0)
  await client.flushall()
})

t.test('the record of a session outlives its clock after each touch', async t => {
  const { client, store } = await opened(t, patient)
  const hour = 3_600_000
  await store.create('s', 'sealed', hour)
  const touches = [
    async () => await store.touchAfterUse('s', 2 * hour, 0),
    async () => await store.touch('s', 9 * hour, 0)
  ]
  for (const touch of touches) {
    t.equal(await touch(), true)
    const [record, clock] = [
      await client.pttl('test:session:s'),
      await client.pttl('test:clock:{test:session:s}')
    ]
    t.ok(record > clock + hour, `${record} after ${clock}`)
  }
})

t.test('the notes of a user are gone with the last session that they are about', async t => {
  const { client, store } = await opened(t, patient)
  const user = identityKey({ source: 's', identity: { id: '7' } })
  const hour = 3_600_000
  await store.indexSession(user, 'long', Date.now() + 2 * hour)
  await store.indexSession(user, 'short', Date.now() + hour)
  for (const key of await client.keys('test:identity:*')) {
    const left = await client.pttl(key)
    t.ok(left > hour && left <= 2 * hour, `${key}: ${left}`)
  }
})

t.test('later is greater, also where the clock of Redis was set back meanwhile', async t => {
  const { client, store } = await opened(t, patient)
  const user = identityKey({ source: 's', identity: { id: '7' } })
  const ahead = (Date.now() + 3_600_000) * 1000
  const until = Date.now() + 7_200_000
  await store.indexSession(user, 'first', until)
  const [index = ''] = await client.keys('test:identity:*')
  await client.hset(index, 'first', `${ahead} ${until}`, '#', String(ahead))
  await store.indexSession(user, 'second', until)
  t.same(await store.sessionKeysOf(user), ['first', 'second'])

  await store.lock('token', 'a', 60_000)
  await store.fence('token', 'a', 60_000)
  const [fence = ''] = await client.keys('test:*fence*')
  await client.set(fence, `${ahead} a`)
  await store.unlock('token', 'a', false)
  await store.lock('token', 'b', 60_000)
  t.same(await store.fence('token', 'b', 60_000), { number: ahead + 1, isContested: true })
})

t.test('a user who signs in for a short time is present for as long as before', async t => {
  const { store } = await opened(t, patient)
  const user = { source: 's', id: '7', username: 'alice' }
  const hour = 3_600_000
  await store.addSignedIn(user, Date.now() + hour)
  await store.addSignedIn(user, Date.now() + 1)
  await until('the short time is over', async () => {
    await store.addSignedIn({ ...user, id: '8' }, Date.now() + hour)
    return (await store.signedIn(10)).length === 2
  })
})

t.test('of the states of a users file, one that others have replaced counts no more', async t => {
  const { store } = await opened(t, patient)
  const announce = async (state: string, before?: string) =>
    await store.announceUsers('s', state, before)
  t.equal(await announce('a'), true)
  t.equal(await announce('b', 'a'), true)
  t.equal(await announce('c', 'b'), true)
  for (const outdated of ['a', 'b']) t.equal(await announce(outdated), false, outdated)
  t.equal(await announce('c'), true)
  t.equal(await announce('a', 'c'), true, 'a replica that went back to it')
  for (const outdated of ['b', 'c']) t.equal(await announce(outdated), false, outdated)
})

t.test('of the epochs of several primaries the greatest counts, and all get it', async t => {
  const { client } = await opened(t, patient)
  const [one, other] = ['test:session-epoch{1}', 'test:session-epoch{2}']
  const store = createRedisStore({
    redis: client,
    prefix: 'test:',
    follow: () => {},
    keysOnEach: () => [one, other]
  })
  const both = async () => await client.mget(one, other)
  t.equal(await store.bumpEpoch(), 1)
  t.same(await both(), ['1', '1'], 'before it is confirmed')
  await client.set(other, '7')
  t.equal(await store.epoch(), 7)
  await until('the one behind has it', async () => (await client.get(one)) === '7')
  await client.set(other, '9')
  t.equal(await store.bumpEpoch(), 10, 'more than any of them')
  t.same(await both(), ['10', '10'])
  await client.set(one, 'no number')
  await t.rejects(store.epoch(), { code: 'session.unavailable' })
})

t.test('a full Redis refuses no touch after use, which then sets nothing', async t => {
  const { client, store } = await opened(t, patient)
  await store.create('s', 'sealed', 60_000)
  await client.config('SET', 'maxmemory', '1')
  t.equal(await store.touchAfterUse('s', 120_000, 0), false)
  t.ok((await store.read('s'))?.record, 'it lives')
  await client.config('SET', 'maxmemory', '0')
  t.equal(await store.touchAfterUse('s', 120_000, 0), true)
})

t.test('a session whose clock is lost is over', async t => {
  const { client, store } = await opened(t, patient)
  await store.create('lost', 'sealed', 3_600_000)
  await client.del('test:clock:{test:session:lost}')
  t.equal(await store.read('lost'), undefined)
  t.equal(await store.touch('lost', 3_600_000, 0), false)
  t.equal(await store.end('lost', `${tombstoneMark}revoked`, 3_600_000), false)
})

t.test(
  'a Redis that hangs makes every call fail with the command time-out, and none succeed late',
  async t => {
    const { redis, store, ready } = await opened(t, 300)
    const isThere = async () => (await store.read('frozen'))?.record === '{}'
    // So short a time-out may strike by itself where this machine stands still.
    await until(
      'it is written',
      async () => await store.create('frozen', '{}', 3_600_000).then(() => true, isThere)
    )
    const { store: other } = await opened(t, patient, redis)
    redis.signal('SIGSTOP')
    let isOver = false
    const late = other.read('frozen').finally(() => {
      isOver = true
    })
    await t.rejects(store.read('frozen'), { code: 'session.unavailable' })
    t.notOk(isOver, 'one that began before, with more time, still waits')
    t.equal(await store.ping(), false)
    redis.signal('SIGCONT')
    t.match(await late, { record: '{}' })
    await ready()
    await until('the session outlived the pause', isThere)
  }
)

t.test(
  'a Redis that is gone makes every call fail at once; a new one is found without help',
  async t => {
    const { redis, store, ready } = await opened(t, patient)
    await redis.kill()
    for (const attempt of [
      () => store.read('x'),
      () => store.create('x', '{}', 1000),
      () => store.touch('x', 1000, 0),
      () => store.end('x', '!revoked', 1000)
    ]) {
      const error: unknown = await attempt().then(
        () => undefined,
        (reason: unknown) => reason
      )
      t.ok(error instanceof StoreUnavailable, String(error))
    }
    await redis.start()
    await ready()
    await store.create('again', '{}', 3_600_000)
    t.equal((await store.read('again'))?.record, '{}')
  }
)

import type { Cluster, Redis } from 'ioredis'
import t, { type Test } from 'tap'
import {
  createMemoryCounters,
  createRedisCounters,
  countersWithFallback,
  type Counters
} from '../../../src/limits/counting/counters.ts'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { countersContract } from '../../suites/counters.ts'
import { passTime } from '../../support/clock.ts'
import { redisConfig } from '../../support/config.ts'
import { until } from '../../support/until.ts'
import { testRedis, type TestRedis } from '../../support/redis.ts'

/** A client as the gateway has it, and what it says of its Redis. */
async function connected(
  t: Test,
  { url }: TestRedis,
  commandTimeout = 30_000
): Promise<{ redis: Redis | Cluster; up: () => Promise<void>; down: () => Promise<void> }> {
  let tell: Partial<Record<'up' | 'down', () => void>> = {}
  const said = (what: 'up' | 'down') =>
    new Promise<void>(resolve => {
      tell = { [what]: resolve }
    })
  const redis = createRedisDialler(
    redisConfig({ url, connectTimeout: 30_000, commandTimeout }),
    '.'
  ).client({ onUp: () => tell.up?.(), onDown: () => tell.down?.() })
  t.after(() => {
    redis.disconnect()
  })
  await said('up')
  return { redis, up: () => said('up'), down: () => said('down') }
}

t.test('in memory', async t => {
  let time = 1_000_000
  const counters = createMemoryCounters(() => time)
  t.after(() => counters.close())
  countersContract(t, counters, async ms => {
    time += ms
  })
})

t.test('in Redis', async t => {
  const server = await testRedis(t.after)
  const { redis } = await connected(t, server)
  countersContract(t, createRedisCounters(redis, 'cg:'), ms => passTime(redis, ms))
})

t.test(
  'while memory holds no more keys, the oldest gives way, and one that was renewed is not the oldest',
  async t => {
    let time = 0
    const counters = createMemoryCounters(() => time)
    t.after(() => counters.close())
    await counters.hit('renewed', 10)
    await counters.hit('oldest', 1_000_000)
    time = 20
    await counters.hit('renewed', 1_000_000)
    for (let index = 0; index < 99_999; index++) await counters.hit(`made-up-${index}`, 1_000_000)
    t.equal((await counters.hit('renewed', 1_000_000)).current, 2)
    t.equal((await counters.hit('oldest', 1_000_000)).current, 1)
  }
)

t.test('replicas that share a Redis share the counts; another prefix does not', async t => {
  const server = await testRedis(t.after)
  const [one, other] = [await connected(t, server), await connected(t, server)]
  const [a, b, c] = [
    createRedisCounters(one.redis, 'cg:'),
    createRedisCounters(other.redis, 'cg:'),
    createRedisCounters(one.redis, 'other:')
  ]
  const counts = await Promise.all(
    Array.from({ length: 200 }, (_, index) => (index % 2 === 0 ? a : b).hit('shared', 60_000))
  )
  t.equal(new Set(counts.map(({ current }) => current)).size, 200)
  t.equal((await c.hit('shared', 60_000)).current, 1)
})

t.test('a counter in Redis always has an end, also one that lost it', async t => {
  const server = await testRedis(t.after)
  const { redis } = await connected(t, server)
  const counters = createRedisCounters(redis, 'cg:')
  await counters.hit('k', 60_000)
  await redis.persist('cg:limit:k')
  t.match(await counters.hit('k', 60_000), { current: 2, ttl: 60_000 })
  t.ok((await redis.pttl('cg:limit:k')) > 0)
  await counters.refund('k')
  t.ok((await redis.pttl('cg:limit:k')) > 0)
})

t.test('counters survive a Redis that forgot its scripts', async t => {
  const server = await testRedis(t.after)
  const { redis } = await connected(t, server)
  const counters = createRedisCounters(redis, 'cg:')
  await counters.hit('k', 60_000)
  await redis.script('FLUSH')
  t.equal((await counters.hit('k', 60_000)).current, 2)
  await redis.script('FLUSH')
  await counters.refund('k')
  t.equal((await counters.hit('k', 60_000)).current, 2)
})

t.test(
  'while Redis is away limits go on in this process, and come back to Redis after it',
  async t => {
    const server = await testRedis(t.after)
    const { redis, up, down } = await connected(t, server)
    let time = 0
    let outages = 0
    const shared = asked(createRedisCounters(redis, 'cg:'))
    const counters = countersWithFallback({
      shared,
      local: createMemoryCounters(),
      onAway: away => {
        if (away) outages++
      },
      now: () => time
    })
    t.after(() => counters.close())

    t.same([await current(counters), await current(counters)], [1, 2])
    const gone = down()
    await server.kill()
    await gone
    t.same(
      [await current(counters), await current(counters), await current(counters)],
      [1, 2, 3],
      'counted here'
    )
    await counters.refund('k')
    t.equal(await current(counters), 3, 'given back here')
    t.equal(shared.times(), 3, 'a Redis that failed is left alone for a second')

    time = 1000
    t.equal(await current(counters), 4, 'still away')
    t.equal(shared.times(), 4, 'and asked again after it')

    const back = up()
    await server.start()
    await back
    t.equal(await current(counters), 5, 'its second is not over')
    time = 2000
    t.equal(await current(counters), 1, 'counted in Redis again')
    t.equal(await redis.get('cg:limit:k'), '1')
    t.equal(outages, 1, 'said once an outage')

    const goneAgain = down()
    await server.kill()
    await goneAgain
    t.equal(await current(counters), 6)
    t.equal(outages, 2, 'the next outage is said too')
  }
)

t.test(
  'what was counted in Redis is given back there, also when it was away just then; what was counted here, here',
  async t => {
    const server = await testRedis(t.after)
    const { redis } = await connected(t, server, 300)
    let time = 0
    const counters = countersWithFallback({
      shared: createRedisCounters(redis, 'cg:'),
      local: createMemoryCounters(),
      onAway: () => {},
      now: () => time
    })
    t.after(() => counters.close())
    const answersAgain = async () => {
      server.signal('SIGCONT')
      await until('Redis answers again', () =>
        redis.ping().then(
          () => true,
          () => false
        )
      )
      time += 1000
    }
    const shared = await counters.hit('k', 60_000)
    server.signal('SIGSTOP')
    await counters.refund('k', shared)
    const local = await counters.hit('k', 60_000)
    t.match(local, { current: 1, isLocal: true }, 'nothing of Redis was given back here')
    await answersAgain()
    t.equal((await counters.hit('k', 60_000)).current, 1, 'given back once Redis was there')
    await counters.refund('k', local)
    t.equal(
      (await counters.hit('k', 60_000)).current,
      2,
      'what was counted here takes nothing from Redis'
    )
  }
)

t.test('a refund whose answer came late takes back one hit, however often', async t => {
  const server = await testRedis(t.after)
  const { redis } = await connected(t, server)
  const inRedis = createRedisCounters(redis, 'cg:')
  let time = 0
  let isLate = false
  const counters = countersWithFallback({
    shared: {
      ...inRedis,
      refund: async (...refund) => {
        await inRedis.refund(...refund)
        if (isLate) throw new Error('Command timed out')
      }
    },
    local: createMemoryCounters(),
    onAway: () => {},
    now: () => time
  })
  t.after(() => counters.close())
  // Names come from outside, and braces decide where a Cluster keeps a key.
  for (const key of ['k', 'tries:{', 'tries:{x}', 'tries:}{}']) {
    let right = await counters.hit(key, 60_000)
    for (let wrong = 0; wrong < 8; wrong++) right = await counters.hit(key, 60_000)
    isLate = true
    await counters.refund(key, right)
    for (let again = 0; again < 3; again++) {
      time += 1000
      await counters.hit('other', 60_000)
    }
    isLate = false
    time += 1000
    t.equal((await counters.hit(key, 60_000)).current, 9)
    await counters.refund(key, right)
    t.equal((await counters.look(key)).current, 8, 'another refund is one of its own')
  }
  const ends = await Promise.all((await redis.keys('*')).map(key => redis.pttl(key)))
  t.ok(ends.every(ttl => ttl > 0 && ttl <= 60_000))
})

t.test('a Redis that hangs costs one request its time-out, not each', async t => {
  const server = await testRedis(t.after)
  const { redis } = await connected(t, server, 300)
  const shared = asked(createRedisCounters(redis, 'cg:'))
  const counters = countersWithFallback({
    shared,
    local: createMemoryCounters(),
    onAway: () => {},
    now: () => 0
  })
  t.after(() => counters.close())
  server.signal('SIGSTOP')
  t.equal(await current(counters), 1)
  for (let index = 0; index < 100; index++) await counters.hit('k', 60_000)
  t.equal(await current(counters), 102)
  t.equal(shared.times(), 1)
})

t.test('a key in Redis that holds something else is counted here, and no other one', async t => {
  const server = await testRedis(t.after)
  const { redis } = await connected(t, server)
  const refused: string[] = []
  const away: boolean[] = []
  const counters = countersWithFallback({
    shared: createRedisCounters(redis, 'cg:'),
    local: createMemoryCounters(),
    onAway: isAway => away.push(isAway),
    onForeignKey: ({ message }) => refused.push(message),
    now: () => 0
  })
  t.after(() => counters.close())
  await redis.lpush('cg:limit:k', 'x')
  await redis.set('cg:limit:text', 'x')
  for (const key of ['k', 'text']) {
    t.match(await counters.hit(key, 60_000), { current: 1, isLocal: true })
    t.match(await counters.hit(key, 60_000), { current: 2, isLocal: true })
  }
  t.match(refused, [/WRONGTYPE/, /WRONGTYPE/, /not an integer/, /not an integer/])
  t.match(await counters.hit('other', 60_000), { current: 1, ttl: 60_000, isLocal: undefined })
  t.equal(await redis.get('cg:limit:other'), '1')
  t.same(away, [])
})

/** Counters that also tell how often they were asked. */
function asked(counters: Counters): Counters & { times: () => number } {
  let times = 0
  return {
    hit: (key, windowMs) => {
      times++
      return counters.hit(key, windowMs)
    },
    refund: key => counters.refund(key),
    look: key => counters.look(key),
    forget: key => counters.forget(key),
    close: () => counters.close(),
    times: () => times
  }
}

async function current(counters: Counters): Promise<number> {
  return (await counters.hit('k', 60_000)).current
}

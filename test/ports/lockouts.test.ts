/** Failures of sign-in: in memory, in Redis, and while Redis is away. */
import t, { type Test } from 'tap'
import { createMemoryLockouts } from '../../src/limits/lockouts.ts'
import { createRedisLockouts, lockoutsWithFallback } from '../../src/limits/redis-lockouts.ts'
import { createRedisDialler } from '../../src/services/redis.ts'
import { bucketOf, lockoutsContract } from './lockouts.ts'
import { passTime, stopClock } from '../support/clock.ts'
import { redisConfig } from '../support/sessions.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const minute = 60_000
const x = bucketOf('account x')
const full = '{cg}:f:account x'

async function connected(t: Test, commandTimeout = 30_000) {
  const server = await testRedis(t.after)
  const up = Promise.withResolvers<void>()
  const redis = createRedisDialler(redisConfig({ url: server.url, commandTimeout })).client(
    reason => void (reason === undefined && up.resolve())
  )
  t.after(() => redis.disconnect())
  await up.promise
  return { server, redis }
}

t.test('in memory', async t => {
  lockoutsContract(t, createMemoryLockouts(), stopClock(t.after))
})

t.test('in Redis, with rights to its own keys alone', async t => {
  const { redis } = await connected(t)
  await redis.call('ACL', 'SETUSER', 'default', 'resetkeys', '~{cg}:*')
  lockoutsContract(t, createRedisLockouts(redis, '{cg}:'), ms => passTime(redis, ms))
})

t.test('a flood of made-up names does not push out who is locked', async t => {
  stopClock(t.after)
  const lockouts = createMemoryLockouts()
  await lockouts.take([bucketOf('account locked', 1)])
  for (let index = 0; index < 100_001; index++) await lockouts.take([bucketOf(`account ${index}`)])
  t.equal((await lockouts.take([bucketOf('account locked', 1)])).isTaken, false)
})

t.test('by Redis’ own clock, shared by all, all keys in one slot and with an end', async t => {
  const { redis } = await connected(t)
  const bucket = bucketOf('account x', 3, 600 * minute)
  const [a, b] = [createRedisLockouts(redis, '{cg}:'), createRedisLockouts(redis, '{cg}:')]
  stopClock(t.after)(-1e9)
  for (const each of [a, b, a]) t.equal((await each.take([bucket])).isTaken, true)
  const { isTaken, waitMs } = await b.take([bucket])
  t.equal(isTaken, false)
  t.ok(Math.abs((waitMs[0] ?? 0) - 600 * minute) < minute, waitMs.join())
  t.match(await b.list(), [{ key: 'account x' }])
  const keys = await redis.keys('*')
  t.same(keys.toSorted(), [full, '{cg}:locks'])
  for (const key of keys) {
    const left = await redis.pttl(key)
    t.ok(left > 0 && left <= 1800 * minute, `${key}: ${left}`)
  }
})

/** Lockouts over a real Redis that can be stopped. */
async function withOutages(t: Test, commandTimeout?: number) {
  const { server, redis } = await connected(t, commandTimeout)
  const seen = { away: [] as unknown[], asked: 0 }
  const shared = createRedisLockouts(redis, '{cg}:')
  const take: typeof shared.take = async buckets => {
    seen.asked++
    return await shared.take(buckets)
  }
  const lockouts = lockoutsWithFallback({ ...shared, take }, error => seen.away.push(error))
  return {
    redis,
    lockouts,
    seen,
    failures: async () => {
      const [seconds, micros] = await redis.time()
      const now = Number(seconds) * 1000 + Number(micros) / 1000
      return Math.max(0, Math.ceil((Number((await redis.get(full)) ?? 0) - now) / minute))
    },
    stop: () => server.signal('SIGSTOP'),
    goOn: async () => {
      server.signal('SIGCONT')
      await until('Redis is asked again', async () => {
        const { isLocal } = await lockouts.take([bucketOf('account of nobody', 1000)])
        return isLocal !== true
      })
    },
    attempts: async (times: number) =>
      await Array.fromAsync({ length: times }, async () => (await lockouts.take([x])).isTaken)
  }
}

t.test('while Redis is away each process counts, and what Redis knew is known again', async t => {
  const { lockouts, stop, goOn, attempts, failures } = await withOutages(t, 300)
  t.same(await attempts(2), [true, true])
  stop()
  t.same(await attempts(4), [true, true, true, false], 'three here')
  await goOn()
  t.equal(await failures(), 3, 'the two of before, and the one whose answer was lost')
  t.same(await attempts(1), [false])
  await lockouts.lift([x.key])
  t.same(await attempts(1), [true])
})

t.test('a Redis that hangs costs one attempt its time-out, not each', async t => {
  const { stop, attempts, seen } = await withOutages(t, 300)
  stop()
  t.same(await attempts(50), [...Array(3).fill(true), ...Array(47).fill(false)])
  t.same([seen.asked, seen.away.length], [1, 1])
})

t.test('a refund that Redis refuses with NOPERM does not keep counts local', async t => {
  const { redis, lockouts, failures, seen, attempts } = await withOutages(t)
  const taken = await lockouts.take([x])
  await redis.call('ACL', 'SETUSER', 'default', 'resetkeys', '~{cg}:other')
  await lockouts.giveBack([x], taken)
  t.match(String(seen.away[0]), /NOPERM/)
  t.equal((await lockouts.take([x])).isLocal, true, 'while it is refused')
  await redis.call('ACL', 'SETUSER', 'default', 'allkeys')
  t.equal((await lockouts.take([x])).isLocal, undefined, 'the next one is shared again')
  t.equal(await failures(), 2)
  t.same(await attempts(2), [true, false])
})

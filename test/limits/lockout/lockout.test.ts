import fc from 'fast-check'
import t, { type Test } from 'tap'
import { lockoutsWithFallback } from '../../../src/limits/lockout/fallback-lockouts.ts'
import {
  countAttempt,
  type LockoutState,
  locksBefore,
  refundAttempt
} from '../../../src/limits/lockout/lockout.ts'
import { createMemoryLockouts } from '../../../src/limits/lockout/memory-lockouts.ts'
import { createRedisLockouts } from '../../../src/limits/lockout/redis-lockouts.ts'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { lockoutsContract, lockRule } from '../../suites/lockouts.ts'
import { redisConfig } from '../../support/config.ts'
import { until } from '../../support/until.ts'
import { testRedis } from '../../support/redis.ts'

const minute = 60_000
const start = 1_700_000_000_000

async function connected(cleanUp: (undo: () => unknown) => void, commandTimeoutMs = 30_000) {
  const server = await testRedis(cleanUp)
  let up = () => {}
  const isUp = new Promise<void>(resolve => {
    up = resolve
  })
  const redis = createRedisDialler(
    redisConfig({ url: server.url, connectTimeout: 30_000, commandTimeout: commandTimeoutMs }),
    '.'
  ).client({ onUp: () => up(), onDown: () => {} })
  cleanUp(() => redis.disconnect())
  await isUp
  return { server, redis }
}

t.test('in memory', async t => {
  let time = start
  lockoutsContract(
    t,
    createMemoryLockouts(() => time),
    ms => {
      time += ms
    }
  )
})

t.test('in Redis', async t => {
  const { redis } = await connected(t.after)
  let time = start
  lockoutsContract(
    t,
    createRedisLockouts(redis, 'cg:', () => time),
    ms => {
      time += ms
    }
  )
})

t.test(
  'by Redis’ own clock, shared by all who share the Redis, and every key has an end',
  async t => {
    const { redis } = await connected(t.after)
    const rule = lockRule({
      delayMs: 600 * minute,
      maxDelayMs: 600 * minute,
      withinMs: 600 * minute
    })
    const [a, b] = [createRedisLockouts(redis, 'cg:'), createRedisLockouts(redis, 'cg:')]
    t.same(
      [
        (await a.attempt('account:x', rule)).waitMs,
        (await b.attempt('account:x', rule)).waitMs,
        (await a.attempt('account:x', rule)).waitMs
      ],
      [0, 0, 0]
    )
    const { waitMs } = await b.attempt('account:x', rule)
    t.ok(waitMs > 0 && waitMs <= 600 * minute, `${waitMs}`)
    t.match(await b.list(), [{ key: 'account:x' }])
    t.ok((await redis.pttl('cg:lockout:account:x')) > 0)
    await redis.set('cg:lockout:account:x', 'no state of ours')
    t.equal((await a.attempt('account:x', rule)).waitMs, 0)
  }
)

t.test('Redis counts with the longest times that config allows', async t => {
  const { redis } = await connected(t.after)
  const longest = 400 * 24 * 60 * minute
  const lockouts = createRedisLockouts(redis, 'cg:')
  const rule = lockRule({
    withinMs: longest,
    delayMs: longest,
    maxDelayMs: longest,
    forgetMs: longest
  })
  for (let index = 0; index < 3; index++) {
    t.equal((await lockouts.attempt('account:x', rule)).waitMs, 0)
  }
  const { waitMs } = await lockouts.attempt('account:x', rule)
  t.ok(waitMs > longest - minute && waitMs <= longest, `${waitMs}`)
  t.ok((await redis.pttl('cg:lockout:account:x')) > longest)
})

t.test(
  'whatever is tried and whenever: guesses that are looked at are few, and whoever waits is let try',
  async () => {
    fc.assert(
      fc.property(
        fc.record({ after: fc.integer({ min: 1, max: 6 }), strict: fc.boolean() }),
        fc.array(fc.oneof(fc.nat(1000), fc.nat(2 * minute), fc.nat(20 * minute)), {
          maxLength: 200
        }),
        (given, pauses) => {
          const rule = lockRule(given)
          let state: LockoutState | undefined
          let now = start
          const looked: number[] = []
          for (const pause of pauses) {
            now += pause
            const { waitMs, next } = countAttempt(rule, state, now)
            if (waitMs > rule.maxDelayMs) return false
            if (waitMs > 0 && countAttempt(rule, state, now + waitMs).waitMs > 0) return false
            if (next !== undefined) {
              state = next
              looked.push(now)
            }
            // In any stretch of ten minutes: those before the first lock, and after each lock as many at most.
            if (
              looked.filter(at => at > now - rule.withinMs).length >
              (given.strict ? 2 * given.after + 4 : 5 * given.after)
            ) {
              return false
            }
          }
          return true
        }
      ),
      { numRuns: 2000 }
    )
  }
)

t.test(
  'right passwords never lock: whatever is given back leaves no more than the failures',
  async () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 100 }), rights => {
        const rule = lockRule({ after: 4 })
        let state: LockoutState | undefined
        let failures = 0
        for (const right of rights) {
          const { next, ...attempt } = countAttempt(rule, state, start)
          if (attempt.waitMs > 0 !== failures >= 4) return false
          if (next === undefined) continue
          state = right ? refundAttempt(rule, next, attempt, start) : next
          if (!right) failures++
        }
        return true
      }),
      { numRuns: 2000 }
    )
  }
)

t.test(
  'while Redis is away each process allows its part of the failures, and what Redis knew is known again after it',
  async t => {
    let time = start
    const shared = createMemoryLockouts(() => time)
    let away = false
    const told: boolean[] = []
    const failing = async () => {
      throw new Error('away')
    }
    const lockouts = lockoutsWithFallback({
      shared: {
        ...shared,
        attempt: (key, rule) => (away ? (failing() as never) : shared.attempt(key, rule)),
        refund: (key, rule, attempt) => (away ? failing() : shared.refund(key, rule, attempt))
      },
      local: createMemoryLockouts(() => time),
      replicas: () => 3,
      onAway: now => told.push(now),
      now: () => time
    })
    const rule = lockRule({ after: 6 })
    const waits = async (times: number, key = 'account:x', asked = rule) => {
      const found: number[] = []
      for (let index = 0; index < times; index++) {
        found.push((await lockouts.attempt(key, asked)).waitMs)
      }
      return found
    }
    t.same(await waits(5), [0, 0, 0, 0, 0])
    away = true
    t.same(await waits(3), [0, 0, minute], 'a third of six')
    const uneven = lockRule({ after: 4 })
    t.same(await waits(3, 'account:y', uneven), [0, 0, minute], 'a third of four, rounded up')
    away = false
    time += 2 * minute
    t.same(await waits(2), [0, minute], 'the five of before')
    t.same(told, [true, false])
  }
)

t.test(
  'a Redis that hangs costs one attempt its time-out, not each, and guesses still end',
  async t => {
    const { server, redis } = await connected(t.after, 300)
    const shared = createRedisLockouts(redis, 'cg:')
    let asked = 0
    const lockouts = lockoutsWithFallback({
      shared: {
        ...shared,
        attempt: async (key, rule) => {
          asked++
          return await shared.attempt(key, rule)
        }
      },
      local: createMemoryLockouts(() => start),
      replicas: () => 1,
      onAway: () => {},
      now: () => 0
    })
    server.signal('SIGSTOP')
    const waits: number[] = []
    for (let index = 0; index < 50; index++) {
      waits.push((await lockouts.attempt('account:x', lockRule())).waitMs)
    }
    t.same(
      waits.map(waitMs => waitMs > 0),
      [...Array(3).fill(false), ...Array(47).fill(true)]
    )
    t.equal(asked, 1)
  }
)

t.test('a flood of made-up names does not push out who is locked', async t => {
  const lockouts = createMemoryLockouts(() => start)
  for (let index = 0; index < 3; index++) await lockouts.attempt('account:locked', lockRule())
  for (let index = 0; index < 100_001; index++) {
    await lockouts.attempt(`account:${index}`, lockRule())
  }
  t.ok((await lockouts.attempt('account:locked', lockRule())).waitMs > 0)
})

/** Lockouts over a real Redis that can be stopped, with a clock for the pause after a failure. */
function answersAgain(redis: { readonly ping: () => Promise<unknown> }): Promise<void> {
  const answers = () =>
    redis.ping().then(
      () => true,
      () => false
    )
  return until('Redis answers again', answers)
}

async function withOutages(t: Test, commandTimeoutMs?: number) {
  const { server, redis } = await connected(t.after, commandTimeoutMs)
  let time = 0
  const away: boolean[] = []
  const dropped: string[] = []
  const lockouts = lockoutsWithFallback({
    shared: createRedisLockouts(redis, 'cg:'),
    local: createMemoryLockouts(() => start),
    replicas: () => 1,
    onAway: now => away.push(now),
    onDropped: ({ message }) => dropped.push(message),
    now: () => time
  })
  t.after(() => lockouts.close())
  const failures = async () =>
    Number((await redis.get('cg:lockout:account:x'))?.split(' ', 1)[0] ?? 0)
  return {
    server,
    redis,
    lockouts,
    away,
    dropped,
    failures,
    passPause: () => {
      time += 1000
    }
  }
}

t.test(
  'a right password whose attempt Redis counted before an outage is no failure after it',
  async t => {
    const { server, redis, lockouts, away, failures, passPause } = await withOutages(t, 300)
    const attempts = [
      await lockouts.attempt('account:x', lockRule()),
      await lockouts.attempt('account:x', lockRule())
    ]
    t.equal(await failures(), 2)
    server.signal('SIGSTOP')
    for (const attempt of attempts) await lockouts.refund('account:x', lockRule(), attempt)
    t.same(away, [true])
    server.signal('SIGCONT')
    await answersAgain(redis)
    passPause()
    const waits: number[] = []
    for (let index = 0; index < 4; index++) {
      waits.push((await lockouts.attempt('account:x', lockRule())).waitMs)
    }
    t.same(
      waits.map(waitMs => waitMs > 0),
      [false, false, false, true],
      'three failures lock, and none was there before'
    )
  }
)

t.test('what is owed to Redis is told when it is back, though nobody signs in', async t => {
  const { server, redis, lockouts, failures, passPause } = await withOutages(t, 300)
  const attempt = await lockouts.attempt('account:x', lockRule())
  server.signal('SIGSTOP')
  await lockouts.refund('account:x', lockRule(), attempt)
  server.signal('SIGCONT')
  await answersAgain(redis)
  passPause()
  await until('the attempt is given back', async () => (await failures()) === 0)
})

t.test(
  'an attempt that was counted in this process is given back here, and takes nothing from Redis',
  async t => {
    const { server, redis, lockouts, failures, passPause } = await withOutages(t, 300)
    await lockouts.attempt('account:x', lockRule())
    server.signal('SIGSTOP')
    const attempt = await lockouts.attempt('account:x', lockRule())
    t.equal(attempt.isLocal, true)
    server.signal('SIGCONT')
    await answersAgain(redis)
    passPause()
    await lockouts.refund('account:x', lockRule(), attempt)
    await lockouts.look('account:x', lockRule())
    t.equal(await failures(), 1, 'that of before; the one whose answer was lost is no more')
    server.signal('SIGSTOP')
    const waits: number[] = []
    for (let index = 0; index < 4; index++) {
      waits.push((await lockouts.attempt('account:x', lockRule())).waitMs)
    }
    t.same(waits, [0, 0, 0, minute], 'nor is it here')
  }
)

t.test('right passwords all through an outage lock nobody', async t => {
  const { server, redis, lockouts, failures, passPause } = await withOutages(t, 300)
  for (let round = 0; round < 12; round++) {
    const signIn = await lockouts.attempt('account:x', lockRule())
    t.equal(signIn.waitMs, 0, `sign-in ${round}`)
    if (round % 3 === 0) server.signal('SIGSTOP')
    await lockouts.refund('account:x', lockRule(), signIn)
    passPause()
    if (round % 3 !== 1) continue
    server.signal('SIGCONT')
    await answersAgain(redis)
  }
  server.signal('SIGCONT')
  await answersAgain(redis)
  passPause()
  await lockouts.look('account:x', lockRule())
  t.equal(await failures(), 0)
})

t.test('a key in Redis that holds something else leaves other accounts to Redis', async t => {
  const { redis, lockouts, away, dropped, failures } = await withOutages(t)
  await redis.lpush('cg:lockout:account:odd', 'x')
  t.match(await lockouts.attempt('account:odd', lockRule()), { waitMs: 0, isLocal: true })
  t.match(await lockouts.attempt('account:x', lockRule()), { isLocal: undefined })
  t.equal(await failures(), 1)
  t.match(dropped, [/WRONGTYPE/])
  t.same(away, [])
})

t.test('a right password is no failure when Redis was read-only at that moment', async t => {
  const { redis, lockouts, dropped, failures, passPause } = await withOutages(t)
  const attempt = await lockouts.attempt('account:x', lockRule())
  t.equal(await failures(), 1)
  await redis.replicaof('127.0.0.1', 1)
  await lockouts.refund('account:x', lockRule(), attempt)
  await answersAgain(redis)
  await redis.replicaof('NO', 'ONE')
  passPause()
  await until('the attempt is given back', async () => (await failures()) === 0)
  t.same(dropped, [])
})

t.test('a wrong password whose answer came late is one failure, however often', async t => {
  const { redis } = await connected(t.after)
  let time = 0
  let isLate = false
  const shared = createRedisLockouts(redis, 'cg:')
  const lockouts = lockoutsWithFallback({
    shared: {
      ...shared,
      settle: async (...settled) => {
        const lockMs = await shared.settle(...settled)
        if (isLate) throw new Error('Command timed out')
        return lockMs
      }
    },
    local: createMemoryLockouts(() => start),
    replicas: () => 1,
    onAway: () => {},
    now: () => time
  })
  t.after(() => lockouts.close())
  const key = 'address:192.0.2.1'
  const rule = lockRule({ after: 4, strict: false })
  const failures = async () => (await redis.get(`cg:lockout:${key}`))?.split(' ', 1)[0]
  const fail = async () => {
    const { place = '' } = await lockouts.admit(key, rule)
    isLate = true
    await lockouts.settle(key, rule, place, true)
    for (let again = 0; again < 3; again++) {
      time += 1000
      await lockouts.look('address:192.0.2.2', rule)
    }
    isLate = false
    time += 1000
    await lockouts.look('address:192.0.2.2', rule)
  }
  for (const expected of ['1', '2', '3']) {
    await fail()
    t.equal(await failures(), expected)
  }
  await fail()
  t.match(await lockouts.list(), [{ key }], 'the lock of the last one is listed')
  t.ok((await redis.pttl(`cg:{cg:lockout:${key}}.settled`)) > 0)
})

t.test('the lock that is running does not count among those before it', t => {
  t.equal(locksBefore([0, 0, 2, 100], 99), 1)
  t.equal(locksBefore([0, 0, 2, 100], 100), 2, 'at its end it is one of them')
  t.end()
})

t.test('a give-back that comes when its failures are forgotten leaves those after it', async t => {
  const rule = lockRule()
  const late = { locks: 0, forgottenAt: start, unlockedAt: 0 }
  const locked = [2, start + 11 * minute, 1, start + minute] as const
  t.same(refundAttempt(rule, locked, late, start), [2, start + 10 * minute, 0, 0])
  const { redis } = await connected(t.after)
  let time = start
  const lockouts = createRedisLockouts(redis, 'cg:', () => time)
  const attempt = await lockouts.attempt('account:x', rule)
  time += 10 * minute
  for (let failure = 0; failure < 3; failure++) await lockouts.attempt('account:x', rule)
  await lockouts.refund('account:x', rule, attempt)
  t.equal(await redis.get('cg:lockout:account:x'), `2 ${time + 10 * minute} 0 0`)
})

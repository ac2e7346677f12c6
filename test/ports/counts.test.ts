/** Counts of limits: the rules of a bucket, in this process, in Redis, and told in between. */
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { eachMs, fullAfter, look, type Rate } from '../../src/limits/gcra.ts'
import { type CountStore, createRedisCounts } from '../../src/limits/redis-counts.ts'
import { SharedCounts } from '../../src/limits/shared-counts.ts'
import { stopClock } from '../support/clock.ts'
import { testRedis } from '../support/redis.ts'
import { seed } from '../support/seed.ts'

const minute = 60_000
const quarter = 60_000
const day = 86_400_000

async function inRedis(t: Test) {
  const redis = (await testRedis(t.after)).client()
  return { redis, store: createRedisCounts(redis, '{cg}:') }
}

/** Each of them is free again after whole quarters, so that what a test itself takes decides nothing. */
const anyRate = fc
  .record({ burst: fc.integer({ min: 1, max: 6 }), quarters: fc.constantFrom(4, 8, 20) })
  .map(({ burst, quarters }): Rate => ({ max: 6, windowMs: 6 * quarters * quarter, burst }))

const anyAct = fc.oneof(
  fc.record({ act: fc.constant('take' as const), rate: fc.nat(1), pause: fc.nat(9) }),
  fc.record({
    act: fc.constant('tell' as const),
    rate: fc.nat(1),
    pause: fc.nat(9),
    count: fc.nat(9)
  })
)

t.test('Redis decides as the pure rules do, whatever is asked, and whenever', async t => {
  const { redis, store } = await inRedis(t)
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.tuple(anyRate, anyRate), fc.array(anyAct), async (rates, acts) => {
      const caller = `u:${run++}`
      const key = `{cg}:l:${caller}`
      let full = 0
      let of = rates[0]
      let now = 1_700_000_000_000
      for (const asked of acts) {
        const rate = rates[asked.rate] as Rate
        now += asked.pause * quarter
        const [stored, each] = ((await redis.hget(key, 'limit')) ?? '').split(' ').map(Number)
        if (stored !== undefined && each !== undefined) {
          await redis.hset(key, 'limit', `${stored - asked.pause * quarter} ${each}`)
        }
        const used = Math.max(0, full - now) / eachMs(of)
        const capped = fullAfter(rate, now, used, now)
        const { exceeded } = look(rate, capped, now)
        const count = asked.act === 'tell' ? asked.count : Number(!exceeded)
        const after = fullAfter(rate, capped, count, now)
        const limitKey = `${caller} limit`
        const found =
          asked.act === 'take'
            ? await store.take(limitKey, rate)
            : await store.tell(limitKey, rate, count)
        const [isRefused, fullIn] = [(found as number) < 0, Math.abs(found as number)]
        if (asked.act === 'take' && isRefused !== exceeded) throw new Error('decided otherwise')
        if (Math.abs(fullIn - (after - now)) > quarter / 2) throw new Error('counted otherwise')
        if (count > 0) [full, of] = [after, rate]
      }
    }),
    { numRuns: 200, seed }
  )
  const keys = await redis.keys('{cg}:l:*')
  t.ok(keys.length > 50)
  for (const key of keys.slice(0, 20)) t.ok((await redis.pttl(key)) > 0, 'each has an end')
})

t.test('Redis counts the longest window that config allows, and ends it', async t => {
  const { redis, store } = await inRedis(t)
  for (const max of [2, 1_000_000_000]) {
    const rate = { max, windowMs: 400 * day, burst: max }
    const isRefused = async () => ((await store.take(`u:${max} x`, rate)) ?? 0) < 0
    t.same(await Array.fromAsync({ length: 3 }, isRefused), [false, false, max === 2])
    const ttl = await redis.pttl(`{cg}:l:u:${max}`)
    t.ok(ttl > 0 && ttl <= rate.windowMs + 1, `${ttl}`)
  }
})

t.test('no more pass than a bucket holds and refills; who waits as told is let pass', async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 6 }),
      fc.array(fc.oneof(fc.nat(2000), fc.nat(30_000)), { minLength: 10, maxLength: 80 }),
      (burst, pauses) => {
        const rate = { max: 6, windowMs: minute, burst }
        let [full, now] = [0, 1_700_000_000_000]
        const passed: number[] = []
        for (const pause of pauses) {
          now += pause
          const { exceeded, retryMs } = look(rate, full, now)
          if (exceeded) {
            if (look(rate, full, now + retryMs).exceeded) return false
            continue
          }
          full = fullAfter(rate, full, 1, now)
          passed.push(now)
          const isTooMany = passed.some((since, index) => {
            const allowed = burst + (now - since) / eachMs(rate) + 0.01
            return passed.length - index > allowed
          })
          if (isTooMany) return false
        }
        return true
      }
    ),
    { numRuns: 3000, seed }
  )
})

/** Counts of replicas in one memory, which can be away; notes what it is told. */
function sharedMemory(now: () => number) {
  const full = new Map<string, number>()
  const seen = { tells: 0, away: false, full }
  const store: CountStore = {
    tell: async (key, rate, count) => {
      seen.tells++
      if (seen.away) throw new Error('away')
      full.set(key, fullAfter(rate, full.get(key) ?? 0, count, now()))
      return (full.get(key) ?? 0) - now()
    },
    take: async (key, rate) => {
      if (seen.away) throw new Error('away')
      const before = fullAfter(rate, full.get(key) ?? 0, 0, now())
      if (look(rate, before, now()).exceeded) return now() - before
      full.set(key, fullAfter(rate, before, 1, now()))
      return (full.get(key) ?? 0) - now()
    },
    ofCaller: async () => [],
    forget: async () => {}
  }
  return { seen, store }
}

const many = { max: 1000, windowMs: minute, burst: 1000 }
const few = { max: 5, windowMs: minute, burst: 5 }

t.test('one process is exact, and tells of few of its requests', async t => {
  stopClock(t.after)
  const { seen, store } = sharedMemory(Date.now)
  const counts = new SharedCounts(store)
  let passed = 0
  for (let index = 0; index < 1500; index++) {
    if (!(await counts.hit('u:1 many', many)).exceeded) passed++
  }
  await counts.close()
  t.equal(passed, 1000)
  t.ok(seen.tells < 100, `${seen.tells} tells`)
  t.equal(seen.full.get('u:1 many'), Date.now() + minute, 'and Redis knows of all of them')
})

t.test('while Redis is away it goes on here, and tells all of it once when it is back', async t => {
  const { seen, store } = sharedMemory(Date.now)
  const counts = new SharedCounts(store)
  const hit = async (times: number, rate = few) => {
    let passed = 0
    for (let index = 0; index < times; index++) {
      if (!(await counts.hit(`u:1 ${rate.max}`, rate)).exceeded) passed++
    }
    return passed
  }
  t.equal(await hit(1), 1)
  seen.away = true
  t.equal(await hit(6), 4, 'what it knew before counts')
  t.equal(await hit(300, many), 300)
  await counts.flush()
  t.equal(counts.isAway, true)
  const wasTold = seen.tells
  t.equal(await hit(300, many), 300)
  t.equal(seen.tells, wasTold, 'nobody asks at each request')
  seen.away = false
  await counts.flush()
  t.equal(counts.isAway, false)
  const usedOf = (rate: Rate) =>
    Math.round(((seen.full.get(`u:1 ${rate.max}`) ?? 0) - Date.now()) / eachMs(rate))
  t.equal(usedOf(few), 5)
  t.ok(Math.abs(usedOf(many) - 600) <= 20, `${usedOf(many)}`)
  await counts.close()
})

t.test('a limit that a reload changes keeps what was used', async t => {
  stopClock(t.after)
  const { store } = await inRedis(t)
  for (const counts of [new SharedCounts(undefined), new SharedCounts(store)]) {
    t.after(() => counts.close())
    for (let index = 0; index < 5; index++) await counts.hit('u:1 x', few)
    for (const windowMs of [10 * minute, 10_000]) {
      t.match(await counts.hit('u:1 x', { ...few, windowMs }), { exceeded: true })
      const more = { max: 7, windowMs, burst: 7 }
      t.match(counts.look('u:1 x', more), { exceeded: false, remaining: 2 })
    }
    for (let index = 0; index < 900; index++) await counts.hit('u:2 x', many)
    const { exceeded, retryMs } = await counts.hit('u:2 x', {
      max: 10,
      windowMs: 1000,
      burst: 10
    })
    t.ok(exceeded && retryMs <= 2000, `${retryMs}`)
  }
})

import fc from 'fast-check'
import t from 'tap'
import { tallyWithFallback } from '../../../src/limits/counting/fallback-tally.ts'
import { createLeases } from '../../../src/limits/counting/leases.ts'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import { createRedisTally } from '../../../src/limits/counting/redis-tally.ts'
import type { ForeignKeyError } from '../../../src/limits/counting/with-fallback.ts'
import {
  decide,
  look,
  type Rule,
  type State,
  type Tally,
  type Verdict
} from '../../../src/limits/counting/rules.ts'
import { createRedisDialler } from '../../../src/services/redis.ts'
import { anyTakes, rule, tallyContract } from '../../suites/tally.ts'
import { redisConfig } from '../../support/config.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { seed } from '../../support/seed.ts'

const minute = 60_000

async function redisTally(cleanUp: (undo: () => unknown) => void) {
  const server = await testRedis(cleanUp)
  let up = () => {}
  const isUp = new Promise<void>(resolve => {
    up = resolve
  })
  const redis = createRedisDialler(
    redisConfig({ url: server.url, connectTimeout: 30_000, commandTimeout: 30_000 }),
    '.'
  ).client({ onUp: () => up(), onDown: () => {} })
  cleanUp(() => redis.disconnect())
  await isUp
  return {
    server,
    redis,
    tally: createRedisTally(redis, 'cg:'),
    at: (now: () => number) => createRedisTally(redis, 'cg:', now)
  }
}

t.test('in memory', async t => {
  tallyContract(t, createMemoryTally())
})
t.test('in Redis', async t => {
  tallyContract(t, (await redisTally(t.after)).tally)
})

t.test('Redis decides as the pure rules do, whatever is asked, and whenever', async t => {
  const { redis, at } = await redisTally(t.after)
  let time = 1_700_000_000_000
  const tally = at(() => time)
  let run = 0
  await fc.assert(
    fc.asyncProperty(anyTakes, async takes => {
      run++
      const states = new Map<string, State>()
      for (const { entries, wants, pause } of takes) {
        time += pause
        const given = entries.map(({ key, unreported, ...rest }) => ({
          rule: rule(rest),
          key: `{${run}}${key}.${rest.kind}`,
          unreported
        }))
        const [expected, found] = [
          decide(
            given,
            wants,
            {
              get: key => states.get(key),
              set: (key, state) => {
                states.set(key, state)
              }
            },
            time
          ),
          await (wants ? tally.consume(given) : tally.report(given))
        ]
        const facts = (verdicts: typeof found) =>
          JSON.stringify(
            verdicts.map(({ exceeded, remaining, resetMs, retryMs }) => [
              exceeded,
              remaining,
              Math.floor(resetMs),
              Math.floor(retryMs)
            ])
          )
        if (facts(expected) !== facts(found)) {
          throw new Error(`${facts(expected)} and ${facts(found)}`)
        }
      }
    }),
    { numRuns: 300, seed }
  )
  t.ok((await redis.keys('cg:limit:*')).length > 100)
  for (const key of (await redis.keys('cg:limit:*')).slice(0, 20)) {
    t.ok((await redis.pttl(key)) > 0, 'each has an end')
  }
})

t.test('Redis counts the longest window that config allows, of each kind, and ends it', async t => {
  const { redis, tally } = await redisTally(t.after)
  const windowMs = 400 * 86_400_000
  for (const kind of ['fixed', 'sliding', 'bucket'] as const) {
    for (const max of [2, 1_000_000_000]) {
      const entry = {
        rule: rule({ kind, max, burst: max, windowMs }),
        key: `{x}${kind}${max}`,
        unreported: 0
      }
      for (let index = 0; index < 2; index++) {
        t.match(
          await tally.consume([entry]),
          [{ exceeded: false, remaining: max - index - 1 }],
          kind
        )
      }
      t.match(await tally.report([entry]), [{ exceeded: max === 2 }])
      const ttl = await redis.pttl(`cg:limit:${entry.key}`)
      t.ok(ttl > windowMs && ttl <= 2 * windowMs + 1, `${kind}: ${ttl}`)
    }
  }
})

t.test(
  'in no stretch of time as long as a sliding window do more pass, and all of it is free again a sixteenth later',
  async () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.oneof(fc.nat(2000), fc.nat(30_000)), { minLength: 10, maxLength: 80 }),
        (max, pauses) => {
          const limit = rule({ kind: 'sliding', max, windowMs: minute })
          let state: State | undefined
          let now = 1_700_000_000_000
          const passed: number[] = []
          for (const pause of pauses) {
            now += pause
            const { exceeded, plus } = look(limit, state, now)
            const inSight = (ms: number) => passed.filter(at => at > now - ms).length
            if (exceeded && inSight((minute * 17) / 16) < max) return false
            if (exceeded) continue
            state = plus(1)
            passed.push(now)
            if (inSight(minute) > max) return false
          }
          return true
        }
      ),
      { numRuns: 2000 }
    )
  }
)

t.test('a window that a reload makes longer or shorter keeps what was counted', async t => {
  for (const kind of ['fixed', 'sliding', 'bucket'] as const) {
    const [before, longer, shorter] = [minute, 10 * minute, 10_000].map(windowMs =>
      rule({ kind, max: 5, windowMs })
    ) as [ReturnType<typeof rule>, ReturnType<typeof rule>, ReturnType<typeof rule>]
    const now = 1_700_000_000_000
    const state = look(before, undefined, now).plus(3)
    for (const after of [longer, shorter]) {
      t.equal(look(after, state, now + 1000).remaining, 2, kind)
    }
    const { exceeded, retryMs } = look(shorter, look(before, undefined, now).plus(5), now + 1000)
    t.ok(exceeded && retryMs <= 11_000, `${kind} ${retryMs}`)
  }
})

t.test(
  'a fixed window begins with the first and ends for all; a sliding one never lets more pass in any window',
  async t => {
    let state: State | undefined
    const pass = (kind: 'fixed' | 'sliding' | 'bucket', at: number) => {
      const { exceeded, plus } = look(
        rule({ kind, max: 10, burst: 3, windowMs: minute }),
        state,
        at
      )
      if (!exceeded) state = plus(1)
      return !exceeded
    }
    const passed = (kind: 'fixed' | 'sliding' | 'bucket', from: number, count: number) =>
      Array.from({ length: count }, (_, index) => pass(kind, from + index)).filter(Boolean).length
    t.equal(passed('fixed', 50_000, 12), 10)
    t.equal(passed('fixed', 109_999, 1), 0)
    t.equal(passed('fixed', 110_000, 12), 10)
    state = undefined
    t.equal(passed('sliding', 59_000, 12), 10)
    t.equal(passed('sliding', 60_000, 12), 0, 'not ten more right behind the edge of a window')
    t.equal(passed('sliding', 118_999, 12), 0)
    t.equal(passed('sliding', 123_000, 12), 10)
    state = undefined
    t.equal(passed('bucket', 0, 12), 3)
    t.equal(passed('bucket', 6_100, 12), 1, 'one each six seconds')
    t.equal(passed('bucket', minute * 10, 12), 3)
  }
)

t.test('whoever waits as long as a refusal says is let pass', async () => {
  fc.assert(
    fc.property(
      fc.constantFrom('fixed' as const, 'sliding' as const, 'bucket' as const),
      fc.integer({ min: 1, max: 8 }),
      fc.array(fc.nat(20_000), { maxLength: 60 }),
      (kind, max, pauses) => {
        const limit = rule({ kind, max, burst: Math.ceil(max / 2), windowMs: minute })
        let state: State | undefined
        let now = 1_000_000
        for (const pause of pauses) {
          now += pause
          const { exceeded, retryMs, plus } = look(limit, state, now)
          if (exceeded && look(limit, state, now + retryMs).exceeded) return false
          if (!exceeded) state = plus(1)
        }
        return true
      }
    ),
    { numRuns: 2000, seed }
  )
})

/** A tally that tells how often it was asked, and can be away. */
function watched(tally: Tally) {
  const seen = { times: 0, away: false }
  const watch =
    (ask: Tally['consume']): Tally['consume'] =>
    async entries => {
      seen.times++
      if (seen.away) throw new Error('away')
      return ask(entries)
    }
  return { seen, consume: watch(tally.consume), report: watch(tally.report) }
}

t.test('one process is exact, and asks for few of its requests', async t => {
  let time = 1_000_000
  const tally = watched(createMemoryTally(() => time))
  const leases = createLeases({ tally, now: () => time })
  t.teardown(() => leases.close())
  const limit = rule({ max: 1000, windowMs: minute })
  let passed = 0
  for (let index = 0; index < 1500; index++) {
    const [verdict] = leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k']))
    if (verdict?.exceeded === false) passed++
    else if (tally.seen.times > 500) break
  }
  t.equal(passed, 1000)
  t.ok(tally.seen.times < 500, `${tally.seen.times} asked`)
  const before = tally.seen.times
  for (let index = 0; index < 100; index++) {
    t.equal(leases.tryLocally([limit], ['k'])?.[0]?.exceeded, true)
  }
  t.equal(tally.seen.times, before, 'who is over is refused without asking')
  time += minute + 1
  t.equal(leases.tryLocally([limit], ['k']), undefined, 'and asks again when it is time')
})

t.test(
  'one process is exact also while many ask at once: what is left is only known when all are answered',
  async t => {
    const tally = createMemoryTally()
    const late: Array<() => void> = []
    const leases = createLeases({
      tally: {
        ...tally,
        consume: async entries => {
          const verdicts = await tally.consume(entries)
          await new Promise<void>(resolve => {
            late.push(resolve)
          })
          return verdicts
        }
      }
    })
    const limit = rule({ max: 500 })
    const take = async () =>
      (leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k'])))[0]?.exceeded ===
      false
    const running = Array.from({ length: 500 }, take)
    await until('500 turns were counted', () => late.length >= 500)
    late.shift()?.()
    t.equal(await running[0], true)
    running.push(...Array.from({ length: 10 }, take))
    for (let turn = 0; turn < 20; turn++) await new Promise(resolve => setImmediate(resolve))
    late.forEach(answer => answer())
    t.equal((await Promise.all(running)).filter(Boolean).length, 500)
    await leases.close()
  }
)

t.test(
  'who is surely alone takes tenths, is exact too, and takes hundredths again as soon as somebody comes',
  async t => {
    let alone = true
    const tally = watched(createMemoryTally(() => 1_000_000))
    const leases = createLeases({ tally, isAlone: () => alone, now: () => 1_000_000 })
    t.teardown(() => leases.close())
    const limit = rule({ max: 1000, windowMs: minute })
    const passes = async (count: number) => {
      let passed = 0
      for (let index = 0; index < count; index++) {
        if (
          (leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k'])))[0]
            ?.exceeded === false
        ) {
          passed++
        }
      }
      return passed
    }
    t.equal(await passes(100), 100)
    t.equal(tally.seen.times, 1, 'one question for the first, and 99 more')
    alone = false
    t.equal(await passes(900), 900)
    t.ok(tally.seen.times > 100, `${tally.seen.times} questions`)
    t.equal(await passes(100), 0)
  }
)

t.test(
  'what was said of a limit does not hold for the one in its place after a reload',
  async t => {
    const leases = createLeases({ tally: createMemoryTally() })
    t.teardown(() => leases.close())
    const [before, after] = [rule({ max: 1 }), rule({ max: 2 })]
    await leases.acquire([before], ['k'])
    t.match(await leases.acquire([before], ['k']), [{ exceeded: true, isNews: true }])
    t.match(leases.tryLocally([before], ['k']), [{ exceeded: true }])
    t.equal(leases.tryLocally([after], ['k']), undefined)
    t.match(await leases.acquire([after], ['k']), [{ exceeded: false, remaining: 0 }])
  }
)

t.test('a step of the wall clock prolongs no refusal and no lease', async t => {
  const { now } = Date
  let shift = 0
  Date.now = () => now() + shift
  t.teardown(() => {
    Date.now = now
  })
  const tally = createMemoryTally(() => performance.now())
  const leases = createLeases({ tally })
  t.teardown(() => leases.close())
  const [few, many] = [rule({ max: 1, windowMs: 50 }), rule({ max: 10_000, windowMs: 50 })]
  // A pause may be longer than the window.
  await until('a second one is refused', async () => {
    await leases.acquire([few], ['few'])
    return (await leases.acquire([few], ['few']))[0]?.exceeded === true
  })
  await leases.acquire([many], ['many'])
  shift = -3_600_000
  const asks = (each: Rule, key: string) => leases.tryLocally([each], [key]) === undefined
  const passes = async () => (await leases.acquire([few], ['few']))[0]?.exceeded === false
  // The tally's clock may be a part of a millisecond behind.
  const isOver = async () => asks(few, 'few') && (await passes())
  await until('the tally lets the refused caller pass again', isOver, 10_000)
  await until('the lease has ended', () => asks(many, 'many'), 10_000)
})

t.test(
  'who is over a limit in shadow is known without asking too, and refused by nobody',
  async t => {
    const tally = watched(createMemoryTally())
    const leases = createLeases({ tally })
    t.teardown(() => leases.close())
    const [shy, wide] = [
      rule({ name: 'shy', max: 1, enforced: false }),
      rule({ name: 'wide', max: 10_000 })
    ]
    const take = async () =>
      leases.tryLocally([wide, shy], ['w', 's']) ?? (await leases.acquire([wide, shy], ['w', 's']))
    t.match(await take(), [{ exceeded: false }, { exceeded: false }])
    t.match(await take(), [{ exceeded: false }, { exceeded: true, isNews: true }])
    const { times } = tally.seen
    for (let index = 0; index < 50; index++) {
      t.match(await take(), [{ exceeded: false }, { exceeded: true }])
    }
    t.equal(tally.seen.times, times)
  }
)

t.test('three processes together stay within a hundredth, and none is forgotten', async t => {
  let time = 1_000_000
  const tally = createMemoryTally(() => time)
  const all = Array.from({ length: 3 }, () => createLeases({ tally, now: () => time }))
  t.teardown(async () => {
    for (const leases of all) await leases.close()
  })
  for (const max of [100, 600, 5000]) {
    const limit = rule({ max, windowMs: minute, replicas: 3 })
    let passed = 0
    for (let index = 0; index < max * 2; index++) {
      const leases = all[index % 3] as (typeof all)[number]
      const [verdict] =
        leases.tryLocally([limit], [`k${max}`]) ?? (await leases.acquire([limit], [`k${max}`]))
      if (verdict?.exceeded === false) passed++
    }
    t.ok(passed >= max * 0.99 && passed <= max * 1.01, `${passed} of ${max}`)
  }
})

t.test(
  'three processes together stay within a hundredth, also where two keep what they may until the third has used up the rest',
  async t => {
    for (const max of [1000, 5000, 100_000]) {
      const time = 1_000_000
      const tally = createMemoryTally(() => time)
      const all = Array.from({ length: 3 }, () =>
        createLeases({ tally, replicas: () => 3, now: () => time })
      )
      t.teardown(async () => {
        for (const leases of all) await leases.close()
      })
      // Both ways in which a process knows how many there are.
      const limit = rule({ max, windowMs: minute, replicas: max === 1000 ? 3 : undefined })
      const passes = async (leases: (typeof all)[number] | undefined) => {
        const [verdict] =
          leases?.tryLocally([limit], ['k']) ?? (await leases?.acquire([limit], ['k'])) ?? []
        return verdict?.exceeded === false
      }
      let passed = 0
      // Each gets what it may let pass by itself, while most is left.
      for (const leases of all) if (await passes(leases)) passed++
      const [third, ...others] = all
      while (await passes(third)) passed++
      for (const leases of others) while (await passes(leases)) passed++
      t.ok(passed >= max && passed <= max * 1.01, `${passed} of ${max}`)
    }
  }
)

t.test('what was let pass without asking is told when the lease is over', async t => {
  let time = 1_000_000
  const tally = createMemoryTally(() => time)
  const leases = createLeases({ tally, now: () => time })
  const limit = rule({ max: 1000, windowMs: minute })
  await leases.acquire([limit], ['k'])
  for (let index = 0; index < 5; index++) leases.tryLocally([limit], ['k'])
  await leases.close()
  const [verdict] = await tally.consume([{ rule: limit, key: 'k', unreported: 0 }])
  t.equal(verdict?.remaining, 993)
})

t.test('what was let pass in a fixed window is not counted in the next one', async t => {
  let time = 1_000_000
  const leases = createLeases({
    tally: createMemoryTally(() => time),
    isAlone: () => true,
    now: () => time
  })
  t.teardown(() => leases.close())
  const limit = rule({ max: 600, windowMs: minute })
  const take = async () =>
    (leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k'])))[0]?.remaining
  await take()
  time += minute - 900
  for (let index = 0; index < 300; index++) {
    await take()
    if (index % 3 === 0) time += 8
  }
  t.equal(await take(), 298)
  time = 1_000_000 + minute + 3
  t.equal(await take(), 599)
})

t.test('a request behind the end of a fixed window passes by no lease of it', async t => {
  let time = 1_000_000
  const memory = createMemoryTally(() => time)
  const tally: Tally = {
    ...memory,
    // The answer takes its time.
    consume: async entries => {
      const verdicts = await memory.consume(entries)
      time += 50
      return verdicts
    }
  }
  const leases = createLeases({ tally, isAlone: () => true, now: () => time })
  t.teardown(() => leases.close())
  const limit = rule({ max: 600, windowMs: 1000 })
  await leases.acquire([limit], ['k'])
  time = 1_000_990
  t.match(leases.tryLocally([limit], ['k']), [{ exceeded: false }])
  time = 1_001_000
  t.equal(leases.tryLocally([limit], ['k']), undefined)
  t.match(await leases.acquire([limit], ['k']), [{ remaining: 598 }], 'it may have been counted')
})

t.test('what was let pass in a fixed window that runs is reported at the end', async t => {
  let time = 1_000_000
  const tally = createMemoryTally(() => time)
  const leases = createLeases({ tally, isAlone: () => true, now: () => time })
  const limit = rule({ max: 600, windowMs: minute })
  await leases.acquire([limit], ['k'])
  for (let index = 0; index < 5; index++) leases.tryLocally([limit], ['k'])
  time += 2000
  await leases.close()
  t.match(await tally.report([{ rule: limit, key: 'k', unreported: 0 }]), [{ remaining: 594 }])
})

t.test('of many keys, what was let pass is told of each', async t => {
  const tally = createMemoryTally(() => 1_000_000)
  const leases = createLeases({ tally, now: () => 1_000_000 })
  const limit = rule({ max: 1000, windowMs: minute })
  const keys = Array.from({ length: 450 }, (_, index) => `k${index}`)
  for (const key of keys) {
    await leases.acquire([limit], [key])
    t.ok(leases.tryLocally([limit], [key]))
  }
  await leases.close()
  const verdicts = await tally.report(keys.map(key => ({ rule: limit, key, unreported: 0 })))
  t.same(new Set(verdicts.map(({ remaining }) => remaining)), new Set([998]))
})

t.test('a process knows of no more keys than it has room for, and asks about others', async t => {
  const tally = createMemoryTally(() => 1_000_000)
  const leases = createLeases({ tally, now: () => 1_000_000 })
  t.teardown(() => leases.close())
  const limit = rule({ max: 1000, windowMs: minute })
  const keys = Array.from({ length: 100_001 }, (_, index) => `k${index}`)
  await leases.acquire(
    keys.map(() => limit),
    keys
  )
  t.ok(leases.tryLocally([limit], ['k99999']))
  t.equal(leases.tryLocally([limit], ['k100000']), undefined)
})

t.test('a caller whose counts are reset is not refused by what is remembered', async t => {
  const tally = createMemoryTally(() => 1_000_000)
  const leases = createLeases({ tally, now: () => 1_000_000 })
  t.teardown(() => leases.close())
  const limit = rule({ max: 1, windowMs: minute })
  const key = '{u:mia}l'
  for (let times = 0; times < 2; times++) await leases.acquire([limit], [key])
  t.match(leases.tryLocally([limit], [key]), [{ exceeded: true }])
  leases.forget('{u:mia}')
  t.equal(leases.tryLocally([limit], [key]), undefined)
})

t.test(
  'what was let pass without asking is told within two seconds, also by a process that is asked nothing more',
  async t => {
    let time = 1_000_000
    const tally = createMemoryTally(() => time)
    const leases = createLeases({ tally, now: () => time })
    t.teardown(() => leases.close())
    const limit = rule({ max: 1000, windowMs: minute })
    await leases.acquire([limit], ['k'])
    for (let index = 0; index < 5; index++) t.ok(leases.tryLocally([limit], ['k']))
    const remaining = async () =>
      (await tally.report([{ rule: limit, key: 'k', unreported: 0 }]))[0]?.remaining
    t.equal(await remaining(), 999)
    time += 1000
    await until('the lease is reported', async () => (await remaining()) === 994)
  }
)

t.test(
  'what was let pass is told by the next question, also after one that the counters did not answer',
  async t => {
    const time = 1_000_000
    const tally = watched(createMemoryTally(() => time))
    const leases = createLeases({ tally, now: () => time })
    t.teardown(() => leases.close())
    const limit = rule({ max: 1000, windowMs: minute })
    await leases.acquire([limit], ['k'])
    for (let index = 0; index < 9; index++) t.ok(leases.tryLocally([limit], ['k']))
    tally.seen.away = true
    t.equal(leases.tryLocally([limit], ['k']), undefined, 'its part is used up')
    await t.rejects(leases.acquire([limit], ['k']))
    tally.seen.away = false
    const [verdict] = await leases.acquire([limit], ['k'])
    t.equal(verdict?.remaining, 1000 - 1 - 9 - 1)
  }
)

t.test(
  'while the shared counters are away each process lets pass its part, and nothing is lost that is owed',
  async t => {
    let time = 0
    const shared = watched(createMemoryTally())
    const told: boolean[] = []
    const tally = tallyWithFallback({
      shared,
      local: createMemoryTally(),
      onAway: away => told.push(away),
      now: () => time
    })
    const takes = async (key: string, count: number, unreported = 0) => {
      const limit = rule({ max: 9, replicas: 3 })
      let passed = 0
      for (let index = 0; index < count; index++) {
        const [verdict] = await tally.consume([
          { rule: limit, key, unreported: index === 0 ? unreported : 0 }
        ])
        if (verdict?.exceeded === false) passed++
      }
      return passed
    }
    t.equal(await takes('k', 2), 2)
    t.equal(await takes('owing', 1, 4), 1, 'four that were let pass before, and this one')
    shared.seen.away = true
    t.equal(await takes('k', 9), 3, 'a third of nine')
    t.equal(await takes('owing', 9, 2), 1, 'what is owed counts here as well')
    t.equal(await takes('over', 9, 3), 0, 'also what leaves nothing')
    t.equal(shared.seen.times, 4, 'and they are left alone for a second')
    shared.seen.away = false
    time = 1001
    t.equal(await takes('k', 20), 7)
    t.equal(await takes('owing', 20, 1), 3, 'five before the outage, and one that is owed still')
    t.same(told, [true, false])
  }
)

t.test(
  'a Redis that is killed and comes back never lets more pass than it and each process would',
  async t => {
    const { server, tally } = await redisTally(t.after)
    const both = tallyWithFallback({ shared: tally, local: createMemoryTally(), onAway: () => {} })
    const leases = createLeases({ tally: both })
    t.teardown(() => leases.close())
    const limit = rule({ max: 50, windowMs: 100 * minute })
    const takes = async (count: number) => {
      let passed = 0
      for (let index = 0; index < count; index++) {
        if (
          (leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k'])))[0]
            ?.exceeded === false
        ) {
          passed++
        }
      }
      return passed
    }
    t.equal(await takes(20), 20)
    await server.kill()
    const passed = 20 + (await takes(100))
    t.ok(passed <= 100, `${passed}: what Redis had let pass, and the local limit`)
    t.ok(passed >= 50)
  }
)

t.test('a refusal without Redis ends with the outage, and is news once', async t => {
  let time = 1_000_000
  const now = () => time
  const shared = watched(createMemoryTally(now))
  const local = createMemoryTally(now)
  const replicas = () => 4
  const tally = tallyWithFallback({ shared, local, replicas, onAway: () => {}, now })
  const leases = createLeases({ tally, replicas, now })
  t.after(() => leases.close())
  const limit = rule({ max: 8, replicas: undefined })
  const take = async () => {
    const [verdict] = leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k']))
    return verdict
  }
  t.match(await take(), { exceeded: false, remaining: 7 })
  shared.seen.away = true
  t.match(await take(), { exceeded: false })
  t.match(await take(), { exceeded: false })
  t.match(await take(), { exceeded: true, isNews: true, retryMs: 1000 })
  t.match(await take(), { exceeded: true, isNews: undefined }, 'without asking')
  time += 1000
  t.match(await take(), { exceeded: true, isNews: false, retryMs: 1000 }, 'still away')
  shared.seen.away = false
  time += 1000
  t.match(await take(), { exceeded: false, remaining: 6 })
})

t.test('a refusal without Redis is news once for as long as it would last', async t => {
  for (const kind of ['sliding', 'bucket'] as const) {
    let time = 1_000_000
    const now = () => time
    const shared: Tally = { consume: () => Promise.reject(new Error()), report: async () => [] }
    const tally = tallyWithFallback({
      shared,
      local: createMemoryTally(now),
      onAway: () => {},
      now
    })
    const leases = createLeases({ tally, now })
    t.after(() => leases.close())
    const limit = rule({ kind, max: 2, burst: 1, windowMs: minute })
    const take = async () =>
      (leases.tryLocally([limit], ['k']) ?? (await leases.acquire([limit], ['k'])))[0]
    while ((await take())?.exceeded === false);
    leases.forget('k')
    t.match(await take(), { exceeded: true, isNews: true, retryMs: 1000 }, kind)
    for (let second = 0; second < 20; second++) {
      time += 1000
      t.match(await take(), { exceeded: true, isNews: false }, `${kind}, ${second}`)
    }
  }
})

t.test('a key in Redis that holds something else is counted here, and no other one', async t => {
  const { redis, tally: shared } = await redisTally(t.after)
  const refused: string[] = []
  const away: boolean[] = []
  const tally = tallyWithFallback({
    shared,
    local: createMemoryTally(),
    onAway: isAway => away.push(isAway),
    onForeignKey: ({ message }) => refused.push(message),
    now: () => 0
  })
  const take = async (key: string) => {
    const [verdict] = await tally.consume([{ rule: rule({ max: 9 }), key, unreported: 0 }])
    return verdict?.remaining
  }
  await redis.lpush('cg:limit:k', 'x')
  t.same([await take('k'), await take('k')], [8, 7])
  t.match(refused, [/WRONGTYPE/, /WRONGTYPE/])
  t.equal(await take('other'), 8)
  t.match(await redis.get('cg:limit:other'), '1 ')
  t.same(away, [])
})

t.test('beside a key that holds something else, all others are counted in Redis', async t => {
  const { redis, tally: shared } = await redisTally(t.after)
  const reported: Array<readonly string[]> = []
  const tally = tallyWithFallback({
    shared,
    local: createMemoryTally(),
    onAway: () => t.fail('Redis is not away'),
    onForeignKey: error => reported.push((error as ForeignKeyError).keys),
    now: () => 0
  })
  await redis.lpush('cg:limit:{u}foreign', 'x')
  const limit = rule({ max: 9 })
  const entries = ['{u}before', '{u}foreign', '{u}after'].map(key => {
    return { rule: limit, key, unreported: 2 }
  })
  const left = (verdicts: readonly Verdict[]) => verdicts.map(({ remaining }) => remaining)
  t.same(left(await tally.report(entries)), [7, 7, 7])
  t.same(left(await tally.consume(entries)), [4, 4, 4])
  for (const key of ['{u}before', '{u}after']) {
    t.match(await redis.get(`cg:limit:${key}`), /^5 /, key)
  }
  t.same(reported, [['cg:limit:{u}foreign'], ['cg:limit:{u}foreign']])
  t.match(await tally.consume(entries.map(entry => ({ ...entry, unreported: 9 }))), [
    { exceeded: true },
    { exceeded: true, retryMs: Number },
    { exceeded: true }
  ])
})

t.test('what was let pass is counted in Redis, also beside a key of another program', async t => {
  let time = 0
  const { redis, tally: shared } = await redisTally(t.after)
  const options = { local: createMemoryTally(), onAway: () => {} }
  const tally = tallyWithFallback({ shared, ...options })
  const leases = createLeases({ tally, isAlone: () => true, now: () => time })
  await redis.lpush('cg:limit:{a}', 'x')
  const limit = rule({ max: 300 })
  for (const key of ['{a}', '{b}']) {
    await leases.acquire([limit], [key])
    for (let index = 0; index < 5; index++) t.ok(leases.tryLocally([limit], [key]))
  }
  time += 2000
  await leases.close()
  t.match(await redis.get('cg:limit:{b}'), /^6 /)
})

/** In a minute, and at once. */
const bursts = [
  [900, 60],
  [900, 300],
  [7000, 1000],
  [7_000_000, 10_000]
] as const

t.test('of a burst all may come at once, however the times are rounded', async t => {
  for (const [max, windowMs, burst] of [
    [90, minute, 5],
    [11, 7001, 5],
    [7, minute, 5],
    [1000, minute, 5],
    ...bursts.map(([max, burst]) => [max, minute, burst] as const)
  ] as const) {
    let state: State | undefined
    const limit = rule({ kind: 'bucket', max, windowMs, burst })
    const passed = Array.from({ length: burst + 3 }, () => {
      const { exceeded, plus } = look(limit, state, 1_795_000_000_001)
      if (!exceeded) state = plus(1)
      return !exceeded
    }).filter(Boolean).length
    t.equal(passed, burst, `${max} in ${windowMs} ms, ${burst} at once`)
  }
})

t.test('of a burst all may come at once in Redis, too', async t => {
  const { at } = await redisTally(t.after)
  const tally = at(() => 1_795_000_000_001)
  for (const [max, burst] of bursts) {
    const entry = { rule: rule({ kind: 'bucket', max, burst, windowMs: minute }), unreported: 0 }
    const verdicts = await Promise.all(
      Array.from({ length: burst + 3 }, () =>
        tally.consume([{ ...entry, key: `{${max}}${burst}` }])
      )
    )
    const passed = verdicts.filter(([verdict]) => verdict?.exceeded === false).length
    t.equal(passed, burst, `${max} in a minute, ${burst} at once`)
  }
})

t.test('a bucket neither fills nor empties when the clock of Redis is set back', async t => {
  const { at } = await redisTally(t.after)
  let now = 1_795_000_000_000
  const tally = at(() => now)
  const limit = rule({ kind: 'bucket', max: 60, burst: 5, windowMs: minute })
  const entry = { rule: limit, key: '{k}', unreported: 0 }
  t.match(await tally.consume([entry]), [{ remaining: 4 }])
  t.match(look(limit, look(limit, undefined, now).plus(1), now - minute), { remaining: 4 })
  now -= minute
  t.match(await tally.consume([entry]), [{ remaining: 3 }])
})

import fc from 'fast-check'
import t from 'tap'
import { tallyWithFallback } from '../../../src/limits/counting/fallback-tally.ts'
import { createLeases } from '../../../src/limits/counting/leases.ts'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import { createRedisTally } from '../../../src/limits/counting/redis-tally.ts'
import {
  decide,
  look,
  type Rule,
  type State,
  type Tally
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
  for (const kind of ['fixed', 'sliding'] as const) {
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
  await leases.acquire([few], ['few'])
  t.match(await leases.acquire([few], ['few']), [{ exceeded: true }])
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

t.test('of a burst all may come at once, however the times are rounded', async t => {
  for (const [max, windowMs] of [
    [90, minute],
    [11, 7001],
    [7, minute],
    [1000, minute]
  ] as const) {
    let state: State | undefined
    const limit = rule({ kind: 'bucket', max, windowMs, burst: 5 })
    const passed = Array.from({ length: 8 }, () => {
      const { exceeded, plus } = look(limit, state, 1_795_000_000_001)
      if (!exceeded) state = plus(1)
      return !exceeded
    }).filter(Boolean).length
    t.equal(passed, 5, `${max} in ${windowMs} ms`)
  }
})

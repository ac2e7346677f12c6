/** Leases that several processes of a machine share, as plain calls in one process. */
import fc from 'fast-check'
import t from 'tap'
import { createLeases, type LocalLeases } from '../../../src/limits/counting/leases.ts'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import type { Rule, Tally, TallyEntry } from '../../../src/limits/counting/rules.ts'
import { noGrant, SharedLeases } from '../../../src/limits/counting/shared-leases.ts'
import { rule } from '../../suites/tally.ts'
import { seed } from '../../support/seed.ts'

const minute = 60_000

interface Machine {
  readonly shared: SharedLeases
  readonly borrowers: LocalLeases[]
  /** Whether the next request of a borrower passes. */
  readonly passes: (borrower: number, limit: Rule, key?: string) => Promise<boolean>
  /** Questions to the shared counters. */
  readonly questions: () => number
}

interface MachineOptions {
  readonly count: number
  readonly tally?: Tally
  readonly isAlone?: boolean
  readonly replicas?: number
  readonly now?: () => number
  /** Called before each message arrives. */
  readonly onMessage?: () => Promise<void>
  readonly recalls?: boolean
}

function machine(options: MachineOptions): Machine {
  const { count, isAlone = true, replicas = 1, now = () => 1_000_000, recalls = true } = options
  const { onMessage = async () => {} } = options
  const counters = options.tally ?? createMemoryTally(now)
  let questions = 0
  const shared = new SharedLeases({
    tally: {
      consume: async entries => {
        questions++
        return await counters.consume(entries)
      },
      report: entries => counters.report(entries)
    },
    isAlone: () => isAlone,
    replicas: () => replicas,
    now,
    borrowers: count,
    recall: (borrower, key) => {
      if (recalls) void borrowers[borrower]?.release([key])
    }
  })
  const borrowers = Array.from({ length: count }, (_, index) =>
    createLeases({
      now,
      tally: {
        consume: async entries => {
          await onMessage()
          const verdicts = await shared.take(index, entries)
          await onMessage()
          return verdicts.map(verdict => ({ grant: noGrant, ...verdict }))
        },
        report: async entries => {
          await onMessage()
          shared.settle(index, entries)
          return []
        }
      }
    })
  )
  t.teardown(async () => {
    for (const leases of [...borrowers, shared]) await leases.close()
  })
  const passes = async (borrower: number, limit: Rule, key = 'k') => {
    const leases = borrowers[borrower] as LocalLeases
    const [verdict] = leases.tryLocally([limit], [key]) ?? (await leases.acquire([limit], [key]))
    return verdict?.exceeded === false
  }
  return { shared, borrowers, passes, questions: () => questions }
}

for (const count of [1, 2, 4, 8]) {
  t.test(`${count} processes of a machine are exact, and ask as seldom as one`, async t => {
    const { passes, questions } = machine({ count })
    const limit = rule({ max: 1000, windowMs: minute })
    let passed = 0
    for (let index = 0; index < 600; index++) {
      if (await passes(index % count, limit)) passed++
    }
    t.equal(passed, 600)
    const single = createLeases({
      tally: createMemoryTally(() => 1_000_000),
      isAlone: () => true,
      now: () => 1_000_000
    })
    t.teardown(() => single.close())
    let asked = 0
    for (let index = 0; index < 600; index++) {
      if (single.tryLocally([limit], ['k']) !== undefined) continue
      asked++
      await single.acquire([limit], ['k'])
    }
    t.ok(
      questions() <= 2 * asked,
      `${questions()} questions; a single process asked ${asked} times`
    )
    for (let index = 0; index < 1000; index++) {
      if (await passes(index % count, limit)) passed++
    }
    t.equal(passed, 1000)
  })
}

t.test('what a machine let pass in a fixed window is not counted in the next one', async t => {
  let time = 1_000_000
  const tally = createMemoryTally(() => time)
  const { passes, shared } = machine({ count: 2, tally, now: () => time })
  const limit = rule({ max: 600, windowMs: minute })
  await passes(0, limit)
  time += minute - 900
  for (let index = 0; index < 300; index++) t.ok(await passes(index % 2, limit))
  const used = async () => 600 - ((await shared.inspect([limit], ['k']))[0]?.remaining ?? 0)
  t.ok((await used()) > 200, 'of the window that runs')
  time = 1_000_000 + minute + 3
  t.equal(await used(), 0)
  for (let index = 0; index < 10; index++) t.ok(await passes(index % 2, limit))
  await Promise.all([0, 1].map(borrower => passes(borrower, limit)))
  time += 1000
  t.ok(await passes(0, limit))
  t.ok(await passes(1, limit))
  t.equal(await used(), 14)
})

t.test('a part of a fixed window that has ended is given back whole', async t => {
  let time = 1_000_000
  const asked: Array<TallyEntry | undefined> = []
  const leases = createLeases({
    now: () => time,
    tally: {
      consume: async ([entry]) => {
        asked.push(entry)
        const grant = { requests: 20, ms: 400 }
        return [{ exceeded: false, remaining: 500, resetMs: 500, retryMs: 0, grant }]
      },
      report: async () => []
    }
  })
  t.teardown(() => leases.close())
  const limit = rule({ max: 600, windowMs: minute })
  const uses = async () => {
    await leases.acquire([limit], ['k'])
    for (let index = 0; index < 5; index++) t.ok(leases.tryLocally([limit], ['k']))
  }
  await uses()
  time += 400
  await uses()
  time += 503
  await uses()
  t.match(asked, [{ unreported: 0 }, { unreported: 5, unused: 15 }, { unreported: 0, unused: 20 }])
})

t.test('however messages are delayed, a machine lets pass exactly what is allowed', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 700 }),
      fc.infiniteStream(fc.nat(5)),
      fc.constantFrom('fixed' as const, 'sliding' as const, 'bucket' as const),
      async (count, max, delays, kind) => {
        const onMessage = async () => {
          for (let left = delays.next().value ?? 0; left > 0; left--) await Promise.resolve()
        }
        const { passes } = machine({ count, onMessage })
        const limit = rule({ kind, max, burst: max, windowMs: 100 * minute })
        let passed = 0
        const client = async (borrower: number) => {
          while (await passes(borrower, limit)) passed++
        }
        const clients = Array.from({ length: 3 * count }, (_, index) => client(index % count))
        await Promise.all(clients)
        if (passed !== max) throw new Error(`${passed} of ${max}`)
      }
    ),
    { numRuns: 100, seed }
  )
})

t.test('machines together stay within a hundredth, also where two keep what they may', async t => {
  for (const max of [1000, 5000, 100_000]) {
    const tally = createMemoryTally(() => 1_000_000)
    const machines = Array.from({ length: 3 }, () =>
      machine({ count: 2, tally, isAlone: false, replicas: 3 })
    )
    const limit = rule({ max, windowMs: minute, replicas: undefined })
    let passed = 0
    const usesUp = async ({ passes }: Machine, borrower: number) => {
      while (await passes(borrower, limit)) passed++
    }
    // Each process of each machine gets its part, while most is left.
    for (const { passes } of machines) {
      for (const borrower of [0, 1, 0, 1]) if (await passes(borrower, limit)) passed++
    }
    const [first, ...others] = machines as [Machine, ...Machine[]]
    await usesUp(first, 0)
    for (const other of [first, ...others]) {
      await usesUp(other, 1)
      await usesUp(other, 0)
    }
    t.ok(passed >= max && passed <= max * 1.01, `${passed} of ${max}`)
  }
})

t.test('of a process that ends, its part counts as used, and nothing else', async t => {
  const { shared, passes, borrowers } = machine({ count: 2 })
  const limit = rule({ max: 1000, windowMs: minute })
  for (let index = 0; index < 10; index++) t.equal(await passes(0, limit), true)
  t.equal(await passes(1, limit), true)
  shared.drop(0)
  borrowers[0]?.forget('k')
  let passed = 11
  while (await passes(1, limit)) passed++
  // A tenth of the limit is leased, and half of that is a part.
  t.ok(passed <= 1000 && passed >= 1000 - 50, `${passed}`)
})

t.test('a process that keeps its part while it is called back exceeds by that part', async t => {
  const { passes } = machine({ count: 2, recalls: false })
  const limit = rule({ max: 1000, windowMs: minute })
  for (let index = 0; index < 3; index++) await passes(0, limit)
  let passed = 3
  while (await passes(1, limit)) passed++
  while (await passes(0, limit)) passed++
  t.ok(passed > 1000 && passed <= 1050, `${passed}`)
})

t.test('what was lent and not used is given back when the lease is over', async t => {
  let time = 1_000_000
  const tally = createMemoryTally(() => time)
  const { passes, shared, borrowers } = machine({ count: 2, tally, now: () => time })
  const limit = rule({ max: 1000, windowMs: 100 * minute })
  for (let index = 0; index < 20; index++) await passes(index % 2, limit)
  time += 2000
  for (const leases of borrowers) await leases.release(['k'])
  const [verdict] = await shared.inspect([limit], ['k'])
  t.equal(verdict?.remaining, 980)
  let passed = 20
  while (await passes(0, limit)) passed++
  t.equal(passed, 1000)
})

t.test('a caller that comes seldom is lent nothing', async t => {
  let time = 1_000_000
  const { shared } = machine({ count: 2, now: () => time })
  const limit = rule({ max: 1000, windowMs: 100 * minute })
  const entry = { rule: limit, key: 'k', unreported: 0, unused: 0 }
  const first = await shared.take(0, [entry])
  t.equal(first[0]?.grant, undefined)
  const second = await shared.take(1, [entry])
  t.equal(second[0]?.grant?.requests, 50, 'half of a tenth, with the second request')
  time += 500
  t.equal((await shared.take(0, [entry]))[0]?.grant?.ms, 500, 'it ends with the lease')
})

t.test('parallel requests of a process share its part, and keep it until it ends', async t => {
  let messages = 0
  const onMessage = async () => void messages++
  const { shared, borrowers, passes, questions } = machine({ count: 2, onMessage })
  const limit = rule({ max: 1000, windowMs: minute })
  for (let index = 0; index < 2; index++) t.equal(await passes(0, limit), true)
  await borrowers[0]?.release(['k'])
  const asked = questions()
  const passed = await Promise.all(Array.from({ length: 8 }, () => passes(0, limit)))
  t.same(new Set(passed), new Set([true]))
  t.equal(questions(), asked, 'the lease of the machine sufficed')
  messages = 0
  for (let index = 0; index < 40; index++) t.equal(await passes(0, limit), true)
  t.equal(messages, 0, 'its part sufficed')
  const entry = { rule: limit, key: 'k', unreported: 0 }
  const [other] = await shared.take(1, [entry])
  t.ok((other?.grant?.requests ?? 0) > 0, 'the other process has a part too')
})

t.test('a limit in shadow does not keep the others from being lent', async t => {
  const { shared } = machine({ count: 2 })
  const [wide, shy] = [
    rule({ name: 'wide', max: 1000 }),
    rule({ name: 'shy', max: 1, enforced: false })
  ]
  const entries = [
    { rule: wide, key: 'w', unreported: 0 },
    { rule: shy, key: 's', unreported: 0 }
  ]
  await shared.take(0, entries)
  const second = await shared.take(0, entries)
  t.match(second, [{ exceeded: false }, { exceeded: true }])
  const lent = second[0]?.grant?.requests ?? 0
  t.ok(lent > 0)
  // The process used its part, so that it gets another.
  const [used, shadow] = [{ rule: wide, key: 'w', unreported: lent }, entries[1] as TallyEntry]
  const [ofWide, ofShy] = await shared.take(0, [used, shadow])
  t.ok((ofWide?.grant?.requests ?? 0) > 0)
  t.equal(ofWide?.remaining, 1000 - 3 - lent, 'and counts')
  t.match(ofShy, { exceeded: true, grant: undefined })
})

t.test(
  'the remaining requests that a process hears of are without those that others used',
  async t => {
    const { shared } = machine({ count: 2 })
    const limit = rule({ max: 1000, windowMs: minute })
    const take = async (borrower: number, unreported = 0, unused = 0) => {
      const [verdict] = await shared.take(borrower, [{ rule: limit, key: 'k', unreported, unused }])
      return verdict
    }
    t.match(await take(0), { remaining: 999, grant: undefined })
    t.match(await take(0), { remaining: 998, grant: { requests: 50 } })
    t.match(await take(1), { remaining: 997 })
    const reported = await take(0, 40, 10)
    t.match(reported, { remaining: 956, grant: { requests: 9 } }, '40 by its part')
    shared.drop(0)
    t.match(await take(1), { remaining: 955 - 9 }, 'and all of a process that is gone')
  }
)

t.test(
  'a part of a process that is gone counts at once, one that was given back never',
  async t => {
    const limit = rule({ max: 1000, windowMs: minute })
    for (const isGivenBack of [false, true]) {
      const { shared } = machine({ count: 2 })
      const entry = { rule: limit, key: 'k', unreported: 0 }
      const take = async (borrower: number) => (await shared.take(borrower, [entry]))[0]
      t.match(await take(0), { remaining: 999 })
      t.match(await take(0), { remaining: 998, grant: { requests: 50 } })
      // The answer came late: its request was counted elsewhere too, and is given back as well.
      if (isGivenBack) shared.settle(0, [{ ...entry, unreported: -1, unused: 50 }])
      shared.drop(0)
      t.match(await take(1), { remaining: isGivenBack ? 998 : 947 })
    }
  }
)

t.test('where one limit refuses, nothing of the others is lent', async t => {
  const { shared } = machine({ count: 2 })
  const entries = [
    { rule: rule({ name: 'wide', max: 1000 }), key: 'w', unreported: 0 },
    { rule: rule({ name: 'tight', max: 1 }), key: 't', unreported: 0 }
  ]
  await shared.take(0, entries)
  for (const time of ['asked', 'known']) {
    const [wide, tight] = await shared.take(0, entries)
    t.match([wide, tight], [{ exceeded: false }, { exceeded: true }], time)
    t.same([wide?.grant, tight?.grant], [undefined, undefined], time)
  }
})

t.test('parts that a process gets one after the other are known together', async t => {
  const { shared } = machine({ count: 2 })
  const limit = rule({ max: 1000, windowMs: minute })
  const entry = { rule: limit, key: 'k', unreported: 0 }
  const take = async (borrower: number) => (await shared.take(borrower, [entry]))[0]?.grant
  t.equal(await take(0), undefined)
  t.match(await take(0), { requests: 50 })
  t.match(await take(1), { requests: 47 }, 'all that is left')
  shared.settle(1, [{ ...entry, unused: 20 }])
  t.match(await take(1), { requests: 19 })
  shared.settle(1, [{ ...entry, unused: 46 }])
  t.match(await take(1), { requests: 45 }, 'both parts came back')
})

t.test('what comes back while the counters are asked is not lent before they answer', async t => {
  const counters = createMemoryTally()
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  let isHeld = false
  const { shared, questions } = machine({
    count: 2,
    tally: {
      consume: async entries => {
        if (isHeld) await answered
        return await counters.consume(entries)
      },
      report: entries => counters.report(entries)
    }
  })
  const entry = { rule: rule({ max: 1000, windowMs: minute }), key: 'k', unreported: 0 }
  for (const borrower of [0, 0, 1]) await shared.take(borrower, [entry])
  const asked = questions()
  isHeld = true
  const first = shared.take(1, [entry])
  shared.settle(0, [{ ...entry, unused: 50 }])
  const second = shared.take(0, [entry])
  t.equal(questions(), asked + 2)
  answer()
  t.match(await Promise.all([first, second]), [[{ exceeded: false }], [{ exceeded: false }]])
})

t.test('a process gives back no more than it has', async t => {
  const { shared, passes } = machine({ count: 2 })
  const limit = rule({ max: 100, windowMs: minute })
  for (let index = 0; index < 3; index++) t.equal(await passes(0, limit), true)
  shared.settle(1, [{ rule: limit, key: 'k', unreported: 0, unused: 1000 }])
  let passed = 3
  while (await passes(0, limit)) passed++
  t.equal(passed, 100)
})

t.test('what was used counts, also where the lease is forgotten meanwhile', async t => {
  const { shared } = machine({ count: 2 })
  const limit = rule({ max: 100, windowMs: minute })
  shared.settle(0, [{ rule: limit, key: 'k', unreported: 30 }])
  const [verdict] = await shared.take(1, [{ rule: limit, key: 'k', unreported: 0 }])
  t.match(verdict, { exceeded: false, remaining: 69 })
})

t.test('a lease of a rule that a reload has replaced does not count for the new one', async t => {
  const { shared } = machine({ count: 2 })
  const take = async (max: number) =>
    (await shared.take(0, [{ rule: rule({ max }), key: 'k', unreported: 0 }]))[0]
  t.match(await take(1000), { remaining: 999 })
  t.match(await take(500), { remaining: 498 })
})

t.test('the last request waits for a part that may be used, at each end of the limit', async t => {
  let time = 1_000_000
  const recalled: number[] = []
  const shared = new SharedLeases({
    tally: createMemoryTally(() => time),
    isAlone: () => true,
    now: () => time,
    borrowers: 2,
    recall: borrower => void recalled.push(borrower)
  })
  t.teardown(() => shared.close())
  const limit = rule({ max: 20, windowMs: minute })
  for (const window of [1, 2]) {
    const take = async (borrower: number) =>
      (await shared.take(borrower, [{ rule: limit, key: 'k', unreported: 0 }]))[0]
    let lent = 0
    let passed = 0
    for (; lent === 0; passed++) lent = (await take(0))?.grant?.requests ?? 0
    t.equal(lent, 1)
    for (; passed < 19; passed++) t.match(await take(1), { exceeded: false })
    t.equal(recalled.length, window, 'called back where little is left, and once')
    const last = take(1)
    shared.settle(0, [{ rule: limit, key: 'k', unreported: 1 }])
    t.match(await last, { exceeded: true }, 'the part was used meanwhile')
    time += minute
  }
})

t.test('a part whose use nobody reports is forgotten once it is long over', async t => {
  let time = 1_000_000
  const { shared } = machine({ count: 2, now: () => time })
  const limit = rule({ max: 1000, windowMs: 100 * minute })
  const take = async (borrower: number) =>
    (await shared.take(borrower, [{ rule: limit, key: 'k', unreported: 0 }]))[0]
  await take(0)
  t.match(await take(0), { grant: { requests: 50 } })
  time += 4000
  await shared.release(['k'])
  t.match(await take(1), { remaining: 997, grant: undefined }, 'as of a caller that is new')
})

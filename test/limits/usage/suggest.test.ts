import fc from 'fast-check'
import t from 'tap'
import type { LimitConfig } from '../../../src/config/schema/limits.ts'
import { compilePlan } from '../../../src/limits/counting/plan.ts'
import { createReplay } from '../../../src/limits/replay/replay.ts'
import { suggest } from '../../../src/limits/usage/suggest.ts'
import { greatestOf, isHourUsage, maxTop, placeOf } from '../../../src/limits/usage/hours.ts'
import { createUsageRecord } from '../../../src/limits/usage/record.ts'
import { seed } from '../../support/seed.ts'

const hour = 3_600_000
const day = 24 * hour
const begin = Date.UTC(2026, 0, 1, 0, 50)

const limit = (given: Partial<LimitConfig>): LimitConfig => ({
  by: ['user'],
  max: 3,
  window: 60_000,
  kind: 'fixed',
  mode: 'enforce',
  routes: [],
  methods: [],
  roles: [],
  refusedOnly: false,
  ...given
})
const callerOf = (user: number) => ({
  id: `s${user}`,
  source: 'users-file',
  identity: { id: String(user), roles: [] }
})

interface Asked {
  readonly at: number
  readonly user: number
  readonly process: number
}

const anyLimit = fc
  .record({
    max: fc.integer({ min: 1, max: 20 }),
    window: fc.constantFrom(1000, 7001, 60_000, 2 * hour),
    kind: fc.constantFrom('fixed' as const, 'sliding' as const),
    burst: fc.option(fc.constant(1)),
    by: fc.constantFrom<LimitConfig['by']>(['user'], ['session'], ['user', 'address'])
  })
  .map(({ burst, ...given }) => limit(burst === null ? given : { ...given, burst, kind: 'fixed' }))
const anyAsked = (users: number) =>
  fc
    .array(
      fc.record({
        pause: fc.oneof(fc.nat(400), fc.nat(20_000), fc.nat(hour)),
        user: fc.nat(users - 1),
        process: fc.nat(2)
      }),
      { minLength: 1, maxLength: 120 }
    )
    .map(given => {
      let at = begin
      return given.map(({ pause, user, process }): Asked => ({ at: (at += pause), user, process }))
    })

function suggested(of: LimitConfig, asked: readonly Asked[], processes: number) {
  let time = begin
  const now = () => time
  const records = Array.from({ length: processes }, () =>
    createUsageRecord({ keepMs: 30 * day, processes: () => processes, now })
  )
  const plan = compilePlan({ limits: { l: of }, replicas: 'counted' })
  for (const [index, { at, user, process }] of asked.entries()) {
    time = at
    const record = records[process % processes]
    const { rules, keysOf } = plan('r', 'GET', callerOf(user))
    record?.count(rules, keysOf('192.0.2.1', callerOf(user)))
    // As each minute does.
    if (index % 7 === 0) record?.hours()
  }
  const hours = records.flatMap((record, process) =>
    record.hours().map(use => ({ process: String(process), use }))
  )
  for (const record of records) record.close()
  return suggest({ limits: { l: of } }, { hours, alone: false }, day, time)
}

async function refusals(of: LimitConfig, number: number, asked: readonly Asked[]): Promise<number> {
  const replay = createReplay({
    limits: { l: of.burst === undefined ? { ...of, max: number } : { ...of, burst: number } },
    replicas: 1,
    endedSessions: { max: 1, window: 1 }
  })
  let refused = 0
  for (const { at, user } of asked) {
    if (
      (
        await replay.take({
          at,
          endedAt: at,
          route: 'r',
          method: 'GET',
          address: '192.0.2.1',
          caller: callerOf(user)
        })
      ).refused
    ) {
      refused++
    }
  }
  replay.close()
  return refused
}

t.test(
  'the suggested number refuses nobody, and one less refuses somebody: one process, any requests',
  async () => {
    await fc.assert(
      fc.asyncProperty(anyLimit, anyAsked(4), async (of, asked) => {
        const { from = 0, to } = suggested(of, asked, 1).limits[0]?.lowest ?? {}
        return (
          from === to &&
          (await refusals(of, from, asked)) === 0 &&
          (from === 1 || (await refusals(of, from - 1, asked)) > 0)
        )
      }),
      { numRuns: 500, seed }
    )
  }
)

t.test(
  'of several processes the upper number refuses nobody, and less than the lower one refuses somebody',
  async () => {
    await fc.assert(
      fc.asyncProperty(anyLimit, anyAsked(4), async (of, asked) => {
        const { from = 0, to = 0 } = suggested(of, asked, 3).limits[0]?.lowest ?? {}
        return (
          from <= to &&
          (await refusals(of, to, asked)) === 0 &&
          (from === 1 || (await refusals(of, from - 1, asked)) > 0)
        )
      }),
      { numRuns: 500, seed }
    )
  }
)

t.test('a fixed window that another process began may hold two halves of one’s own', async t => {
  const at = (second: number, process: number): Asked => ({
    at: begin + second * 1000,
    user: 1,
    process
  })
  const asked = [
    at(0, 1),
    at(10, 0),
    ...[65, 66, 67, 68, 69].map(second => at(second, 0)),
    ...[70, 71, 72, 73, 74].map(second => at(second, 0))
  ]
  const { from = 0, to = 0 } = suggested(limit({}), asked, 2).limits[0]?.lowest ?? {}
  t.equal(from, 6)
  t.ok((await refusals(limit({}), from + 1, asked)) > 0, 'what each saw most of is too little')
  t.equal(await refusals(limit({}), to, asked), 0)
})

t.test('each hour of a caller counts by itself', async t => {
  const asked = [0, 1, 2, 3, 4, 5, hour, 2 * hour].map((ms): Asked => ({
    at: begin + ms,
    user: 1,
    process: 0
  }))
  t.match(suggested(limit({}), asked, 1).limits[0], { p50: 1, p99: 6, highest: 6, requests: 8 })
})

t.test('callers whom no list names are reckoned with', async t => {
  // Each process names fifty others that ask more.
  const asked = [0, 1]
    .flatMap(process =>
      Array.from({ length: maxTop }, (_, user) =>
        Array.from({ length: 6 }, () => ({ user: 1000 * (process + 1) + user, process }))
      ).flat()
    )
    .concat([0, 1].flatMap(process => Array.from({ length: 5 }, () => ({ user: 1, process }))))
    .map((each, index) => ({ ...each, at: begin + index }))
  const [found] = suggested(limit({ max: 7 }), asked, 2).limits
  t.ok((found?.lowest?.to ?? 0) >= 10, 'five and five are ten')
  t.equal(found?.lowest?.from, 6)
  t.equal(await refusals(limit({}), found?.lowest?.to ?? 0, asked), 0)
})

t.test('who is over, how much callers need, and from how much time it is taken', async t => {
  const asked = [
    ...Array.from({ length: 9 }, () => 1),
    ...Array.from({ length: 98 }, (_, index) => index + 2)
  ].map((user, index) => ({ user, process: 0, at: begin + index }))
  const found = suggested(limit({ by: ['user', 'address'] }), asked, 1)
  t.match(found, {
    processes: 1,
    counting: 1,
    coveredMs: 106,
    askedMs: day,
    from: new Date(begin).toISOString()
  })
  t.match(found.limits[0], {
    limit: 'l',
    key: 'max',
    inForce: 3,
    requests: 107,
    p50: 1,
    p99: 9,
    highest: 9,
    lowest: { from: 9, to: 9 },
    over: [{ whom: 'user 1 of users-file, address 192.0.2.1', needed: { from: 9, to: 9 } }],
    more: false,
    notes: []
  })
  t.equal(found.limits[0]?.over.length, 1)
})

t.test(
  'whom several processes refused together is named, though none of them saw too much',
  async t => {
    let time = begin
    const records = [0, 1].map(() =>
      createUsageRecord({ keepMs: day, processes: () => 2, now: () => time })
    )
    const of = limit({ max: 3 })
    const { rules, keysOf } = compilePlan({ limits: { l: of }, replicas: 'counted' })(
      'r',
      'GET',
      callerOf(1)
    )
    for (const exceeded of [false, false, false, true]) {
      const record = records[time++ % 2]
      record?.count(rules, keysOf('', callerOf(1)))
      record?.judge(rules, keysOf('', callerOf(1)), [
        { exceeded, remaining: 0, resetMs: 0, retryMs: 0 }
      ])
    }
    const {
      limits: [found],
      counting
    } = suggest(
      { limits: { l: of } },
      {
        hours: records.flatMap((record, process) =>
          record.hours().map(use => ({ process: String(process), use }))
        ),
        alone: false
      },
      day,
      time
    )
    for (const record of records) record.close()
    t.equal(counting, 2)
    t.match(found, {
      requests: 4,
      refused: 1,
      lowest: { from: 2, to: 4 },
      over: [{ whom: 'user 1 of users-file', needed: { from: 2, to: 4 }, refused: 1 }]
    })
  }
)

t.test(
  'sign-ins count as the shared counters have them; another window than in force is left out',
  async t => {
    const record = createUsageRecord({ keepMs: day, now: () => begin })
    for (const current of [1, 2, 3]) record.attempt('guesses:ann 192.0.2.1', 60_000, current)
    record.attempt('guesses:bo 192.0.2.1', 1000, 99)
    const {
      limits: [found]
    } = suggest(
      { limits: { guesses: limit({ by: ['account', 'address'], max: 2, refusedOnly: true }) } },
      { hours: record.hours().map(use => ({ process: '', use })), alone: false },
      day,
      begin
    )
    record.close()
    t.match(found, {
      requests: 3,
      lowest: { from: 3, to: 3 },
      over: [{ whom: 'account ann, address 192.0.2.1', needed: { from: 3, to: 3 } }],
      notes: ['what it counted with another window or kind is left out']
    })
  }
)

t.test('the record is bounded: callers beyond it are told, and old hours go', async t => {
  let time = begin
  const record = createUsageRecord({ keepMs: 2 * hour, now: () => time })
  const { rules, keysOf } = compilePlan({ limits: { l: limit({}) }, replicas: 1 })(
    'r',
    'GET',
    callerOf(0)
  )
  for (let user = 0; user < 50_001; user++) record.count(rules, keysOf('', callerOf(user)))
  const [use] = record.hours()
  t.equal(use?.limits[0]?.cut, true)
  t.equal(use?.limits[0]?.top.length, maxTop)
  t.equal(
    use?.limits[0]?.callers.reduce((sum, [, count]) => sum + count, 0),
    50_001
  )
  t.ok(isHourUsage(JSON.parse(JSON.stringify(use))))
  t.ok(JSON.stringify(use).length < 5000, 'and small')
  time += 5 * hour
  const first = Math.floor(begin / hour)
  t.same(
    record.hours().map(({ hour: at, limits }) => [at - first, limits.length]),
    [
      [3, 0],
      [4, 0],
      [5, 0]
    ]
  )
  record.close()
})

t.test('classes of numbers are exact up to 31, and never say less', async () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000_000 }), number => {
      const greatest = greatestOf(placeOf(number))
      return (
        greatest >= number && greatest <= (number * 17) / 16 && (number > 31 || greatest === number)
      )
    }),
    { seed }
  )
})

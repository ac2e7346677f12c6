/** What counting for limits promises; run once for each adapter. */
import fc from 'fast-check'
import type { Test } from 'tap'
import type { TallyEntry, Rule, Tally } from '../../src/limits/counting/rules.ts'

const hour = 3_600_000
let keys = 0
const freshKey = () => `{contract-${process.pid}-${++keys}}`

export const rule = (given: Partial<Rule> = {}): Rule => ({
  name: 'l',
  kind: 'fixed',
  max: 5,
  windowMs: hour,
  burst: 5,
  enforced: true,
  replicas: 1,
  ...given
})
const entry = (key: string, given: Partial<Rule> = {}, unreported = 0): TallyEntry => ({
  rule: rule(given),
  key,
  unreported: unreported
})

export function tallyContract(t: Test, tally: Tally): void {
  const takes = async (times: number, entries: () => TallyEntry[]) => {
    const taken = []
    for (let index = 0; index < times; index++) {
      taken.push(
        (await tally.consume(entries())).map(({ exceeded, remaining }) =>
          exceeded ? 'over' : remaining
        )
      )
    }
    return taken
  }

  for (const kind of ['fixed', 'sliding', 'bucket'] as const) {
    t.test(`${kind}: so many pass, and then none`, async t => {
      const key = freshKey()
      // A sliding window that begins just now would begin anew.
      const windowMs = 100 * hour
      t.same(await takes(7, () => [entry(key, { kind, windowMs })]), [
        [4],
        [3],
        [2],
        [1],
        [0],
        ['over'],
        ['over']
      ])
      const [verdict] = await tally.consume([entry(key, { kind, windowMs })])
      t.ok(
        verdict !== undefined && verdict.retryMs > 0 && verdict.retryMs <= 2 * windowMs,
        `${verdict?.retryMs}`
      )
    })

    t.test(`${kind}: of 60 at once no more pass than are allowed`, async t => {
      const key = freshKey()
      const all = await Promise.all(
        Array.from({ length: 60 }, () =>
          tally.consume([entry(key, { kind, max: 20, burst: 20, windowMs: 100 * hour })])
        )
      )
      t.equal(all.filter(([verdict]) => verdict?.exceeded === false).length, 20)
    })

    t.test(`${kind}: what is owed is counted, also beyond the limit`, async t => {
      const key = freshKey()
      await tally.report([entry(key, { kind, windowMs: 100 * hour }, 3)])
      t.same(await takes(1, () => [entry(key, { kind, windowMs: 100 * hour }, 1)]), [[0]])
      t.same(await takes(1, () => [entry(key, { kind, windowMs: 100 * hour }, 4)]), [['over']])
    })
  }

  t.test('a bucket that is burst holds less than its window brings', async t => {
    const key = freshKey()
    t.same(
      await takes(4, () => [
        entry(key, { kind: 'bucket', max: 100, burst: 3, windowMs: 1000 * hour })
      ]),
      [[2], [1], [0], ['over']]
    )
  })

  t.test('a limit that a reload raises or lowers keeps what was counted', async t => {
    for (const kind of ['fixed', 'sliding', 'bucket'] as const) {
      const key = freshKey()
      const of = (max: number, unreported = 0) =>
        entry(key, { kind, max, burst: max, windowMs: 100 * hour }, unreported)
      await tally.report([of(1000, 1000)])
      t.same(await takes(1, () => [of(1000)]), [['over']], kind)
      t.same(await takes(1, () => [of(100_000)]), [[98_999]], kind)
      const [verdict] = await tally.consume([of(10)])
      t.ok(verdict?.exceeded === true && verdict.retryMs <= 110 * hour, `${verdict?.retryMs}`)
    }
  })

  t.test('a bucket that refills faster after a reload does so at once', async t => {
    const key = freshKey()
    const of = (max: number, unreported = 0) =>
      entry(key, { kind: 'bucket', max, burst: 1000, windowMs: 24 * hour }, unreported)
    await tally.report([of(1000, 1000)])
    const [verdict] = await tally.consume([of(100_000)])
    t.match(verdict, { exceeded: true, remaining: 0 })
    t.ok(verdict !== undefined && verdict.retryMs <= 864, `${verdict?.retryMs}`)
  })

  t.test('what is owed beyond a bucket is owed further on', async t => {
    const key = freshKey()
    const of = (unreported: number) =>
      entry(key, { kind: 'bucket', max: 10, burst: 10, windowMs: 10 * hour }, unreported)
    await tally.report([of(11)])
    await tally.report([of(1)])
    const [verdict] = await tally.report([of(0)])
    t.ok(verdict !== undefined && verdict.retryMs > 2 * hour, `${verdict?.retryMs}`)
  })

  t.test('limits of one request are taken together: where one refuses, none counts', async t => {
    const [key, tight] = [freshKey(), freshKey()]
    const both = () => [entry(key, { max: 10 }), entry(tight, { max: 2 })]
    t.same(await takes(4, both), [
      [9, 1],
      [8, 0],
      [8, 'over'],
      [8, 'over']
    ])
    t.same(await takes(1, () => [entry(key, { max: 10 })]), [[7]])
  })

  t.test(
    'what is only watched refuses nothing, and is counted no further than it would have been',
    async t => {
      const [key, watched] = [freshKey(), freshKey()]
      t.same(
        await takes(3, () => [
          entry(key, { max: 10 }),
          entry(watched, { max: 1, enforced: false })
        ]),
        [
          [9, 0],
          [8, 'over'],
          [7, 'over']
        ]
      )
    }
  )

  t.test('keys of any text are counted apart', async t => {
    const key = freshKey()
    for (const other of [
      key,
      `${key} `,
      key.toUpperCase(),
      `${key}\u0000`,
      `${key}💡`,
      '__proto__',
      'constructor',
      '{}x',
      '{x'
    ]) {
      t.same(
        await takes(2, () => [entry(other + key, { max: 2 })]),
        [[1], [0]],
        JSON.stringify(other)
      )
    }
  })
}

/** Any limits of any kind on a few keys, and what is taken of them. */
export const anyTakes = fc.array(
  fc.record({
    entries: fc.uniqueArray(
      fc.record({
        key: fc.constantFrom('a', 'b', 'c'),
        unreported: fc.nat(3),
        kind: fc.constantFrom('fixed' as const, 'sliding' as const, 'bucket' as const),
        max: fc.integer({ min: 1, max: 6 }),
        burst: fc.integer({ min: 1, max: 6 }),
        enforced: fc.boolean()
      }),
      { minLength: 1, maxLength: 3, selector: ({ key }) => key }
    ),
    wants: fc.boolean(),
    /** Since the one before, of a window of an hour. */
    pause: fc.oneof(fc.nat(60_000), fc.nat(hour), fc.nat(3 * hour))
  }),
  { maxLength: 12 }
)

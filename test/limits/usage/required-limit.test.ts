import fc from 'fast-check'
import t from 'tap'
import { createRequiredLimit } from '../../../src/limits/usage/required-limit.ts'
import { decide, type Rule, type State } from '../../../src/limits/counting/rules.ts'
import { rule } from '../../suites/tally.ts'
import { seed } from '../../support/seed.ts'

const minute = 60_000
const begin = 1_700_000_000_000
const pauses = fc.array(fc.oneof(fc.nat(300), fc.nat(20_000), fc.nat(90_000)), {
  minLength: 1,
  maxLength: 80
})
const anyRule = fc
  .record({
    kind: fc.constantFrom('fixed' as const, 'sliding' as const, 'bucket' as const),
    windowMs: fc.constantFrom(1000, 7001, minute, 90_017),
    max: fc.integer({ min: 1, max: 40 })
  })
  .map(given => rule(given))

const times = (given: readonly number[]) =>
  given.map((_, index) => begin + given.slice(0, index + 1).reduce((sum, pause) => sum + pause, 0))
const withNumber = (of: Rule, number: number): Rule =>
  of.kind === 'bucket' ? { ...of, burst: number } : { ...of, max: number }

function refusals(limit: Rule, at: readonly number[]): number {
  const states = new Map<string, State>()
  return at.filter(
    now =>
      decide(
        [{ rule: limit, key: 'k', unreported: 0 }],
        true,
        {
          get: key => states.get(key),
          set: (key, state) => {
            states.set(key, state)
          }
        },
        now
      )[0]?.exceeded === true
  ).length
}

function lowest(limit: Rule, at: readonly number[]): number {
  const demand = createRequiredLimit(limit)
  return Math.max(...at.map(now => demand.hit(now)))
}

t.test(
  'the lowest number refuses nobody, and one less refuses somebody, whatever is asked',
  async () => {
    fc.assert(
      fc.property(anyRule, pauses, (limit, given) => {
        const at = times(given)
        const number = lowest(limit, at)
        return (
          refusals(withNumber(limit, number), at) === 0 &&
          (number === 1 || refusals(withNumber(limit, number - 1), at) > 0)
        )
      }),
      { numRuns: 2000, seed }
    )
  }
)

t.test('what several processes saw of one caller, summed up, is never too little', async () => {
  fc.assert(
    fc.property(
      anyRule,
      pauses,
      fc.array(fc.nat(2), { minLength: 80, maxLength: 80 }),
      (limit, given, process) => {
        const at = times(given)
        const most = [0, 1, 2].map(one => {
          const demand = createRequiredLimit(limit, 3)
          return Math.max(
            0,
            ...at
              .filter((_, index) => process[index] === one)
              .map(now => {
                demand.hit(now)
                return demand.upperBound()
              })
          )
        })
        return most.reduce((sum, each) => sum + each, 0) >= lowest(limit, at)
      }
    ),
    { numRuns: 2000, seed }
  )
})

t.test('what is over counts no more', async t => {
  for (const kind of ['fixed', 'sliding', 'bucket'] as const) {
    const demand = createRequiredLimit(rule({ kind, windowMs: minute }))
    demand.hit(begin)
    t.notOk(demand.isOver(begin + 1000), kind)
    t.ok(demand.isOver(begin + 2 * minute + 4000), kind)
    t.equal(demand.hit(begin + 2 * minute + 4000), 1)
  }
})

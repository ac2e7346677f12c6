/** Numbers that a record of several processes and of unnamed callers gives. */
import t from 'tap'
import type { LimitConfig } from '../../../src/config/schema/limits.ts'
import { addTop, binToJson, createBin, type HourUsage } from '../../../src/limits/usage/hours.ts'
import type { RecordedUsage } from '../../../src/limits/usage/redis-usage.ts'
import { suggest } from '../../../src/limits/usage/suggest.ts'
import { whatIf } from '../../../src/limits/usage/what-if.ts'

const limit = {
  by: ['user'],
  max: 100,
  window: 60_000,
  kind: 'sliding',
  mode: 'enforce',
  routes: [],
  methods: [],
  roles: [],
  refusedOnly: false
} as unknown as LimitConfig
const config = { limits: { calls: limit } }

/** Callers `u0`, `u1`… of one hour with these needs. */
function hourOf(needs: readonly number[], processes = 1): HourUsage {
  const bin = createBin()
  for (const [index, need] of needs.entries()) {
    addTop(bin, [`{u:s/u${index}}calls.sliding`, need, need, 3_600_000, 0])
    bin.requests += need
  }
  const usage = { limit: 'calls', kind: 'sliding', windowMs: 60_000, per: 0, ...binToJson(bin) }
  return { hour: 1, from: 3_600_000, until: 7_200_000, processes, limits: [usage as never] }
}

const recordOf = (...hours: HourUsage[]): RecordedUsage => ({
  hours: hours.map((use, index) => ({ process: `p${index}`, use })),
  alone: false
})

t.test('callers beyond the list of names are counted by the class of their need', t => {
  const needs = [...Array<number>(50).fill(90), ...Array<number>(30).fill(30)]
  const answer = whatIf('calls', config, { recorded: recordOf(hourOf(needs)), factor: 0.2 })
  t.equal(answer.number, 20)
  t.equal(answer.refused, 50 * 70 + 30 * 10)
  t.same(answer.refusedCallers, { from: 50, to: 80 })
  t.end()
})

t.test('a caller that several processes saw may be over by their sum', t => {
  const recorded = recordOf(hourOf([15], 2), hourOf([15], 2))
  const answer = whatIf('calls', config, { recorded, factor: 0.2 })
  t.same(answer.refusedCallers, { from: 0, to: 1 })
  const { lowest } = suggest(config, recorded, 0, 0).limits[0] ?? {}
  t.same([answer.lowestFrom, answer.lowest], [lowest?.from, lowest?.to])
  t.same([answer.lowestFrom, answer.lowest], [15, 30])
  t.end()
})

t.test('without a record there is no number', t => {
  const answer = whatIf('calls', config, { recorded: recordOf(), factor: 0.8 })
  t.match(answer, { refused: 0, lowest: null, notes: ['there is no record of it yet'] })
  t.end()
})

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

t.test('a window that two hours have a part of counts once', t => {
  const at = 2 * 3_600_000
  const peakIn = (hour: number, peak: number, time: number): HourUsage => {
    const bin = createBin()
    addTop(bin, ['{u:s/u1}calls.sliding', peak, peak, time, 0])
    const usage = { limit: 'calls', kind: 'sliding', windowMs: 60_000, per: 0, ...binToJson(bin) }
    const from = hour * 3_600_000
    return { hour, from, until: from + 3_600_000, processes: 1, limits: [usage as never] }
  }
  const refusedOf = (...hours: HourUsage[]) =>
    whatIf('calls', config, {
      recorded: { hours: hours.map(use => ({ process: 'p', use })), alone: false },
      factor: 0.1
    }).refused
  // The peak of the second hour counts the requests at the end of the first one again.
  t.equal(refusedOf(peakIn(1, 21, at - 10), peakIn(2, 36, at + 10)), 26)
  t.equal(refusedOf(peakIn(1, 36, at - 10), peakIn(2, 21, at + 10)), 26)
  t.equal(refusedOf(peakIn(1, 21, at - 10), peakIn(2, 36, at + 70_000)), 37)
  t.equal(refusedOf(peakIn(1, 21, at - 90_000), peakIn(2, 36, at + 10)), 37)
  t.end()
})

t.test('callers without a name count once where a window may touch two hours', t => {
  const needs = [...Array<number>(50).fill(90), ...Array<number>(30).fill(30)]
  const hours = [1, 2, 3].map(hour => ({ ...hourOf(needs), hour }))
  const refusedOf = (...of: HourUsage[]) =>
    whatIf('calls', config, {
      recorded: { hours: of.map(use => ({ process: 'p', use })), alone: false },
      factor: 0.2
    }).refused
  // The 50 with a name have the same peak at the same time in all of them.
  t.equal(refusedOf(...hours.slice(0, 2)), 50 * 70 + 30 * 10)
  t.equal(refusedOf(...hours), 50 * 70 + 2 * 30 * 10)
  t.end()
})

t.test('without a record there is no number', t => {
  const answer = whatIf('calls', config, { recorded: recordOf(), factor: 0.8 })
  t.match(answer, { refused: 0, lowest: null, notes: ['there is no record of it yet'] })
  t.end()
})

import fc from 'fast-check'
import t from 'tap'
import { isoDate } from '../../src/shaping/convert.ts'

const [first, end] = [Date.UTC(-1, 12), Date.UTC(10_000, 0)]

t.test('a moment is written as Date writes it, in each of its thousandths', async t => {
  const asDate = (time: number) => new Date(time).toISOString()
  for (const time of [
    0,
    -1,
    1,
    -0.5,
    0.999,
    -999,
    -1000,
    86_399_999,
    86_400_000,
    -86_400_000,
    -86_400_001,
    first,
    end - 1,
    Date.UTC(2024, 1, 29, 23, 59, 59, 999)
  ]) {
    t.equal(isoDate(time), asDate(time), String(time))
  }
  fc.assert(
    fc.property(
      fc.oneof(
        fc.integer({ min: first, max: end - 1 }),
        fc.double({ min: first, max: end - 1, noNaN: true })
      ),
      time => isoDate(time) === asDate(time)
    ),
    { numRuns: 5000 }
  )
})

t.test('what is no moment of a year of four digits is none', async t => {
  for (const time of [NaN, Infinity, -Infinity, end, first - 1]) {
    t.equal(isoDate(time), undefined, String(time))
  }
})

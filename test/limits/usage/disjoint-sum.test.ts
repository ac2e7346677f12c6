import fc from 'fast-check'
import t from 'tap'
import { disjointSum, type Span } from '../../../src/limits/usage/disjoint-sum.ts'

/** By trying all sets. */
function tried(spans: readonly Span[]): number {
  const [first, ...rest] = spans
  if (first === undefined) return 0
  const apart = rest.filter(({ from, until }) => until <= first.from || from >= first.until)
  return Math.max(tried(rest), first.value + tried(apart))
}

t.test('it is the greatest of all sets of spans that do not overlap', t => {
  const span = fc
    .record({ from: fc.nat(30), length: fc.integer({ min: 1, max: 12 }), value: fc.nat(20) })
    .map(({ from, length, value }) => ({ from, until: from + length, value }))
  fc.assert(
    fc.property(fc.array(span, { maxLength: 8 }), spans => {
      if (disjointSum(spans) !== tried(spans)) throw new Error('another sum')
    }),
    { numRuns: 500 }
  )
  t.equal(disjointSum([]), 0)
  t.end()
})

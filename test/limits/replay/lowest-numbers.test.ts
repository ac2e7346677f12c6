import t from 'tap'
import type { Rule } from '../../../src/limits/counting/rules.ts'
import { LowestNumbers } from '../../../src/limits/replay/lowest-numbers.ts'

const rule = { name: 'l' } as Rule

/** The looks at the counts of callers, while so many new ones come. */
function looksFor(callers: number, isOver: boolean): number {
  let looks = 0
  const lowest = new LowestNumbers({
    minSwept: 100,
    create: () => ({
      hit: () => 1,
      upperBound: () => 1,
      isOver: () => {
        looks++
        return isOver
      }
    })
  })
  for (let index = 0; index < callers; index++) lowest.count(rule, `caller ${index}`, index)
  return looks
}

t.test('callers whose counts go on are looked at a bounded number of times each', t => {
  t.equal(looksFor(100, false), 0)
  for (const callers of [1000, 10_000]) {
    const looks = looksFor(callers, false)
    t.ok(looks > 0 && looks <= 2 * callers, `${looks} looks for ${callers} callers`)
  }
  t.end()
})

t.test('callers whose counts are over make room', t => {
  const looks = looksFor(10_000, true)
  t.ok(looks > 9000 && looks <= 10_000, `${looks} looks: each caller is dropped once`)
  t.end()
})

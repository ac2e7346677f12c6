import t from 'tap'
import { ShapingCost } from '../../src/app/shaping-cost.ts'

t.test('before the first body, size alone decides', t => {
  const cost = new ShapingCost()
  t.equal(cost.isLong(100_000), false)
  t.equal(cost.isLong(1_000_000), true)
  t.end()
})

t.test('then what former bodies of the route took decides', t => {
  const [slow, quick] = [new ShapingCost(), new ShapingCost()]
  for (let n = 0; n < 30; n++) {
    slow.add(100_000, 20)
    quick.add(1_000_000, 2)
  }
  t.equal(slow.isLong(20_000), false)
  t.equal(slow.isLong(30_000), true)
  t.equal(quick.isLong(2_000_000), false)
  t.equal(quick.isLong(3_000_000), true)
  t.end()
})

t.test('one slow body is not yet an average', t => {
  const cost = new ShapingCost()
  for (let n = 0; n < 30; n++) cost.add(100_000, 1)
  cost.add(100_000, 10)
  t.equal(cost.isLong(100_000), false)
  t.end()
})

t.test('small bodies, which are mostly fixed cost, stay in the event loop and teach nothing', t => {
  const cost = new ShapingCost()
  for (let n = 0; n < 100; n++) cost.add(1000, 100)
  t.equal(cost.isLong(1000), false)
  t.equal(cost.isLong(100_000), false)
  t.end()
})

import t from 'tap'
import { createSettlements, createSwitch } from '../../../src/limits/counting/with-fallback.ts'

t.test('what Redis could not be told is told again, before it is asked anything else', async t => {
  const settlements = createSettlements(createSwitch(() => {}))
  t.teardown(() => settlements.close())
  const told: string[] = []
  let failures = 2
  settlements.add(async () => {
    told.push('sound')
  })
  settlements.add(async () => {
    if (failures-- > 0) throw new Error('away')
    told.push('failed twice')
  })
  const ask = async () => {
    told.push('asked')
  }
  await t.rejects(settlements.first(ask), { message: 'Redis is unavailable again' })
  await t.rejects(settlements.first(ask), { message: 'Redis is unavailable again' })
  await settlements.first(ask)
  t.same(told, ['sound', 'failed twice', 'asked'])
})

t.end()

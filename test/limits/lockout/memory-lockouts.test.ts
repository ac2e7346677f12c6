/** Lockouts in memory: their bounds. */
import t from 'tap'
import { createMemoryLockouts } from '../../../src/limits/lockout/memory-lockouts.ts'
import { lockRule } from '../../suites/lockouts.ts'
import { retainedBytes } from '../../support/retained.ts'

const minute = 60_000
const start = 1_700_000_000_000

function setUp() {
  const clock = { now: start }
  return { clock, lockouts: createMemoryLockouts(() => clock.now) }
}

t.test('of those who are locked the first to end comes first', async t => {
  const { clock, lockouts } = setUp()
  const lock = async (key: string, delayMs: number) =>
    await lockouts.attempt(key, lockRule({ after: 1, delayMs, maxDelayMs: 60 * minute }))
  await lock('last', 30 * minute)
  await lock('first', 10 * minute)
  await lock('second', 20 * minute)
  const keys = async () => (await lockouts.list()).map(({ key }) => key)
  t.same(await keys(), ['first', 'second', 'last'])
  clock.now += 10 * minute - 1
  t.same(await keys(), ['first', 'second', 'last'])
  clock.now++
  t.same(await keys(), ['second', 'last'], 'a lock is over at its end')
  t.equal(await lockouts.look('first', lockRule({ after: 1 })), 0)
})

t.test('of failed attempts no more are kept than may be refunded', async t => {
  const { clock, lockouts } = setUp()
  const rule = lockRule({ after: 2 })
  const bytes = await retainedBytes(async () => {
    for (let index = 0; index < 20_000; index++) {
      await lockouts.attempt('key', rule)
      clock.now += await lockouts.look('key', rule)
    }
  })
  t.ok(bytes < 300_000, `${bytes}`)
})

t.test('an attempt is refunded once, and one that was not counted never', async t => {
  const { lockouts } = setUp()
  const rule = lockRule({ after: 3 })
  await lockouts.attempt('key', rule)
  const counted = await lockouts.attempt('key', rule)
  await lockouts.refund('key', rule, counted)
  await lockouts.refund('key', rule, counted)
  await lockouts.refund('key', rule, { id: 'unknown', locks: 0 })
  await lockouts.attempt('key', rule)
  const last = await lockouts.attempt('key', rule)
  t.ok(last.lockMs > 0, 'two failures before it')
  const late = await lockouts.attempt('key', rule)
  t.ok(late.waitMs > 0)
  await lockouts.refund('key', rule, late)
  t.ok((await lockouts.look('key', rule)) > 0, 'an attempt at a lock does not open it')
})

t.test('of an address without sign-ins no place is kept', async t => {
  const { lockouts } = setUp()
  const rule = lockRule({ after: 2 })
  const bytes = await retainedBytes(async () => {
    for (let index = 0; index < 20_000; index++) {
      const { place = '' } = await lockouts.admit(`key ${index}`, rule)
      await lockouts.settle(`key ${index}`, rule, place, false)
    }
  })
  t.ok(bytes < 300_000, `${bytes}`)
})

t.test('an attempt whose count was lost is refunded with the lock that it caused', async t => {
  const { lockouts } = setUp()
  const rule = lockRule({ after: 2 })
  await lockouts.attempt('key', rule)
  const { id } = await lockouts.attempt('key', rule)
  t.ok((await lockouts.look('key', rule)) > 0)
  await lockouts.refund('key', rule, { id, locks: undefined })
  t.equal(await lockouts.look('key', rule), 0)
  t.ok((await lockouts.attempt('key', rule)).lockMs > 0, 'the other failure counts')
})

t.test('however many names are made up, memory is bounded, and the locked ones stay', async t => {
  const { lockouts } = setUp()
  const max = 100_000
  const [hard, soft] = [lockRule({ after: 1 }), lockRule({ after: 9 })]
  await lockouts.attempt('locked', hard)
  await lockouts.attempt('failed once', lockRule({ after: 2 }))
  for (let index = 2; index < max; index++) await lockouts.attempt(`soft ${index}`, soft)
  t.match(await lockouts.attempt('one more', soft), { waitMs: 0 })
  t.ok((await lockouts.look('locked', hard)) > 0)
  t.equal((await lockouts.attempt('failed once', lockRule({ after: 2 }))).lockMs, 0, 'it gave way')
  for (let index = 3; index < max; index++) await lockouts.attempt(`hard ${index}`, hard)
  for (let index = 0; index < 5; index++) await lockouts.attempt(`last ${index}`, hard)
  await lockouts.attempt('of all', hard)
  t.ok((await lockouts.look('of all', hard)) > 0)
})

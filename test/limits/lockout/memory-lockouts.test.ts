/** Lockouts in memory: their bounds, and what goes to another process. */
import t from 'tap'
import { createMemoryLockouts } from '../../../src/limits/lockout/memory-lockouts.ts'
import type { Entry } from '../../../src/movable-state.ts'
import { lockRule } from '../../suites/lockouts.ts'

const minute = 60_000
const start = 1_700_000_000_000

function setUp() {
  const clock = { now: start }
  const open = () => createMemoryLockouts(() => clock.now)
  return { clock, open, lockouts: open() }
}

type Lockouts = ReturnType<typeof createMemoryLockouts>

/** As at a restart: by JSON. */
function move(from: Lockouts, to: Lockouts): void {
  for (const entry of JSON.parse(JSON.stringify([...from.entries()])) as Entry[]) to.load(entry)
}

t.test('locks, failures, refunds and places go on in another process', async t => {
  const { open, lockouts } = setUp()
  const rule = lockRule({ after: 2 })
  await lockouts.attempt('locked', rule)
  await lockouts.attempt('locked', rule)
  const counted = await lockouts.attempt('one', rule)
  const { place = '' } = await lockouts.admit('places', rule)
  await lockouts.admit('places', rule)
  const next = open()
  move(lockouts, next)
  t.same(await next.list(), await lockouts.list())
  t.ok((await next.look('locked', rule)) > 0)
  t.match(await next.admit('places', rule), { place: undefined }, 'both are taken')
  await next.settle('places', rule, place, false)
  t.match(await next.admit('places', rule), { place: String })
  const other = await next.attempt('one', rule)
  t.not(other.id, counted.id, 'no id is given twice')
  t.ok(other.lockMs > 0, 'the failure of before counts')
  await next.refund('one', rule, counted)
  t.equal(await next.look('one', rule), 0)
})

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
  for (let index = 0; index < 20; index++) {
    await lockouts.attempt('key', rule)
    clock.now += await lockouts.look('key', rule)
  }
  const kept = [...lockouts.entries()].find(([table]) => table === 'states')?.[2]
  t.match(kept, { attempts: { length: 4 } })
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
  const places = () => [...lockouts.entries()].filter(([table]) => table === 'places').length
  const { place = '' } = await lockouts.admit('key', rule)
  t.equal(places(), 1)
  await lockouts.settle('key', rule, place, false)
  t.equal(places(), 0)
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
  const size = () => [...lockouts.entries()].filter(([table]) => table === 'states').length
  for (let index = size(); index < max; index++) await lockouts.attempt(`soft ${index}`, soft)
  t.equal(size(), max)
  t.match(await lockouts.attempt('one more', soft), { waitMs: 0 })
  t.equal(size(), 2, 'those that are not locked gave way')
  t.ok((await lockouts.look('locked', hard)) > 0)
  t.equal((await lockouts.attempt('failed once', lockRule({ after: 2 }))).lockMs, 0)
  for (let index = size(); index < max; index++) await lockouts.attempt(`hard ${index}`, hard)
  for (let index = 0; index < 5; index++) await lockouts.attempt(`last ${index}`, hard)
  await lockouts.attempt('of all', hard)
  t.ok(size() <= max)
  t.ok((await lockouts.look('of all', hard)) > 0)
})

/** Limits and lockouts in memory while the wall clock is set. */
import t from 'tap'
import { createMemoryCounters } from '../../src/limits/counting/counters.ts'
import { createMemoryTally } from '../../src/limits/counting/memory-tally.ts'
import { createMemoryLockouts } from '../../src/limits/lockout/memory-lockouts.ts'
import { lockRule } from '../suites/lockouts.ts'
import { rule } from '../suites/tally.ts'
import { wallClock } from '../support/clock.ts'

const minute = 60_000
const hour = 60 * minute

for (const [name, step] of [
  ['an hour ahead', hour],
  ['an hour back', -hour]
] as const) {
  t.test(
    `set ${name}, the clock neither ends nor prolongs a window of sign-in attempts`,
    async t => {
      const setClock = wallClock(t.after)
      const counters = createMemoryCounters()
      t.after(() => counters.close())
      await counters.hit('key', 10 * minute)
      setClock(step)
      const { current, ttl } = await counters.hit('key', 10 * minute)
      t.equal(current, 2)
      t.ok(ttl > 9 * minute && ttl <= 10 * minute, `${ttl}`)
      const looked = await counters.look('key')
      t.equal(looked.current, 2)
      t.ok(looked.ttl <= 10 * minute, `${looked.ttl}`)
    }
  )

  for (const kind of ['fixed', 'sliding', 'bucket'] as const) {
    t.test(`set ${name}, the clock neither ends nor prolongs a ${kind} window`, async t => {
      const setClock = wallClock(t.after)
      const tally = createMemoryTally()
      const limit = rule({ kind, max: 2, windowMs: 10 * minute, burst: 2 })
      const entries = [{ rule: limit, key: 'key', unreported: 0 }]
      await tally.consume(entries)
      await tally.consume(entries)
      setClock(step)
      const [verdict] = await tally.consume(entries)
      t.equal(verdict?.exceeded, true)
      t.ok((verdict?.retryMs ?? 0) <= 11 * minute, `${verdict?.retryMs}`)
      t.ok((verdict?.resetMs ?? 0) <= 11 * minute, `${verdict?.resetMs}`)
    })
  }

  t.test(
    `set ${name}, the clock neither ends nor prolongs a lock, which is listed by it`,
    async t => {
      const setClock = wallClock(t.after)
      const lockouts = createMemoryLockouts()
      const lock = lockRule({ after: 1, delayMs: 10 * minute, maxDelayMs: hour })
      await lockouts.attempt('key', lock)
      setClock(step)
      const waitMs = await lockouts.look('key', lock)
      t.ok(waitMs > 9 * minute && waitMs <= 10 * minute, `${waitMs}`)
      const { waitMs: refusedFor } = await lockouts.admit('key', lock)
      t.ok(refusedFor > 9 * minute && refusedFor <= 10 * minute, `${refusedFor}`)
      const [listed] = await lockouts.list()
      const left = (listed?.until ?? 0) - Date.now()
      t.ok(left > 9 * minute && left <= 10 * minute, `shown to end in ${left} ms`)
    }
  )

  t.test(`set ${name}, the clock neither forgets failures nor frees places`, async t => {
    const setClock = wallClock(t.after)
    const lockouts = createMemoryLockouts()
    const lock = lockRule({ after: 2, withinMs: 10 * minute })
    await lockouts.admit('places', lock)
    await lockouts.admit('places', lock)
    await lockouts.attempt('failures', lock)
    setClock(step)
    t.match(await lockouts.admit('places', lock), { place: undefined })
    const { lockMs } = await lockouts.attempt('failures', lock)
    t.ok(lockMs > 0, 'the second failure locks')
  })
}

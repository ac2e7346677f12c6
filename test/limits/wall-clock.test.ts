/** Limits and lockouts in memory while the wall clock is set. */
import t from 'tap'
import { createMemoryLockouts } from '../../src/limits/lockouts.ts'
import { SharedCounts } from '../../src/limits/shared-counts.ts'
import { bucketOf } from '../suites/lockouts.ts'
import { wallClock } from '../support/clock.ts'

const minute = 60_000
const hour = 60 * minute

for (const [name, step] of [
  ['an hour ahead', hour],
  ['an hour back', -hour]
] as const) {
  t.test(`set ${name}, the clock neither ends nor prolongs a window`, async t => {
    const setClock = wallClock(t.after)
    const counts = new SharedCounts(undefined)
    const rate = { max: 2, windowMs: 10 * minute, burst: 2 }
    for (let index = 0; index < 2; index++) await counts.hit('u:1 limit', rate)
    setClock(step)
    const { exceeded, retryMs, resetMs } = await counts.hit('u:1 limit', rate)
    t.equal(exceeded, true)
    t.ok(retryMs > 4 * minute && retryMs <= 5 * minute, `${retryMs}`)
    t.ok(resetMs > 9 * minute && resetMs <= 10 * minute, `${resetMs}`)
  })

  t.test(`set ${name}, the clock neither ends nor prolongs a lock, which is listed`, async t => {
    const setClock = wallClock(t.after)
    const lockouts = createMemoryLockouts()
    const bucket = bucketOf('key', 1, 10 * minute)
    await lockouts.take([bucket])
    setClock(step)
    const { isTaken, waitMs } = await lockouts.take([bucket])
    t.equal(isTaken, false)
    t.ok((waitMs[0] ?? 0) > 9 * minute && (waitMs[0] ?? 0) <= 10 * minute, waitMs.join())
    const [listed] = await lockouts.list()
    t.ok(Math.abs((listed?.waitMs ?? 0) - (waitMs[0] ?? 0)) < minute, `${listed?.waitMs}`)
  })

  t.test(`set ${name}, the clock forgets no failures`, async t => {
    const setClock = wallClock(t.after)
    const lockouts = createMemoryLockouts()
    const bucket = bucketOf('key', 2, 10 * minute)
    await lockouts.take([bucket])
    setClock(step)
    const { waitMs } = await lockouts.take([bucket])
    t.ok((waitMs[0] ?? 0) > 0, 'the second failure locks')
  })
}

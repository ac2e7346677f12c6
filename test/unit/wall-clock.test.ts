/** Limits and lockouts in memory while the wall clock is set. */
import t from 'tap'
import { createMemoryLockouts } from '../../src/limits/lockouts.ts'
import { SharedCounts } from '../../src/limits/shared-counts.ts'
import { bucketOf } from '../ports/lockouts.ts'
import { wallClock } from '../support/clock.ts'

const minute = 60_000
const windowMs = 10 * minute

for (const [name, step] of [
  ['an hour ahead', 60 * minute],
  ['an hour back', -60 * minute]
] as const) {
  t.test(`set ${name}, the clock ends, prolongs and forgets no window and no lock`, async t => {
    const setClock = wallClock(t.after)
    const counts = new SharedCounts(undefined)
    const lockouts = createMemoryLockouts()
    const rate = { max: 2, windowMs, burst: 2 }
    const [one, two] = [bucketOf('one', 1, windowMs), bucketOf('two', 2, windowMs)]
    for (let index = 0; index < 2; index++) await counts.hit('u:1 limit', rate)
    for (const bucket of [one, two]) await lockouts.take([bucket])
    setClock(step)

    const { exceeded, retryMs, resetMs } = await counts.hit('u:1 limit', rate)
    t.equal(exceeded, true)
    t.ok(retryMs > 4 * minute && retryMs <= 5 * minute, `${retryMs}`)
    t.ok(resetMs > 9 * minute && resetMs <= windowMs, `${resetMs}`)

    const { isTaken, waitMs } = await lockouts.take([one])
    const [wait = 0] = waitMs
    t.equal(isTaken, false)
    t.ok(wait > 9 * minute && wait <= windowMs, `${wait}`)
    const [listed] = await lockouts.list()
    t.ok(Math.abs((listed?.waitMs ?? 0) - wait) < minute, 'it is listed')
    const [second = 0] = (await lockouts.take([two])).waitMs
    t.ok(second > 0, 'the second failure locks')
  })
}

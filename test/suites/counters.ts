/** What counters of limits promise; run once for each adapter. */
import type { Test } from 'tap'
import type { Counters } from '../../src/limits/counting/counters.ts'

let keys = 0
const minute = 60_000
const hour = 60 * minute
const freshKey = () => `contract-${process.pid}-${++keys}`

/** @param pass lets so much time pass on the counters' own clock */
export function countersContract(
  t: Test,
  counters: Counters,
  pass: (ms: number) => Promise<void>
): void {
  const hits = async (key: string, times: number, windowMs = hour) => {
    const counts: number[] = []
    for (let index = 0; index < times; index++) {
      counts.push((await counters.hit(key, windowMs)).current)
    }
    return counts
  }

  t.test('each hit counts one, from one on', async t => {
    t.same(await hits(freshKey(), 4), [1, 2, 3, 4])
  })

  t.test('keys are counted apart, also such as look alike', async t => {
    const key = freshKey()
    for (const other of [
      key,
      `${key} `,
      key.toUpperCase(),
      `${key}:1`,
      `${key}\u0000`,
      `${key}💡`,
      '__proto__',
      'constructor'
    ]) {
      t.same(await hits(other, 2), [1, 2], JSON.stringify(other))
    }
  })

  t.test('the window starts with the first hit and no later one makes it longer', async t => {
    const key = freshKey()
    const first = await counters.hit(key, hour)
    t.ok(first.ttl > hour - minute && first.ttl <= hour, `${first.ttl}`)
    await pass(10 * minute)
    const second = await counters.hit(key, hour)
    t.ok(second.ttl <= first.ttl - 10 * minute, `${first.ttl} → ${second.ttl}`)
  })

  t.test('a window that a reload shortens ends in time, and keeps its count', async t => {
    const key = freshKey()
    await hits(key, 2)
    const { current, ttl } = await counters.hit(key, minute)
    t.equal(current, 3)
    t.ok(ttl > 0 && ttl <= minute, `${ttl}`)
    await pass(minute + 1)
    t.equal((await counters.hit(key, minute)).current, 1)
  })

  t.test('a window that a reload makes longer ends when it would have', async t => {
    const key = freshKey()
    await counters.hit(key, minute)
    const { current, ttl } = await counters.hit(key, hour)
    t.equal(current, 2)
    t.ok(ttl > 0 && ttl <= minute, `${ttl}`)
  })

  t.test('when the window is over, counting begins anew', async t => {
    const key = freshKey()
    t.same(await hits(key, 3), [1, 2, 3])
    await pass(hour + 1)
    const { current, ttl } = await counters.hit(key, hour)
    t.equal(current, 1)
    t.ok(ttl > 0 && ttl <= hour)
  })

  t.test('what is given back may be hit again, in the same window', async t => {
    const key = freshKey()
    await hits(key, 3)
    await counters.refund(key)
    t.same(await hits(key, 1), [3])
    await counters.refund(key)
    await counters.refund(key)
    t.same(await hits(key, 1), [2])
    t.ok((await counters.hit(key, hour)).ttl > 0)
  })

  t.test('looking counts nothing, and what is forgotten counts anew', async t => {
    const key = freshKey()
    t.same(await counters.look(key), { current: 0, ttl: 0 })
    await hits(key, 3)
    const { current, ttl } = await counters.look(key)
    t.equal(current, 3)
    t.ok(ttl > 0 && ttl <= hour)
    await counters.forget(key)
    t.same(await counters.look(key), { current: 0, ttl: 0 })
    t.same(await hits(key, 1), [1])
  })

  t.test('giving back never goes below nothing, so that nobody can save up attempts', async t => {
    const key = freshKey()
    for (let index = 0; index < 5; index++) await counters.refund(key)
    t.same(await hits(key, 1), [1])
    for (let index = 0; index < 5; index++) await counters.refund(key)
    t.same(await hits(key, 2), [1, 2])
  })

  t.test('giving back after the window is over gives nothing', async t => {
    const key = freshKey()
    await hits(key, 2)
    await pass(hour + 1)
    await counters.refund(key)
    t.same(await hits(key, 2), [1, 2])
  })

  t.test('a hit of an earlier window gives nothing back in this one', async t => {
    const key = freshKey()
    const before = await counters.hit(key, minute)
    await pass(minute + 1)
    const [first, second] = [await counters.hit(key, hour), await counters.hit(key, hour)]
    await counters.refund(key, before)
    t.same(await hits(key, 1), [3])
    await counters.refund(key, first)
    await counters.refund(key, second)
    t.same(await hits(key, 1), [2], 'those of this one do')
  })

  t.test('a hit is given back in a window that a reload has shortened since', async t => {
    const key = freshKey()
    const before = await counters.hit(key, hour)
    await counters.hit(key, minute)
    await counters.refund(key, before)
    t.same(await hits(key, 1, minute), [2])
  })

  t.test('of 200 hits at once each gets a number of its own, and none is lost', async t => {
    const key = freshKey()
    const counts = await Promise.all(Array.from({ length: 200 }, () => counters.hit(key, hour)))
    t.same(
      counts.map(({ current }) => current).toSorted((a, b) => a - b),
      Array.from({ length: 200 }, (_, index) => index + 1)
    )
    t.ok(counts.every(({ ttl }) => ttl > 0 && ttl <= hour))
  })

  t.test('hits and what is given back at once add up', async t => {
    const key = freshKey()
    await hits(key, 100)
    await Promise.all(
      Array.from({ length: 100 }, (_, index) =>
        index % 2 === 0 ? counters.hit(key, hour) : counters.refund(key)
      )
    )
    t.same(await hits(key, 1), [101])
  })
}

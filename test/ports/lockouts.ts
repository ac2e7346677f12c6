/** What lockouts promise; run once for each adapter. */
import type { Test } from 'tap'
import type { Bucket, Lockouts, Taken } from '../../src/limits/lockouts.ts'

const minute = 60_000
let keys = 0
const freshKey = () => `account contract-${process.pid}-${++keys}`

/** Three failures at once, and one more each minute. */
export const bucketOf = (key: string, failures = 3, everyMs = minute): Bucket => ({
  key,
  rate: { max: 1, windowMs: everyMs, burst: failures }
})

/** @param pass lets so much time pass on the lockouts' own clock */
export function lockoutsContract(
  t: Test,
  lockouts: Lockouts,
  pass: (ms: number) => Promise<void> | void
): void {
  /** @returns the minutes of each refusal; 0 where the password may be looked at */
  const fail = async (bucket: Bucket, times: number) =>
    await Array.fromAsync({ length: times }, async () => minutes(await lockouts.take([bucket])))
  const listed = async (...of: Bucket[]) =>
    (await lockouts.list()).map(({ key }) => key).filter(each => of.some(({ key }) => key === each))

  t.test('so many failures at once, then one more each time; each wait ends by itself', async t => {
    const bucket = bucketOf(freshKey())
    t.same(await fail(bucket, 4), [0, 0, 0, 1])
    t.same(await fail(bucket, 50), Array(50).fill(1), 'what is tried meanwhile makes it no longer')
    for (let round = 0; round < 3; round++) {
      await pass(minute)
      t.same(await fail(bucket, 2), [0, 1])
    }
    await pass(2 * minute)
    t.same(await fail(bucket, 3), [0, 0, 1])
    await pass(60 * minute)
    t.same(await fail(bucket, 4), [0, 0, 0, 1], 'nothing is saved up')
  })

  t.test('of several buckets all are taken from, or where one is used up none', async t => {
    const [one, other] = [bucketOf(freshKey(), 2), bucketOf(freshKey(), 3, 10 * minute)]
    t.equal(minutes(await lockouts.take([one, other])), 0)
    t.same(await fail(one, 1), [0])
    const refused = await lockouts.take([other, one])
    t.same([refused.isTaken, refused.waitMs[0]], [false, 0])
    t.equal(minutes(refused), 1)
    t.same(await fail(other, 3), [0, 0, 10], 'that one was not taken from')
    await pass(minute)
    t.equal(minutes(await lockouts.take([one, other])), 9)
    t.same(await fail(one, 1), [0])
  })

  t.test('one that was no failure is given back, with the lock that it made', async t => {
    const bucket = bucketOf(freshKey())
    await fail(bucket, 2)
    const last = await lockouts.take([bucket])
    t.ok(last.isTaken)
    t.ok((last.waitMs[0] ?? 0) > 0, 'it uses the bucket up')
    t.same(await listed(bucket), [bucket.key])
    await lockouts.giveBack([bucket], last)
    t.same(await listed(bucket), [])
    t.same(await fail(bucket, 2), [0, 1], 'the failures of before still count')
    const full = bucketOf(freshKey())
    await fail(full, 2)
    for (let round = 0; round < 4; round++) {
      await pass(minute / 2)
      await lockouts.giveBack([full], await lockouts.take([full]))
    }
    const right = await lockouts.take([full])
    for (let times = 0; times < 3; times++) await lockouts.giveBack([full], right)
    t.same(await fail(full, 4), [0, 0, 0, 1], 'nothing is prolonged, and nothing saved up')
  })

  t.test('at the same time no more go on than may, and a right one undoes only itself', async t => {
    const [bucket, other] = [bucketOf(freshKey()), bucketOf(freshKey(), 100)]
    const all = await Promise.all(Array.from({ length: 20 }, () => lockouts.take([other, bucket])))
    const went = all.filter(({ isTaken }) => isTaken)
    t.equal(went.length, 3)
    await lockouts.giveBack([other, bucket], went[0] as Taken)
    t.same(await fail(bucket, 2), [0, 1])
  })

  t.test('who is locked out is listed, the first to end first; lifting ends it', async t => {
    const [one, other, free] = [
      bucketOf(freshKey(), 1, 20 * minute),
      bucketOf(freshKey(), 1, 10 * minute),
      bucketOf(freshKey(), 2)
    ] as const
    for (const bucket of [one, other, free]) await fail(bucket, 1)
    t.same(await listed(one, other, free), [other.key, one.key])
    const lock = (await lockouts.list()).find(({ key }) => key === one.key)
    t.ok(Math.abs((lock?.waitMs ?? 0) - 20 * minute) < 5000, `${lock?.waitMs}`)
    await lockouts.lift([other.key, free.key])
    t.same(await listed(one, other, free), [one.key])
    t.same(await fail(other, 2), [0, 10], 'as if nothing had been')
    t.same(await fail(free, 3), [0, 0, 1], 'failures that locked nobody are forgotten too')
    await lockouts.lift([])
    await pass(20 * minute)
    t.same(await listed(one, other, free), [])
  })

  t.test('nobody waits longer than a new rule says', async t => {
    const key = freshKey()
    await fail(bucketOf(key, 50, 15 * minute), 50)
    t.same(await fail(bucketOf(key, 5), 1), [1])
    await pass(minute)
    t.same(await fail(bucketOf(key, 5), 2), [0, 1])
  })

  t.test('keys are counted apart, also such as look alike or have braces', async t => {
    const key = freshKey()
    for (const other of ['', ' ', ':1', '\u0000', '💡', '{', '}', '{}', 'a{b}c', '}{', '{{x}}']) {
      t.same(await fail(bucketOf(key + other), 4), [0, 0, 0, 1], JSON.stringify(other))
    }
    for (const name of ['__proto__', 'constructor', '']) {
      t.same(await fail(bucketOf(name), 4), [0, 0, 0, 1], name)
    }
  })

  t.test('times may be as long as config allows', async t => {
    const bucket = bucketOf(freshKey(), 100_000, 400 * 24 * 60 * minute)
    t.same(await fail(bucket, 2), [0, 0])
    const short = bucketOf(freshKey(), 1, 400 * 24 * 60 * minute)
    t.same(await fail(short, 2), [0, 400 * 24 * 60])
  })
}

const minutes = ({ isTaken, waitMs }: Taken) =>
  isTaken ? 0 : Math.round(Math.max(...waitMs) / minute)

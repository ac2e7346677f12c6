/** What lockouts promise; run once for each adapter. */
import type { Test } from 'tap'
import type { LockoutRule, Lockouts } from '../../src/limits/lockout/lockout.ts'

const minute = 60_000
let keys = 0
const freshKey = () => `account:contract-${process.pid}-${++keys}`

export const lockRule = (given: Partial<LockoutRule> = {}): LockoutRule => ({
  after: 3,
  withinMs: 10 * minute,
  delayMs: minute,
  maxDelayMs: 15 * minute,
  forgetMs: 24 * 60 * minute,
  strict: true,
  ...given
})

/** @param pass lets so much time pass on the lockouts' own clock */
export function lockoutsContract(t: Test, lockouts: Lockouts, pass: (ms: number) => void): void {
  const fail = async (key: string, times: number, rule = lockRule()) => {
    const waits: number[] = []
    for (let index = 0; index < times; index++) {
      waits.push((await lockouts.attempt(key, rule)).waitMs)
    }
    return waits
  }

  t.test(
    'so many failures lock; each further lock is twice as long, up to the longest, and each ends by itself',
    async t => {
      const key = freshKey()
      t.same(await fail(key, 4), [0, 0, 0, minute])
      for (const minutes of [2, 4, 8, 15, 15]) {
        const [waitMs = 0] = await fail(key, 1)
        pass(waitMs)
        t.same(await fail(key, 2), [0, minutes * minute])
      }
    }
  )

  t.test('looking counts nothing', async t => {
    const key = freshKey()
    for (let index = 0; index < 10; index++) t.equal(await lockouts.look(key, lockRule()), 0)
    await fail(key, 3)
    t.equal(await lockouts.look(key, lockRule()), minute)
    pass(minute)
    t.equal(await lockouts.look(key, lockRule()), 0)
  })

  t.test('what is tried while it is locked makes the lock no longer', async t => {
    const key = freshKey()
    await fail(key, 3)
    pass(minute / 2)
    t.same(await fail(key, 50), Array(50).fill(minute / 2))
    pass(minute / 2)
    t.same(await fail(key, 1), [0])
  })

  t.test('failures are forgotten, and later that there was a lock', async t => {
    const key = freshKey()
    await fail(key, 2)
    pass(10 * minute)
    t.same(await fail(key, 4), [0, 0, 0, minute], 'the two of before do not count')
    pass(11 * minute)
    t.same(await fail(key, 4), [0, 0, 0, 2 * minute], 'but the lock does')
    pass(25 * 60 * minute)
    t.same(await fail(key, 4), [0, 0, 0, minute])
  })

  t.test('the time in which failures count begins with the first of them', async t => {
    const key = freshKey()
    await fail(key, 1)
    pass(9 * minute)
    await fail(key, 1)
    pass(minute)
    t.same(await fail(key, 4), [0, 0, 0, minute], 'the second did not prolong it')
  })

  t.test('where many share what is locked, it takes as many failures each time', async t => {
    const key = freshKey()
    t.same(await fail(key, 4, lockRule({ strict: false })), [0, 0, 0, minute])
    pass(minute)
    t.same(await fail(key, 4, lockRule({ strict: false })), [0, 0, 0, 2 * minute])
  })

  t.test('an attempt that was no failure is taken back, with the lock that it made', async t => {
    const key = freshKey()
    await fail(key, 2)
    const last = await lockouts.attempt(key, lockRule())
    t.match(last, { waitMs: 0, lockMs: minute })
    t.ok((await lockouts.list()).some(ban => ban.key === key))
    await lockouts.refund(key, lockRule(), last)
    t.notOk((await lockouts.list()).some(ban => ban.key === key))
    t.same(await fail(key, 2), [0, minute], 'the failures of before still count')
  })

  t.test('a lock that is taken back does not make the next one shorter', async t => {
    const key = freshKey()
    await fail(key, 3)
    pass(minute)
    const right = await lockouts.attempt(key, lockRule())
    t.match(right, { locks: 1, lockMs: 2 * minute })
    await lockouts.refund(key, lockRule(), right)
    t.same(await fail(key, 2), [0, 2 * minute])
    pass(2 * minute)
    await lockouts.refund(key, lockRule(), await lockouts.attempt(key, lockRule()))
    pass(11 * minute)
    t.same(await fail(key, 4), [0, 0, 0, 4 * minute], 'nor is it forgotten with the failures')
  })

  t.test('right passwords prolong the memory neither of failures nor of locks', async t => {
    const [one, other] = [freshKey(), freshKey()]
    const signIn = async (key: string, everyMs: number, times: number) => {
      for (let time = 0; time < times; time++) {
        pass(everyMs)
        await lockouts.refund(key, lockRule(), await lockouts.attempt(key, lockRule()))
      }
    }
    await fail(one, 3)
    await signIn(one, 5 * minute, 3)
    t.same(await fail(one, 4), [0, 0, 0, 2 * minute], 'the failures are forgotten')
    await fail(other, 3)
    await signIn(other, 9 * minute, (25 * 60) / 9)
    t.same(await fail(other, 4), [0, 0, 0, minute], 'and the lock a day later')
  })

  t.test(
    'of attempts at the same time no more go on than may, and one that was right undoes only itself',
    async t => {
      const key = freshKey()
      const all = await Promise.all(
        Array.from({ length: 20 }, () => lockouts.attempt(key, lockRule()))
      )
      const went = all.filter(({ waitMs }) => waitMs === 0)
      t.equal(went.length, 3)
      await lockouts.refund(key, lockRule(), went[0] as (typeof all)[number])
      t.same(await fail(key, 2), [0, minute])
    }
  )

  t.test('a give-back that comes late does not open a later lock', async t => {
    const key = freshKey()
    const slow = await lockouts.attempt(key, lockRule())
    t.same(await fail(key, 3), [0, 0, minute])
    pass(minute)
    t.same(await fail(key, 2), [0, 2 * minute])
    await lockouts.refund(key, lockRule(), slow)
    t.same(await fail(key, 1), [2 * minute])
  })

  t.test('a lock of right passwords alone leaves nothing, also when it is over', async t => {
    const key = freshKey()
    const attempts = []
    for (let index = 0; index < 3; index++) attempts.push(await lockouts.attempt(key, lockRule()))
    pass(minute + 1)
    for (const attempt of attempts) await lockouts.refund(key, lockRule(), attempt)
    t.same(await fail(key, 4), [0, 0, 0, minute])
  })

  t.test('a lock that is taken back when it is over does not make the next one longer', async t => {
    const key = freshKey()
    await fail(key, 2)
    const right = await lockouts.attempt(key, lockRule())
    pass(2 * minute)
    await lockouts.refund(key, lockRule(), right)
    t.same(await fail(key, 2), [0, minute], 'the failures of before still count')
  })

  t.test('nothing is saved up by giving back', async t => {
    const key = freshKey()
    for (let index = 0; index < 5; index++) {
      const attempt = await lockouts.attempt(key, lockRule())
      for (let more = 0; more < 3; more++) await lockouts.refund(key, lockRule(), attempt)
    }
    t.same(await fail(key, 4), [0, 0, 0, minute])
  })

  t.test(
    'who is locked is listed until the lock ends; lifting ends it at once, and forgets',
    async t => {
      const [one, other, free] = [freshKey(), freshKey(), freshKey()]
      await fail(one, 3)
      await fail(other, 3)
      await fail(free, 2)
      const listed = async () =>
        (await lockouts.list())
          .map(({ key }) => key)
          .filter(key => [one, other, free].includes(key))
      t.same((await listed()).toSorted(), [one, other].toSorted())
      await lockouts.lift([one, free])
      t.same(await listed(), [other])
      t.same(await fail(one, 4), [0, 0, 0, minute], 'as if nothing had been')
      pass(20 * minute)
      t.same(await listed(), [])
    }
  )

  t.test(
    'as many passwords are evaluated at the same time as failures are left; what fails takes its place for good',
    async t => {
      const key = freshKey()
      const admitted = async (rule = lockRule()) => (await lockouts.admit(key, rule)).place
      const places = [await admitted(), await admitted(), await admitted()]
      t.equal(new Set(places).size, 3)
      t.same(
        await lockouts.admit(key, lockRule()),
        { place: undefined, waitMs: 0 },
        'all places are taken'
      )
      t.equal(await lockouts.settle(key, lockRule(), places[0] ?? '', false), 0)
      const again = await admitted()
      t.ok(again, 'a right one gives its place back')
      t.equal(await lockouts.settle(key, lockRule(), again ?? '', true), 0)
      t.equal(await admitted(), undefined, 'a wrong one does not')
      t.same(
        [
          await lockouts.settle(key, lockRule(), places[1] ?? '', true),
          await lockouts.settle(key, lockRule(), places[2] ?? '', true)
        ],
        [0, minute]
      )
      t.same(await lockouts.admit(key, lockRule()), { place: undefined, waitMs: minute })
      pass(minute)
      t.ok(await admitted(lockRule({ strict: false })))
    }
  )

  t.test('where a new rule allows fewer failures than there were, the next one locks', async t => {
    const key = freshKey()
    const settle = async (after: number) => {
      const rule = lockRule({ after })
      const { place } = await lockouts.admit(key, rule)
      t.ok(place)
      return await lockouts.settle(key, rule, place ?? '', true)
    }
    for (let index = 0; index < 6; index++) t.equal(await settle(20), 0)
    const { place } = await lockouts.admit(key, lockRule({ after: 5 }))
    t.ok(place, 'a password is checked, though five failed')
    const second = await lockouts.admit(key, lockRule({ after: 5 }))
    t.same(second, { place: undefined, waitMs: 0 }, 'one at a time')
    await lockouts.settle(key, lockRule({ after: 5 }), place ?? '', false)
    t.equal(await settle(5), minute)
  })

  t.test('a place whose owner never settled is free again after two minutes', async t => {
    const key = freshKey()
    for (let index = 0; index < 3; index++) await lockouts.admit(key, lockRule())
    pass(2 * minute - 1)
    t.equal((await lockouts.admit(key, lockRule())).place, undefined)
    pass(1)
    t.ok((await lockouts.admit(key, lockRule())).place)
  })

  t.test('an attempt that was not counted here cannot be given back', async t => {
    const key = freshKey()
    await fail(key, 2)
    for (const locks of [0, undefined]) {
      await lockouts.refund(key, lockRule(), { id: 'of another', locks })
    }
    t.same(await fail(key, 2), [0, minute])
  })

  t.test(
    'names with braces, which a Cluster takes for a mark, are counted as all others',
    async t => {
      for (const name of ['{', '}', '{}', 'a{b}c', '}{', '{{x}}']) {
        const key = `${freshKey()}${name}`
        t.same(await fail(key, 4), [0, 0, 0, minute], name)
      }
    }
  )
}

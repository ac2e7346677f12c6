/** What every session store promises; run once for each adapter. */
import type { Test } from 'tap'
import { identityKey } from '../../src/session/identity-key.ts'
import { tombstoneMark, type SessionStore } from '../../src/session/store.ts'

let keys = 0
const minute = 60_000
const hour = 60 * minute
const freshKey = () => `contract-${process.pid}-${++keys}`

/**
 * @param pass lets so much time pass on the store's own clock
 * @param clock what it reads
 */
export function sessionStoreContract(
  t: Test,
  store: SessionStore,
  pass: (ms: number) => Promise<void>,
  clock: () => number
): void {
  t.test('a record is read as it was written, with the time it has left', async t => {
    const key = freshKey()
    await store.create(key, '{"a":"ü\u0000💡"}', hour)
    const found = await store.read(key)
    t.equal(found?.record, '{"a":"ü\u0000💡"}')
    t.ok(found !== undefined && found.ttlMs > hour - minute && found.ttlMs <= hour, 'time left')
  })

  t.test('what was never written is not there', async t => {
    t.equal(await store.read(freshKey()), undefined)
  })

  t.test('a record is never written over', async t => {
    const key = freshKey()
    await store.create(key, '{"first":1}', hour)
    await t.rejects(store.create(key, '{"second":2}', hour), { code: 'session.unavailable' })
    t.equal((await store.read(key))?.record, '{"first":1}')
  })

  t.test('a record is gone when its time is up', async t => {
    const key = freshKey()
    await store.create(key, '{}', minute)
    await pass(minute + 1)
    t.equal(await store.read(key), undefined)
  })

  t.test('a touch sets the time left and changes nothing else', async t => {
    const key = freshKey()
    await store.create(key, '{"same":1}', hour)
    await store.touch(key, 9 * hour, 0)
    const found = await store.read(key)
    t.equal(found?.record, '{"same":1}')
    t.ok(found !== undefined && found.ttlMs > 8 * hour && found.ttlMs <= 9 * hour, 'time left')
  })

  t.test('a touch never brings a record into being', async t => {
    const key = freshKey()
    await store.touch(key, hour, 0)
    t.equal(await store.read(key), undefined)
  })

  t.test('a touch leaves alone what has no more left than it names', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    await store.touch(key, 9 * hour, hour)
    t.ok((await store.read(key))!.ttlMs <= hour, 'too late')
    await store.touch(key, 9 * hour, minute)
    t.ok((await store.read(key))!.ttlMs > 8 * hour, 'in time')
  })

  t.test('a touch tells whether it set the time left', async t => {
    const key = freshKey()
    t.equal(await store.touch(key, hour, 0), false, 'nothing is there')
    await store.create(key, '{}', hour)
    t.equal(await store.touch(key, 2 * hour, hour), false, 'too late')
    t.equal(await store.touch(key, 2 * hour, minute), true)
  })

  t.test('of touches after use, one counts after each other touch', async t => {
    const key = freshKey()
    t.equal(await store.touchAfterUse(key, 2 * hour, 0), false, 'nothing is there')
    await store.create(key, '{}', hour)
    t.equal(await store.touchAfterUse(key, 2 * hour, hour), false, 'too late')
    const both = [1, 2].map(async () => await store.touchAfterUse(key, 2 * hour, minute))
    t.same((await Promise.all(both)).toSorted(), [false, true], 'its creation was use')
    await pass(minute)
    t.equal(await store.touchAfterUse(key, 3 * hour, minute), false)
    t.ok((await store.read(key))!.ttlMs <= 2 * hour - minute, 'nothing was set')
    t.equal(await store.touch(key, 2 * hour, minute), true)
    await pass(minute)
    t.equal(await store.touchAfterUse(key, 2 * hour, minute), true)
    const found = await store.read(key)
    t.equal(found?.record, '{}')
    t.ok(found !== undefined && found.ttlMs > 2 * hour - minute, 'time left')
    await store.end(key, `${tombstoneMark}revoked`, minute)
    t.equal(await store.touchAfterUse(key, 2 * hour, minute), false, 'it has ended')
  })

  t.test('touches set the clock of a record again and again', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    await t.rejects(store.create(key, '{}', hour), { code: 'session.unavailable' })
    t.equal(await store.touch(key, 9 * hour, hour), false, 'too late')
    for (let touches = 0; touches < 12; touches++) {
      await pass(hour - 2 * minute)
      t.equal(await store.touch(key, hour, minute), true)
      const found = await store.read(key)
      t.equal(found?.record, '{}')
      t.ok(found !== undefined && found.ttlMs > hour - minute && found.ttlMs <= hour, 'time left')
    }
    await pass(hour + 1)
    t.equal(await store.read(key), undefined, 'gone when its time is up')
    t.equal(await store.touch(key, hour, 0), false)
    t.equal(await store.end(key, `${tombstoneMark}revoked`, hour), false)
    t.equal(await store.read(key), undefined)
  })

  t.test('a record that is touched, replaced and ended at once stays ended', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    t.equal(await store.replace(key, '{}?', '{}!'), false)
    t.equal(await store.replace(key, '{}', '{}!'), true)
    const found = await store.read(key)
    t.equal(found?.record, '{}!')
    t.ok(found !== undefined && found.ttlMs > hour - minute && found.ttlMs <= hour, 'time left')
    const late = Array.from({ length: 20 }, () => store.touch(key, 2 * hour, 0))
    const [isEnded] = await Promise.all([
      store.end(key, `${tombstoneMark}replaced`, hour),
      ...late,
      store.touchAfterUse(key, 2 * hour, hour)
    ])
    t.equal(isEnded, true)
    t.equal(await store.end(key, `${tombstoneMark}revoked`, hour), false)
    const tombstone = await store.read(key)
    t.equal(tombstone?.record, `${tombstoneMark}replaced`)
    t.equal(await store.replace(key, '{}!', '{}'), false, 'not once it has ended')
  })

  t.test('an ended record gives way to its tombstone', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    t.equal(await store.end(key, `${tombstoneMark}revoked`, hour), true)
    t.equal((await store.read(key))?.record, `${tombstoneMark}revoked`)
  })

  t.test('the first reason of an end stands', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    await store.end(key, `${tombstoneMark}replaced`, hour)
    t.equal(await store.end(key, `${tombstoneMark}revoked`, hour), false)
    t.equal((await store.read(key))?.record, `${tombstoneMark}replaced`)
  })

  t.test('what is not there cannot be ended, and stays away', async t => {
    const key = freshKey()
    t.equal(await store.end(key, `${tombstoneMark}revoked`, hour), false)
    t.equal(await store.read(key), undefined)
  })

  t.test('nothing that comes late revives an ended record', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    await Promise.all([
      store.end(key, `${tombstoneMark}revoked`, hour),
      ...Array.from({ length: 20 }, () => store.touch(key, 2 * hour, 0)),
      ...Array.from({ length: 20 }, () => store.create(key, '{"late":1}', 2 * hour).catch(() => {}))
    ])
    t.equal((await store.read(key))?.record, `${tombstoneMark}revoked`)
  })

  t.test('of two who create the same record one fails', async t => {
    const key = freshKey()
    const outcomes = await Promise.allSettled([
      store.create(key, '{"n":1}', hour),
      store.create(key, '{"n":2}', hour)
    ])
    t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  })

  t.test(
    'a record is replaced only where it still is what was read, and keeps its time',
    async t => {
      const key = freshKey()
      await store.create(key, '{"v":1}', 2 * hour)
      t.equal(await store.replace(key, '{"v":0}', '{"v":9}'), false)
      t.equal(await store.replace(key, '{"v":1}', '{"v":2}'), true)
      const found = await store.read(key)
      t.equal(found?.record, '{"v":2}')
      t.ok(found !== undefined && found.ttlMs > 2 * hour - minute, 'not less time')
      t.ok(found !== undefined && found.ttlMs <= 2 * hour, 'nor more')
      await store.end(key, `${tombstoneMark}revoked`, hour)
      t.equal(await store.replace(key, '{"v":2}', '{"v":3}'), false, 'not once it has ended')
      t.equal(await store.replace(freshKey(), '', '{"v":3}'), false, 'not where nothing was')
    }
  )

  t.test('of two who replace the same record one wins', async t => {
    const key = freshKey()
    await store.create(key, '{"v":1}', hour)
    const won = await Promise.all([
      store.replace(key, '{"v":1}', '{"a":1}'),
      store.replace(key, '{"v":1}', '{"b":1}')
    ])
    t.same(won.toSorted(), [false, true])
  })

  t.test('a user’s keys are noted until their time, and can be taken back', async t => {
    const user = identityKey({ source: 's', identity: { id: freshKey() } })
    const now = clock()
    await store.indexSession(user, 'k1', now + hour)
    await store.indexSession(user, 'k2', now + 2 * hour)
    await store.indexSession(user, 'over', now - 1)
    t.same((await store.sessionKeysOf(user)).toSorted(), ['k1', 'k2'])
    await store.unindex(user, ['k1', 'never'])
    t.same(await store.sessionKeysOf(user), ['k2'])
    t.same(
      await store.sessionKeysOf(identityKey({ source: 's', identity: { id: freshKey() } })),
      []
    )
  })

  t.test('a note tells all notes of the user by then, in the order of the store', async t => {
    const user = identityKey({ source: 's', identity: { id: freshKey() } })
    const until = clock() + hour
    t.match(await store.indexSession(user, 'k1', until), [{ key: 'k1' }])
    // Not by how long they last.
    t.match(await store.indexSession(user, 'k2', until - minute), [{ key: 'k1' }, { key: 'k2' }])
    const seen = await Promise.all(
      Array.from({ length: 20 }, (_, n) => store.indexSession(user, `n${n}`, until))
    )
    t.same(
      seen.map(notes => notes.length).toSorted((a, b) => a - b),
      Array.from({ length: 20 }, (_, n) => n + 3),
      'each sees those before it'
    )
    const notes = await store.indexEntriesOf(user)
    t.equal(notes.length, 22)
    const moments = notes.map(({ at }) => at ?? NaN)
    t.ok(
      moments.every((at, index) => index === 0 || at > (moments[index - 1] ?? NaN)),
      'no two at the same moment'
    )
    t.ok(Math.abs((moments[0] ?? 0) / 1000 - clock()) < minute, 'microseconds since the epoch')
    for (const before of seen) t.same(before, notes.slice(0, before.length))
  })

  t.test('who signed in until later stays listed, whichever session came last', async t => {
    const id = freshKey()
    const user = { source: 's', id, username: 'someone' }
    await store.addSignedIn(user, clock() + hour)
    await store.addSignedIn(user, clock() - minute)
    const listed = (await store.signedIn(10_000)).filter(each => each.id === id)
    t.same(listed, [user])
  })

  t.test('the epoch only rises', async t => {
    const before = await store.epoch()
    t.equal(await store.bumpEpoch(), before + 1)
    t.equal(await store.epoch(), before + 1)
    t.equal(await store.bumpEpoch(before + 5), before + 6, 'to more than a caller knows of')
    t.equal(await store.bumpEpoch(before), before + 7, 'and never to less')
  })

  t.test('the epoch is restored to at least what it was, and never lowered', async t => {
    const before = await store.epoch()
    await store.restoreEpoch(before + 5)
    t.equal(await store.epoch(), before + 5)
    await store.restoreEpoch(before)
    t.equal(await store.epoch(), before + 5)
    t.equal(await store.bumpEpoch(), before + 6)
  })

  t.test('ends that were written are confirmed', async t => {
    const key = freshKey()
    await store.create(key, '{}', hour)
    await store.end(key, `${tombstoneMark}revoked`, hour)
    await store.confirmEnds()
    t.equal((await store.read(key))?.record, `${tombstoneMark}revoked`)
  })

  t.test('a lock has one owner, ends by itself, and only its owner frees it', async t => {
    const name = freshKey()
    t.same(
      (await Promise.all([store.lock(name, 'a', hour), store.lock(name, 'b', hour)])).toSorted(),
      [false, true]
    )
    const owner = (await store.lock(name, 'x', hour)) ? 'x' : 'held'
    t.equal(owner, 'held')
    await store.unlock(name, 'nobody')
    t.equal(await store.lock(name, 'c', hour), false)
    const brief = freshKey()
    t.equal(await store.lock(brief, 'a', minute), true)
    await pass(minute + 1)
    t.equal(await store.lock(brief, 'b', hour), true)
    await store.unlock(brief, 'b')
    t.equal(await store.lock(brief, 'c', hour), true)
  })

  t.test(
    'a fence numbers the holders of a lock, and tells where one of them never said that it was done',
    async t => {
      const name = freshKey()
      t.equal(await store.fence(name, 'a', minute), undefined, 'nobody holds it')
      await store.lock(name, 'a', minute)
      const first = await store.fence(name, 'a', minute)
      t.match(first, { isContested: false })
      t.same(await store.fence(name, 'a', minute), first, 'the same holder has one number')
      t.equal(await store.fence(name, 'b', minute), undefined)
      await store.unlock(name, 'a')
      await store.lock(name, 'b', minute)
      const second = await store.fence(name, 'b', minute)
      t.match(second, { isContested: false })
      t.ok((second?.number ?? 0) > (first?.number ?? 0), 'later is greater')
      // It does not come back in time.
      await pass(minute + 1)
      t.equal(await store.fence(name, 'b', minute), undefined, 'lost')
      await store.lock(name, 'c', minute)
      const third = await store.fence(name, 'c', minute)
      t.match(third, { isContested: true })
      t.ok((third?.number ?? 0) > (second?.number ?? 0))
      await store.unlock(name, 'c', false)
      await store.lock(name, 'd', minute)
      t.match(
        await store.fence(name, 'd', minute),
        { isContested: true },
        'as long as nobody settles it'
      )
      await store.unlock(name, 'd')
      await store.lock(name, 'e', minute)
      t.match(await store.fence(name, 'e', minute), { isContested: false })
      await store.unlock(name, 'e', false)
      await pass(2 * minute + 1)
      await store.lock(name, 'f', minute)
      t.match(await store.fence(name, 'f', minute), { isContested: false }, 'two minutes at most')
    }
  )

  t.test('a fence makes a lock last', async t => {
    const name = freshKey()
    await store.lock(name, 'a', minute)
    await store.fence(name, 'a', hour)
    await pass(2 * minute)
    t.equal(await store.lock(name, 'b', minute), false)
  })

  t.test('whoever follows is told of every change of a record and of the epoch', async t => {
    const key = freshKey()
    const told = follower()
    await told.up
    await store.create(key, '{}', hour)
    await told.of(key)
    await store.replace(key, '{}', '{"v":1}')
    await told.of(key)
    await store.end(key, `${tombstoneMark}revoked`, hour)
    await told.of(key)
    const epoch = told.epoch()
    await store.bumpEpoch()
    await epoch
    t.pass('all told')
  })

  t.test('whoever follows is told of a record, but not of its touches', async t => {
    const key = freshKey()
    const told = follower()
    await told.up
    await store.create(key, '{}', hour)
    await told.of(key)
    for (let touches = 0; touches < 5; touches++) await store.touch(key, hour, 0)
    // News come in order.
    const later = freshKey()
    await store.create(later, '{}', hour)
    await told.of(later)
    t.equal(told.hasHeardOf(key), false)
    await store.touchAfterUse(key, hour, 0)
    await told.of(key)
    await store.replace(key, '{}', '{}!')
    await told.of(key)
    await store.end(key, `${tombstoneMark}revoked`, hour)
    await told.of(key)
  })

  /** Follows the store; resolves for the next news of a key. */
  function follower() {
    const waiting = new Map<string, () => void>()
    const heard = new Set<string>()
    let onEpoch = () => {}
    const up = new Promise<void>(resolve => {
      store.follow({
        onUp: resolve,
        onDown: () => {},
        onHeartbeat: () => {},
        onChanged: key => {
          const tell = waiting.get(key)
          if (tell === undefined) heard.add(key)
          else tell()
          waiting.delete(key)
        },
        onEpoch: () => onEpoch()
      })
    })
    return {
      up,
      hasHeardOf: (key: string) => heard.has(key),
      of: (key: string) =>
        new Promise<void>(resolve => {
          if (heard.delete(key)) resolve()
          else waiting.set(key, resolve)
        }),
      epoch: () =>
        new Promise<void>(resolve => {
          onEpoch = resolve
        })
    }
  }

  t.test('it answers a ping', async t => {
    t.equal(await store.ping(), true)
  })
}

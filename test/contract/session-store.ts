/** What every session store promises; run once for each adapter. */
import type { Test } from 'tap'
import { epitaphMark, type SessionStore } from '../../src/session/session.ts'

let keys = 0
const freshKey = () => `contract-${process.pid}-${++keys}`

/** @param until resolves when the store's own clock has gone on by so much */
export function sessionStoreContract (t: Test, store: SessionStore, until: (ms: number) => Promise<void>): void {
  t.test('a record is read as it was written, with the time it has left', async t => {
    const key = freshKey()
    await store.create(key, '{"a":"ü\u0000💡"}', 5000)
    const found = await store.read(key)
    t.equal(found?.record, '{"a":"ü\u0000💡"}')
    t.ok(found !== undefined && found.ttlMs > 4000 && found.ttlMs <= 5000, 'time left')
  })

  t.test('what was never written is not there', async t => {
    t.equal(await store.read(freshKey()), undefined)
  })

  t.test('a record is never written over', async t => {
    const key = freshKey()
    await store.create(key, '{"first":1}', 5000)
    await t.rejects(store.create(key, '{"second":2}', 5000))
    t.equal((await store.read(key))?.record, '{"first":1}')
  })

  t.test('a record is gone when its time is up', async t => {
    const key = freshKey()
    await store.create(key, '{}', 30)
    await until(60)
    t.equal(await store.read(key), undefined)
  })

  t.test('a touch sets the time left and changes nothing else', async t => {
    const key = freshKey()
    await store.create(key, '{"same":1}', 1000)
    await store.touch(key, 9000)
    const found = await store.read(key)
    t.equal(found?.record, '{"same":1}')
    t.ok(found !== undefined && found.ttlMs > 8000, 'time left')
  })

  t.test('a touch never brings a record into being', async t => {
    const key = freshKey()
    await store.touch(key, 5000)
    t.equal(await store.read(key), undefined)
  })

  t.test('an ended record gives way to its epitaph', async t => {
    const key = freshKey()
    await store.create(key, '{}', 5000)
    t.equal(await store.end(key, `${epitaphMark}revoked`, 5000), true)
    t.equal((await store.read(key))?.record, `${epitaphMark}revoked`)
  })

  t.test('the first reason of an end stands', async t => {
    const key = freshKey()
    await store.create(key, '{}', 5000)
    await store.end(key, `${epitaphMark}replaced`, 5000)
    t.equal(await store.end(key, `${epitaphMark}revoked`, 5000), false)
    t.equal((await store.read(key))?.record, `${epitaphMark}replaced`)
  })

  t.test('what is not there cannot be ended, and stays away', async t => {
    const key = freshKey()
    t.equal(await store.end(key, `${epitaphMark}revoked`, 5000), false)
    t.equal(await store.read(key), undefined)
  })

  t.test('nothing that comes late revives an ended record', async t => {
    const key = freshKey()
    await store.create(key, '{}', 5000)
    await Promise.all([
      store.end(key, `${epitaphMark}revoked`, 5000),
      ...Array.from({ length: 20 }, () => store.touch(key, 9000)),
      ...Array.from({ length: 20 }, () => store.create(key, '{"late":1}', 9000).catch(() => {}))
    ])
    t.equal((await store.read(key))?.record, `${epitaphMark}revoked`)
  })

  t.test('of two who create the same record one fails', async t => {
    const key = freshKey()
    const outcomes = await Promise.allSettled([store.create(key, '{"n":1}', 5000), store.create(key, '{"n":2}', 5000)])
    t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  })

  t.test('it answers a ping', async t => {
    t.equal(await store.ping(), true)
  })
}

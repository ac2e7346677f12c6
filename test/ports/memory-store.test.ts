import t from 'tap'
import { MemoryStore } from '../../src/session/memory-store.ts'
import { createSecretId, keyOf } from '../../src/session/types.ts'
import { minute } from '../support/sessions.ts'
import { sessionStoreContract } from './session-store.ts'

t.test('sessions in memory', async t => {
  let now = 1_000_000
  const store = new MemoryStore(() => now)
  sessionStoreContract(t, store, async ms => void (now += ms))
})

t.test('what is over leaves no memory behind', async t => {
  let now = 1_000_000
  const store = new MemoryStore(() => now)
  const stored = { sealed: 'x', idleMs: 1000, absoluteMs: 2000 }
  const openOf = async (id: string) => {
    const user = { source: 's', id, username: id }
    const key = keyOf(createSecretId(user))
    await store.open({ key, stored, user, max: 1, refuse: false })
    return { key, user }
  }
  const { key, user } = await openOf('u')
  now += 5 * minute
  await openOf('v')
  t.match(await store.read(key), { sealed: 'x' }, 'for its reason')
  now += 10 * minute
  await openOf('v')
  now -= 10 * minute
  t.equal(await store.read(key), undefined)
  t.same(await store.keysOf(user), [])
})

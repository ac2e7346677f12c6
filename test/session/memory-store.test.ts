import { mock } from 'node:test'
import t from 'tap'
import { MemoryStore } from '../../src/session/memory-store.ts'
import { sessionStoreContract } from '../suites/session-store.ts'

t.test('sessions in memory', async t => {
  let now = 1_000_000
  const store = new MemoryStore(() => now)
  t.teardown(() => store.close())
  sessionStoreContract(t, store, async ms => void (now += ms))
})

t.test('what is over leaves no memory behind', async t => {
  mock.timers.enable({ apis: ['setInterval', 'Date'] })
  t.teardown(() => mock.timers.reset())
  const store = new MemoryStore(() => Date.now())
  const [key, user] = ['k'.repeat(80), { source: 's', id: 'u', username: 'u' }]
  const stored = { sealed: 'x', idleMs: 1000, absoluteMs: 2000 }
  await store.open({ key, stored, user, max: 1, refuse: false })
  mock.timers.tick(5 * 60_000)
  t.match(await store.read(key), { sealed: 'x' }, 'for its reason')
  mock.timers.tick(10 * 60_000)
  t.equal(await store.read(key), undefined)
  store.close()
})

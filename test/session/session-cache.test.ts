import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { SessionCache } from '../../src/session/session-cache.ts'

t.test('of more sessions than are kept, those in use stay', async t => {
  const inner = createMemoryStore()
  t.teardown(() => inner.close())
  const keys = Array.from({ length: 30 }, (_, n) => `key-${n}`)
  for (const key of keys) await inner.create(key, key, 60_000)
  const reads: string[] = []
  const cache = new SessionCache({
    store: {
      ...inner,
      read: async key => {
        reads.push(key)
        return await inner.read(key)
      }
    },
    parse: (_key, { record }) => ({ record }),
    maxStalenessMs: 60_000,
    maxEntries: 10
  })
  const [busy = ''] = keys
  for (const key of keys) {
    await cache.read(key)
    t.match(await cache.read(busy), { record: busy })
  }
  t.equal(reads.filter(key => key === busy).length, 1, 'the busy one was read once')
  t.equal(reads.length, keys.length)
})

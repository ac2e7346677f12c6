/** Lookups by a replica that has not heard yet that everyone's sessions were ended. */
import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { keyOf } from '../../src/session/record.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'
import type { Follower, SessionStore } from '../../src/session/store.ts'

const minute = 60_000
const opening: NewSession = {
  identity: { id: '1', username: 'mia', name: 'Mia', roles: [], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}

/** Two replicas on one store: `behind` gets no news of what `ahead` does, and trusts its cache. */
function setUp() {
  const clock = { now: 1_700_000_000_000 }
  const inner = createMemoryStore(() => clock.now)
  t.teardown(() => inner.close())
  const asked: string[] = []
  const watched: SessionStore = {
    ...inner,
    read: async key => {
      asked.push('record')
      return await inner.read(key)
    },
    epoch: async () => {
      asked.push('epoch')
      return await inner.epoch()
    },
    follow: ({ onUp }: Follower) => onUp()
  }
  const replica = (store: SessionStore) =>
    createSessions({
      store,
      seal: createSeal(['a secret of at least thirty-two characters']),
      lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
      perUser: { max: 5, over: 'evict-oldest' },
      maxStalenessMs: 2000,
      now: () => clock.now
    })
  return { ahead: replica({ ...inner, follow: () => {} }), behind: replica(watched), asked, clock }
}

t.test('a session that is ahead of the known epoch tells that all earlier ones ended', async t => {
  const { ahead, behind, asked } = setUp()
  await ahead.open('before', opening)
  t.match(await behind.get('before'), { live: { key: keyOf('before') } })
  asked.length = 0
  t.match(await behind.get('before'), { live: {} })
  t.same(asked, [], 'both are cached')
  await ahead.closeAll()
  await ahead.open('after', opening)
  t.match(await behind.get('after'), { live: { key: keyOf('after') } }, 'it is no stranger')
  t.same(await behind.get('before'), { ended: 'revoked' })
  t.equal(behind.getCachedByKey(keyOf('before')), undefined)
  await behind.get('after')
  asked.length = 0
  t.match(await behind.get('after'), { live: {} })
  t.same(asked, [], 'and both are cached again')
})

t.test('a cached session is taken for over only once the store has said so', async t => {
  const { ahead, behind, asked, clock } = setUp()
  await ahead.open('s', opening)
  await behind.get('s')
  // Use at the other replica, of which this one does not hear.
  clock.now += 1000
  const lookup = await ahead.get('s')
  if ('live' in lookup) await ahead.extend(lookup.live)
  clock.now += 30 * minute - 500
  t.equal(behind.getCachedByKey(keyOf('s')), undefined)
  t.match(await behind.get('s'), { live: { idleEnd: clock.now + 500 } })
  clock.now += 500
  asked.length = 0
  t.same(await behind.get('s'), { ended: 'idle' })
  t.ok(asked.includes('record'))
})

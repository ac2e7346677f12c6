/** Records on which replicas disagree: by their secrets, by their clocks, or by what they know. */
import t, { type Test } from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import { keyOf } from '../../src/session/record.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'

const minute = 60_000
const start = 1_700_000_000_000
const old = 'an older secret of at least thirty-two characters'
const young = 'a younger secret of at least thirty-two characters'
const opening: NewSession = {
  identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}
const user = identityKey(opening)

interface Differences {
  readonly secrets?: readonly string[]
  readonly now?: number
  readonly over?: 'evict-oldest' | 'refuse'
}

/** A store with one or more replicas on it. */
function setUp(t: Test) {
  const store = createMemoryStore(() => start)
  t.teardown(() => store.close())
  const replica = ({ secrets = [old], now = start, over = 'evict-oldest' }: Differences = {}) =>
    createSessions({
      // Each reads the store itself: a memory store tells only one of them of changes.
      store: { ...store, follow: () => {} },
      seal: createSeal(secrets),
      lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
      perUser: { max: 2, over },
      maxStalenessMs: 2000,
      now: () => now
    })
  return { store, replica }
}

t.test(
  'a record of a secret that this replica does not have opens for nobody, and stays noted',
  async t => {
    const { store, replica } = setUp(t)
    const [behind, ahead] = [replica(), replica({ secrets: [young, old] })]
    await ahead.open('s', opening)
    t.same(await behind.get('s'), { ended: 'unknown' })
    t.same(await behind.inspect(user), { listed: [], isKnown: true })
    t.same(await store.sessionKeysOf(user), [keyOf('s')])
    t.equal(await behind.closeOf(user), 1, 'nothing has to be read for closing')
    t.same(await ahead.get('s'), { ended: 'revoked' })
    t.match(await behind.inspect(user), { isKnown: false })
  }
)

for (const over of ['evict-oldest', 'refuse'] as const) {
  t.test(`what only another secret opens takes no place under the cap (${over})`, async t => {
    const { replica } = setUp(t)
    const [behind, ahead] = [replica({ over }), replica({ secrets: [young, old] })]
    for (const secretId of ['y1', 'y2']) await ahead.open(secretId, opening)
    await behind.open('o1', opening)
    await behind.open('o2', opening)
    for (const secretId of ['y1', 'y2', 'o1', 'o2']) {
      t.match(await ahead.get(secretId), { live: {} }, secretId)
    }
  })
}

t.test('a note stays where a clock that runs ahead takes its session for over', async t => {
  const { replica } = setUp(t)
  const [right, ahead] = [replica(), replica({ now: start + 481 * minute })]
  await right.open('s', opening)
  t.same(await ahead.list(user), [])
  t.equal((await right.list(user)).length, 1)
  t.equal(await ahead.closeOf(user), 1)
  t.same(await right.get('s'), { ended: 'revoked' })
})

t.test('a reason of an end that nobody knows still says that somebody ended it', async t => {
  const { store, replica } = setUp(t)
  await store.create(keyOf('s'), '!moon-phase', 10 * minute)
  t.same(await replica().get('s'), { ended: 'revoked' })
})

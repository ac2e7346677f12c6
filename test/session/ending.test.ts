/** Ends of sessions: which of a user's, what is told of them, and what this process forgets. */
import t from 'tap'
import { createEnding, type EndCause, type Revoked } from '../../src/session/ending.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { keyOf, publicId, type Session } from '../../src/session/record.ts'
import { createRecordFormat } from '../../src/session/record-format.ts'
import { createSeal } from '../../src/session/seal.ts'
import { EndUnconfirmed, type SessionStore, StoreUnavailable } from '../../src/session/store.ts'

const now = 1_700_000_000_000
const hour = 3_600_000
const formatOf = (secret: string) =>
  createRecordFormat(createSeal([`${secret} of at least thirty-two characters`]))
const format = formatOf('the secret')

const mia: Session = {
  id: 'public',
  identity: { id: '1', username: 'mia', name: 'Mia', roles: [], profile: {} },
  source: 'users-file',
  remembered: false,
  createdAt: now,
  absoluteEnd: now + hour,
  idleMs: hour,
  address: '192.0.2.1',
  agent: 'test'
}
const user = identityKey(mia)

async function setUp() {
  const inner = createMemoryStore(() => now)
  t.teardown(() => inner.close())
  let confirmed = 0
  const store: { -readonly [K in keyof SessionStore]: SessionStore[K] } = {
    ...inner,
    confirmEnds: async () => {
      confirmed++
    }
  }
  const dropped: string[] = []
  const ended: Array<readonly [EndCause, number]> = []
  const revoked: Revoked[] = []
  const ending = createEnding({
    store,
    drop: key => void dropped.push(key),
    onEnded: (cause, count) => void ended.push([cause, count]),
    onRevoked: each => void revoked.push(each)
  })
  /** @returns the key of a session that is indexed for mia */
  const add = async (secretId: string, by = format) => {
    const key = keyOf(secretId)
    await store.create(key, by.close(key, { session: mia, epoch: 0 }), hour)
    await store.indexSession(user, key, now + hour)
    return key
  }
  const keys = [await add('one'), await add('two'), await add('three')] as const
  const isAlive = async (key: string) => (await store.read(key))?.record.startsWith('!') === false
  const aliveKeys = async () => {
    const alive = await Promise.all(keys.map(isAlive))
    return keys.filter((_, index) => alive[index])
  }
  return {
    ending,
    store,
    keys,
    aliveKeys,
    add,
    isAlive,
    dropped,
    ended,
    revoked,
    confirmed: () => confirmed
  }
}

const revoker = { user: mia, by: 'user' } as const

t.test('an end is told once, with its cause, and to the ledger where somebody made it', async t => {
  const { ending, keys, aliveKeys, dropped, ended, revoked } = await setUp()
  t.equal(await ending.close('one', 'revoked', { cause: 'signed-out' }), true)
  t.same(await aliveKeys(), keys.slice(1))
  t.same(dropped, [keys[0]])
  t.same(ended, [['signed-out', 1]])
  t.same(revoked, [], 'a sign-out is recorded elsewhere')
  t.equal(await ending.endKeys(keys, 'replaced', { revoker }), 2)
  t.same(dropped, [keys[0], ...keys], 'also what was over in the store')
  t.same(ended.slice(1), [['replaced', 2]])
  const sessions = keys.slice(1).map(publicId)
  t.same(revoked, [{ ...revoker, reason: 'replaced', sessions }])
})

t.test('what ended is told, also where another end could not be confirmed', async t => {
  const { ending, store, keys, ended, revoked } = await setUp()
  const { end } = store
  store.end = async (key, ...rest) => {
    if (key === keys[0]) throw new StoreUnavailable('a replica hangs')
    return await end(key, ...rest)
  }
  await t.rejects(ending.endKeys(keys, 'replaced', { revoker }), {
    code: 'session.unavailable'
  })
  t.same(ended, [['replaced', 2]])
  t.same(revoked, [{ ...revoker, reason: 'replaced', sessions: keys.slice(1).map(publicId) }])
})

t.test('an end that not every replica confirmed is told, with its code', async t => {
  const { ending, store, keys, ended, revoked } = await setUp()
  const { end } = store
  store.end = async (key, ...rest) => {
    const wasAlive = await end(key, ...rest)
    if (key === keys[0] && wasAlive) throw new EndUnconfirmed('a replica hangs')
    return wasAlive
  }
  await t.rejects(ending.endKeys(keys, 'replaced', { revoker }), { code: 'session.unavailable' })
  t.same(ended, [
    ['replaced', 2],
    ['replaced', 1]
  ])
  const line = { ...revoker, reason: 'replaced' }
  t.same(revoked, [
    { ...line, sessions: keys.slice(1).map(publicId) },
    { ...line, sessions: [publicId(keys[0])], code: 'session.unavailable' }
  ])
  t.equal(await ending.endKeys(keys, 'replaced', { revoker }), 0)
  t.equal(revoked.length, 2, 'once')
})

t.test('of what was over already nothing is told', async t => {
  const { ending, ended, revoked, dropped } = await setUp()
  t.equal(await ending.close('one', 'revoked', { revoker }), true)
  t.equal(await ending.close('one', 'revoked', { revoker }), false)
  t.equal(await ending.close('never', 'revoked', { revoker }), false)
  t.same(dropped, [keyOf('one'), keyOf('one'), keyOf('never')])
  t.equal(ended.length, 1)
  t.equal(revoked.length, 1)
})

t.test('one session of a user ends, or all but one, or all', async t => {
  const { ending, keys, aliveKeys, confirmed } = await setUp()
  const [one, two, three] = keys
  t.equal(await ending.closeOf(user, { only: publicId(one) }), 1)
  t.same(await aliveKeys(), [two, three])
  t.equal(await ending.closeOf(user, { except: publicId(two) }), 1)
  t.same(await aliveKeys(), [two])
  t.equal(confirmed(), 0)
  t.equal(await ending.closeOf(user, { only: publicId(two), except: publicId(two) }), 0)
  t.same(await aliveKeys(), [two])
  t.equal(confirmed(), 1, 'an earlier attempt may have ended what is in no index any more')
  t.equal(await ending.closeOf(user), 1)
  t.same(await aliveKeys(), [])
})

t.test('a session that another secret sealed ends too', async t => {
  const { ending, add, isAlive } = await setUp()
  const other = await add('other', formatOf('another secret'))
  t.ok(await isAlive(other))
  t.equal(await ending.closeOf(user), 4)
  t.equal(await isAlive(other), false)
})

t.test('an entry of the index without a record stops no end', async t => {
  const { ending, store, keys, aliveKeys } = await setUp()
  await store.indexSession(user, keyOf('gone'), now + hour)
  t.equal(await ending.closeOf(user, { except: publicId(keys[0]) }), 2)
  t.same(await aliveKeys(), [keys[0]])
})

t.test('a back-end that refuses a user ends the session', async t => {
  const { ending, keys, ended, revoked } = await setUp()
  const live = { key: keys[1], session: mia, idleEnd: now + hour }
  t.equal(await ending.endRefused(live), true)
  t.same(ended, [['upstream', 1]])
  t.match(revoked, [{ user: mia, by: 'upstream', reason: 'upstream' }])
  t.equal(await ending.endRefused(live), false)
})

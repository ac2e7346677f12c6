import { readFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import { keyOf } from '../../src/session/record.ts'
import { createRecordFormat, type RecordVersion } from '../../src/session/record-format.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type NewSession } from '../../src/session/session.ts'
import { readByOldVersion } from '../support/records-1.ts'

interface Fixture {
  readonly secret: string
  readonly now: number
  readonly records: ReadonlyArray<{ secretId: string; key: string; ttlMs: number; stored: string }>
}

/** Records that the code of commit 1afc4ed wrote. */
const fixture = JSON.parse(
  readFileSync(new URL('fixtures/records-1.json', import.meta.url), 'utf8')
) as Fixture

const minute = 60_000
const opening: NewSession = {
  identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}

const user = identityKey(opening)
/** Whose record of the fixture was renewed. */
const userOfBackEnd = identityKey({ ...opening, source: 'upstream-login:b' })

/** A store with one or more replicas on it, at the time of the fixture. */
function setUp(t: Test) {
  const store = createMemoryStore(() => fixture.now)
  t.teardown(() => store.close())
  const replica = (records: RecordVersion, secrets: readonly string[] = [fixture.secret]) =>
    createSessions({
      // Each reads the store itself: a memory store tells only one of them of changes.
      store: { ...store, follow: () => {} },
      seal: createSeal(secrets),
      lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
      perUser: { max: 5, over: 'evict-oldest' },
      maxStalenessMs: 2000,
      records,
      now: () => fixture.now
    })
  const stored = async (secretId: string) => (await store.read(keyOf(secretId)))?.record ?? ''
  return { store, replica, stored }
}

for (const records of [1, 2] as const) {
  t.test(
    `with records: ${records}, sessions of the version without record versions are read, listed and closed`,
    async t => {
      const { store, replica } = setUp(t)
      for (const { secretId, key, stored, ttlMs } of fixture.records) {
        await store.create(key, stored, ttlMs)
        const owner = secretId === 'renewed' ? userOfBackEnd : user
        await store.indexSession(owner, key, fixture.now + 480 * minute)
      }
      const sessions = replica(records)
      t.match(await sessions.get('plain'), {
        live: { session: { identity: { id: '1', name: 'Alice Ädmin' }, recordVersion: undefined } }
      })
      t.match(await sessions.get('renewed'), {
        live: { session: { credential: { token: 'new', refreshToken: 'r2' } } }
      })
      t.same(await sessions.get('closed'), { ended: 'replaced' })
      for (const [owner, secretId] of [
        [user, 'plain'],
        [userOfBackEnd, 'renewed']
      ] as const) {
        t.equal((await sessions.list(owner)).length, 1)
        t.equal(await sessions.closeOf(owner), 1)
        t.same(await sessions.get(secretId), { ended: 'revoked' })
      }
    }
  )
}

t.test(
  'what is written by default is read by the version without record versions, also after a renewal',
  async t => {
    const { replica, stored } = setUp(t)
    const sessions = replica(1)
    const live = await sessions.open('s', { ...opening, credential: { token: 'T' } })
    t.match(readByOldVersion(fixture.secret, live.key, await stored('s')), {
      session: { identity: { id: '1' }, credential: { token: 'T' } },
      epoch: 0
    })
    await sessions.renew(live, { token: 'U' })
    t.match(readByOldVersion(fixture.secret, live.key, await stored('s')), {
      session: { credential: { token: 'U' } }
    })
  }
)

t.test('the reader of the old version in these tests reads what the old version wrote', async t => {
  const [plain] = fixture.records
  t.match(readByOldVersion(fixture.secret, plain!.key, plain!.stored), {
    session: { identity: { username: 'alice' } }
  })
})

t.test(
  'with records: 2 the format changes; replicas that still write the old one read it, and rewrite it as theirs',
  async t => {
    const { replica, stored } = setUp(t)
    const [first, second] = [replica(1), replica(2)]
    const live = await second.open('s', opening)
    t.match(await stored('s'), /^2\.[\w-]{6}\.[\w-]+$/)
    t.equal(readByOldVersion(fixture.secret, live.key, await stored('s')), undefined)
    t.match(await first.get('s'), { live: { session: { identity: { id: '1' } } } })
    await first.renew(live, { token: 'U' })
    t.match(readByOldVersion(fixture.secret, live.key, await stored('s')), {
      session: { credential: { token: 'U' } }
    })
    t.match(await second.get('s'), { live: { session: { credential: { token: 'U' } } } })
  }
)

t.test(
  'a session tells the record version that its opener knew, and keeps it when it is rewritten',
  async t => {
    const { store, replica } = setUp(t)
    const sessions = replica(1)
    t.equal((await sessions.open('young', opening)).session.recordVersion, 3)
    const [plain] = fixture.records
    await store.create(plain!.key, plain!.stored, plain!.ttlMs)
    const resolved = await sessions.get('plain')
    if (!('live' in resolved)) throw new Error('not alive')
    await sessions.renew(resolved.live, { token: 'T' })
    const later = await sessions.get('plain')
    t.match(later, { live: { session: { credential: { token: 'T' }, recordVersion: undefined } } })
  }
)

t.test(
  'a record of a newer version is neither unknown nor forgotten; it can be closed',
  async t => {
    const { store, replica, stored } = setUp(t)
    const sessions = replica(1)
    const key = keyOf('s')
    await store.create(key, '4.whatever.comes', 40 * minute)
    await store.indexSession(user, key, fixture.now + 480 * minute)
    t.same(await sessions.get('s'), { unreadable: 'version' })
    t.same(await sessions.list(user), [])
    t.same(await store.sessionKeysOf(user), [key], 'still noted')
    t.equal(await stored('s'), '4.whatever.comes')
    t.equal(await sessions.closeOf(user), 1)
    t.same(await sessions.get('s'), { ended: 'revoked' })
  }
)

t.test(
  'a record of a secret that this replica does not have opens for nobody, and stays noted',
  async t => {
    const { store, replica } = setUp(t)
    const other = 'another secret of at least thirty-two characters'
    const [old, young] = [replica(1), replica(1, [other, fixture.secret])]
    await young.open('s', opening)
    t.same(await old.get('s'), { ended: 'unknown' })
    t.same(await old.list(user), [])
    t.same(await store.sessionKeysOf(user), [keyOf('s')])
    t.equal(await old.closeOf(user), 1, 'nothing has to be read for closing')
    t.same(await young.get('s'), { ended: 'revoked' })
  }
)

t.test(
  'what cannot be read is counted, has its place under the cap, and is the first to go where it is the oldest',
  async t => {
    const { store, replica } = setUp(t)
    const other = 'another secret of at least thirty-two characters'
    const [old, young] = [replica(1), replica(1, [other, fixture.secret])]
    for (const secretId of ['y1', 'y2']) await young.open(secretId, opening)
    for (const secretId of ['o1', 'o2', 'o3']) await old.open(secretId, opening)
    t.match(await old.inspect(user), { listed: { length: 3 }, unreadable: 2 })
    t.match(await young.inspect(user), { listed: { length: 5 }, unreadable: 0 })
    await old.open('o4', opening)
    t.same(await young.get('y1'), { ended: 'replaced' })
    t.match(await young.get('y2'), { live: {} })
    t.equal((await store.sessionKeysOf(user)).length, 6, 'the ended one goes with the next look')
    await young.list(user)
    t.equal((await store.sessionKeysOf(user)).length, 5)
  }
)

t.test('a note stays where a clock that runs ahead takes its session for over', async t => {
  const { store, replica } = setUp(t)
  const right = replica(1)
  await right.open('s', opening)
  const ahead = createSessions({
    store: { ...store, follow: () => {} },
    seal: createSeal([fixture.secret]),
    lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 2000,
    now: () => fixture.now + 481 * minute
  })
  t.same(await ahead.list(user), [])
  t.equal((await right.list(user)).length, 1)
  t.equal(await ahead.closeOf(user), 1)
  t.same(await right.get('s'), { ended: 'revoked' })
})

t.test(
  'a reason of an end that only a newer version knows still says that somebody ended it',
  async t => {
    const { store, replica } = setUp(t)
    await store.create(keyOf('s'), '!moon-phase', 10 * minute)
    t.same(await replica(1).get('s'), { ended: 'revoked' })
  }
)

t.test('a number before the seal is bound to it', async t => {
  const { store, replica, stored } = setUp(t)
  const sessions = replica(2)
  await sessions.open('s', opening)
  const written = await stored('s')
  await store.replace(keyOf('s'), written, written.slice(2))
  t.same(await sessions.get('s'), { ended: 'unknown' })
})

t.test('a record keeps the place of its idle clock, whatever is written by now', async t => {
  const seal = createSeal([fixture.secret])
  const session = {
    ...opening,
    id: 'public',
    createdAt: 1,
    absoluteEnd: 3,
    idleMs: 2
  }
  const content = { session, epoch: 4 }
  const formatOf = (records: RecordVersion) => createRecordFormat(seal, records)
  const versionOf = (stored: string) => (/^\d\./.test(stored) ? Number(stored[0]) : 1)
  for (const [writes, first, afterOlder] of [
    [1, 1, 1],
    [2, 2, 2],
    [3, 3, 2]
  ] as const) {
    const format = formatOf(writes)
    const fresh = format.close('key', content)
    t.equal(versionOf(fresh), first)
    const older = formatOf(1).close('key', content)
    const quiet = formatOf(3).close('key', content)
    t.equal(versionOf(format.close('key', content, older)), afterOlder)
    t.equal(versionOf(format.close('key', content, quiet)), 3)
    for (const stored of [fresh, older, quiet]) {
      t.same(format.open('key', stored), content)
      t.equal(format.open('another key', stored), undefined)
    }
  }
})

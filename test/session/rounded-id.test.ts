import t from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createRecordFormat } from '../../src/session/record-format.ts'
import { keyOf, publicId, type Session } from '../../src/session/record.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions } from '../../src/session/session.ts'
import { tombstoneMark } from '../../src/session/store.ts'

const seal = createSeal(['a secret of at least thirty-two characters'])
const hour = 3_600_000

/** Sessions over a store that holds one, as a version without numbers of formats wrote it unless `over` says so. */
async function holding(secretId: string, id: string, over: Partial<Session> = {}) {
  const store = createMemoryStore()
  t.teardown(() => store.close())
  const key = keyOf(secretId)
  const session: Session = {
    id: publicId(key),
    identity: { id, username: 'ann', name: 'Ann', roles: [], profile: {} },
    source: 'upstream-login:b',
    remembered: false,
    createdAt: Date.now(),
    absoluteEnd: Date.now() + hour,
    idleMs: hour,
    address: '192.0.2.1',
    agent: '',
    ...over
  }
  await store.create(key, createRecordFormat(seal, 1).close(key, { session, epoch: 0 }), hour)
  const counts: number[] = []
  const sessions = createSessions({
    store,
    seal,
    lifeTimes: { idle: hour, absolute: hour, remembered: {} },
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 2000,
    onRoundedEnded: count => counts.push(count)
  })
  return { sessions, counts, stored: async () => (await store.read(key))?.record }
}

t.test(
  'a session whose user’s id a former version had rounded is ended at first use, once',
  async t => {
    for (const id of [
      '1234567890123456800',
      '-1234567890123456800',
      '1.2345678901234568e+21',
      '9007199254740992'
    ]) {
      const { sessions, counts, stored } = await holding('secret', id)
      t.equal(sessions.getCachedByKey(keyOf('secret')), undefined, id)
      for (let times = 0; times < 3; times++) {
        t.match(await sessions.get('secret'), { ended: 'revoked' }, id)
      }
      t.same(counts, [1], id)
      t.equal(
        await stored(),
        `${tombstoneMark}revoked`,
        'a replica of that version takes it no longer'
      )
    }
  }
)

t.test(
  'other sessions of a former version go on, and so do ids that this version read',
  async t => {
    const cases: ReadonlyArray<readonly [id: string, over?: Partial<Session>]> = [
      ['9007199254740991'],
      ['7'],
      ['ann-1234567890123456800'],
      ['1234567890123456800', { source: 'users-file' }],
      ['1234567890123456789', { recordVersion: 2 }]
    ]
    for (const [id, over] of cases) {
      const { sessions, counts } = await holding('secret', id, over)
      t.match(await sessions.get('secret'), { live: { session: { identity: { id } } } }, id)
      t.same(counts, [])
    }
  }
)

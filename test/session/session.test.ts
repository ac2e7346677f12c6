import { keyOf } from '../../src/session/record.ts'
import t from 'tap'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import {
  createSessions,
  type LifeTimes,
  type NewSession,
  type Sessions
} from '../../src/session/session.ts'
import { type SessionStore, StoreUnavailable } from '../../src/session/store.ts'

const minute = 60_000
const opening: NewSession = {
  identity: { id: '1', username: 'alice', name: 'Alice', roles: ['admin'], profile: {} },
  source: 'users-file',
  remembered: false,
  address: '192.0.2.1',
  agent: 'test'
}
const userOf = (id: string, source = 'users-file') => identityKey({ source, identity: { id } })
const seal = createSeal(['a secret of at least thirty-two characters'])
const usual = { seal, perUser: { max: 5, over: 'evict-oldest' as const }, maxStalenessMs: 2000 }

/** A request of the session: resolves it and, where it is alive, uses it. */
async function request(sessions: Sessions, secretId: string): Promise<boolean> {
  const resolved = await sessions.get(secretId)
  if ('live' in resolved) sessions.use(resolved.live)
  return 'live' in resolved
}

function setUp(
  lifeTimes: LifeTimes = { idle: 30 * minute, absolute: 480 * minute, remembered: {} }
) {
  const clock = { now: 1_700_000_000_000 }
  const touches: number[] = []
  const inner = createMemoryStore(() => clock.now)
  const store: SessionStore = {
    ...inner,
    touch: async (...given) => {
      touches.push(clock.now)
      return await inner.touch(...given)
    }
  }
  t.teardown(() => inner.close())
  return {
    clock,
    touches,
    store,
    sessions: createSessions({ ...usual, store, lifeTimes, now: () => clock.now })
  }
}

t.test('an opened session is resolved with all that was put in', async t => {
  const { sessions } = setUp()
  const live = await sessions.open('secret', { ...opening, credential: { token: 'T' } })
  t.match(await sessions.get('secret'), { live })
  t.same(sessions.getCachedByKey(keyOf('secret')), live, 'and from then on without asking')
  t.match(live.session, {
    identity: opening.identity,
    credential: { token: 'T' },
    address: '192.0.2.1'
  })
})

t.test('the store never sees the cookie’s value', async t => {
  const keys: string[] = []
  const { store } = setUp()
  const watched = createSessions({
    ...usual,
    store: {
      ...store,
      create: async (key, record, ttl) => {
        keys.push(key, record)
        await store.create(key, record, ttl)
      }
    },
    lifeTimes: { idle: minute, absolute: minute, remembered: {} }
  })
  await watched.open('the-secret-id', opening)
  t.equal(keys.length, 2)
  t.notOk(keys.some(written => written.includes('the-secret-id')))
})

t.test(
  'of two sign-ins at once, by two replicas, neither makes the other’s session unfindable',
  async t => {
    const { store, clock } = setUp()
    const gate = Promise.withResolvers<void>()
    const reached = Promise.withResolvers<void>()
    const slow: SessionStore = {
      ...store,
      create: async (...given) => {
        reached.resolve()
        await gate.promise
        await store.create(...given)
      }
    }
    const lifeTimes = { idle: minute, absolute: minute, remembered: {} }
    const [here, there] = [slow, store].map(each =>
      createSessions({ ...usual, store: each, lifeTimes, now: () => clock.now })
    ) as [Sessions, Sessions]
    const opening1 = here.open('one', opening)
    await reached.promise
    await there.open('two', opening)
    gate.resolve()
    await opening1
    t.equal((await there.list(userOf('1'))).length, 2)
    t.equal(await there.closeOf(userOf('1')), 2)
    t.notOk('live' in (await here.get('one')))
  }
)

t.test('a session that could not be noted for its user is not left behind', async t => {
  const { store, clock } = setUp()
  const keys: string[] = []
  const failing: SessionStore = {
    ...store,
    create: async (key, ...given) => {
      keys.push(key)
      await store.create(key, ...given)
    },
    indexSession: async () => {
      throw new StoreUnavailable(new Error('gone'))
    }
  }
  const sessions = createSessions({
    ...usual,
    store: failing,
    lifeTimes: { idle: minute, absolute: minute, remembered: {} },
    now: () => clock.now
  })
  await t.rejects(sessions.open('one', opening), { code: 'session.unavailable' })
  t.notOk('live' in (await sessions.get('one')))
  t.equal(keys.length, 1)
})

t.test(
  'what this process remembers as over is looked up once more before anybody is turned away',
  async t => {
    const { clock, store } = setUp()
    // No news of the other replica's use comes through, as when it is still under way.
    const sessions = createSessions({
      ...usual,
      maxStalenessMs: 1e12,
      store: {
        ...store,
        follow: follower => {
          follower.onUp()
        }
      },
      lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
      now: () => clock.now
    })
    const { key } = await sessions.open('s', opening)
    t.ok('live' in (await sessions.get('s')))
    clock.now += 29 * minute
    await store.touch(key, 40 * minute, 0)
    clock.now += 2 * minute
    t.equal(sessions.getCachedByKey(keyOf('s')), undefined)
    t.ok('live' in (await sessions.get('s')), 'used two minutes ago, elsewhere')
  }
)

t.test('a session that is not used ends idle, and says so', async t => {
  const { clock, sessions } = setUp()
  await sessions.open('s', opening)
  clock.now += 30 * minute - 1
  t.ok('live' in (await sessions.get('s')), 'a millisecond before')
  clock.now += 1
  t.same(await sessions.get('s'), { ended: 'idle' })
})

t.test('use keeps it alive, at the cost of one write a minute at most', async t => {
  const { clock, touches, sessions } = setUp()
  await sessions.open('s', opening)
  for (let second = 0; second < 600; second++) {
    clock.now += 1000
    t.ok(await request(sessions, 's'))
  }
  t.ok(touches.length <= 10, `${touches.length} writes in ten minutes`)
  clock.now += 29 * minute
  t.ok('live' in (await sessions.get('s')), 'half an hour after the last use')
})

t.test('looking at it leaves its idle clock alone', async t => {
  const { clock, touches, sessions } = setUp()
  await sessions.open('s', opening)
  for (let poll = 0; poll < 30; poll++) {
    clock.now += minute
    await sessions.get('s')
  }
  t.same(touches, [])
  t.same(await sessions.get('s'), { ended: 'idle' })
})

t.test('a session in constant use ends at its absolute end', async t => {
  const { clock, sessions } = setUp({ idle: 30 * minute, absolute: 60 * minute, remembered: {} })
  await sessions.open('s', opening)
  for (let i = 0; i < 59; i++) {
    clock.now += minute
    t.ok(await request(sessions, 's'), `minute ${i + 1}`)
  }
  clock.now += minute
  t.same(await sessions.get('s'), { ended: 'absolute' })
})

t.test(
  'a session that is used each second is alive to the millisecond of its absolute end, whenever that comes',
  async t => {
    for (const second of [0, 1, 17, 30, 59]) {
      const { clock, sessions } = setUp({
        idle: 30 * minute,
        absolute: 60 * minute + second * 1000,
        remembered: {}
      })
      const { session } = await sessions.open('s', opening)
      // Some uses long before, so that the last writes fall at all sorts of moments.
      clock.now += 25 * minute
      await request(sessions, 's')
      while (clock.now + 1000 < session.absoluteEnd) {
        clock.now += 1000
        if (!(await request(sessions, 's'))) {
          return t.fail(`over ${session.absoluteEnd - clock.now} ms early`)
        }
      }
      clock.now = session.absoluteEnd - 1
      t.ok('live' in (await sessions.get('s')), 'a millisecond before')
      clock.now += 1
      t.same(await sessions.get('s'), { ended: 'absolute' })
    }
  }
)

t.test('the last use is told to a minute, near the absolute end too', async t => {
  const { clock, sessions } = setUp({ idle: 30 * minute, absolute: 60 * minute, remembered: {} })
  const { session } = await sessions.open('s', opening)
  while (clock.now + 7000 < session.absoluteEnd) {
    clock.now += 7000
    await request(sessions, 's')
    const [listed] = await sessions.list(userOf('1'))
    const late = clock.now - (listed?.lastUsedAt ?? 0)
    if (late < 0 || late > minute) return t.fail(`${late} ms off`)
  }
  t.pass('never off by more')
})

t.test(
  'a session that was signed in by a clock that is wrong is used and ends as others, by the store’s time',
  async t => {
    const { clock, store, sessions } = setUp({
      idle: 30 * minute,
      absolute: 60 * minute,
      remembered: {}
    })
    // The wall clock plays no part: this replica is given the store's time, and ticks of its own.
    const other = createSessions({
      ...usual,
      store: { ...store, follow: () => {} },
      lifeTimes: { idle: 30 * minute, absolute: 60 * minute, remembered: {} },
      now: () => clock.now,
      ticks: () => clock.now - 1_700_000_000_000
    })
    await other.open('s', opening)
    for (let n = 0; n < 55; n++) {
      clock.now += minute
      t.ok(await request(other, 's'), `used, minute ${n}`)
      t.ok('live' in (await sessions.get('s')), `alive elsewhere, minute ${n}`)
    }
  }
)

t.test('a remembered session has life-times of its own', async t => {
  const { clock, sessions } = setUp({
    idle: minute,
    absolute: 2 * minute,
    remembered: { idle: 100 * minute, absolute: 200 * minute }
  })
  const { session: remembered } = await sessions.open('s', { ...opening, remembered: true })
  t.equal(remembered.absoluteEnd - remembered.createdAt, 200 * minute)
  clock.now += 99 * minute
  t.ok('live' in (await sessions.get('s')))
})

t.test('a closed session stays closed and tells its first reason', async t => {
  const { sessions } = setUp()
  await sessions.open('s', opening)
  t.equal(await sessions.close('s', 'revoked'), true)
  t.equal(await sessions.close('s', 'replaced'), false)
  t.same(await sessions.get('s'), { ended: 'revoked' })
})

t.test('a session is not revived by a touch that was under way when it was closed', async t => {
  const { clock, store } = setUp()
  let letGo = () => {}
  const held = new Promise<void>(resolve => {
    letGo = resolve
  })
  const touched: Array<Promise<boolean>> = []
  const slow = createSessions({
    ...usual,
    store: {
      ...store,
      touch: async (...given) => {
        const late = held.then(() => store.touch(...given))
        touched.push(late)
        return await late
      }
    },
    lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
    now: () => clock.now
  })
  await slow.open('s', opening)
  clock.now += 5 * minute
  t.ok(await request(slow, 's'), 'the request that touches')
  await slow.close('s', 'revoked')
  letGo()
  await Promise.all(touched)
  t.equal(touched.length, 1)
  t.same(await slow.get('s'), { ended: 'revoked' })
})

t.test('a session is not revived by a touch that was under way when it went idle', async t => {
  const { clock, store, sessions } = setUp()
  const held = Promise.withResolvers<void>()
  const touched: Array<Promise<boolean>> = []
  const slow = createSessions({
    ...usual,
    store: {
      ...store,
      touch: async (...given) => {
        const late = held.promise.then(() => store.touch(...given))
        touched.push(late)
        return await late
      }
    },
    lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
    now: () => clock.now
  })
  await sessions.open('s', opening)
  clock.now += 30 * minute - 1
  t.equal(await request(slow, 's'), true)
  clock.now += 1
  t.same(await sessions.get('s'), { ended: 'idle' })
  held.resolve()
  await Promise.all(touched)
  t.equal(touched.length, 1)
  t.same(await sessions.get('s'), { ended: 'idle' }, 'over is over')
})

t.test('an id that nobody was given is unknown', async t => {
  t.same(await setUp().sessions.get('guess'), { ended: 'unknown' })
})

t.test('damaged and hostile records are no session', async t => {
  const { store, sessions } = setUp()
  const records = [
    '',
    'garbage',
    '{}',
    'null',
    '[]',
    '{"__proto__":{"identity":{}}}',
    '{"id":1}',
    '{"id":"x","identity":{"id":"1","username":"a","name":"b","roles":"admin"},"createdAt":1,"absoluteEnd":9e99,"idleMs":1}'
  ]
  for (const written of records) {
    let key = ''
    const spied = createSessions({
      ...usual,
      store: {
        ...store,
        create: async given => {
          key = given
        }
      },
      lifeTimes: { idle: minute, absolute: minute, remembered: {} }
    })
    await spied.open(`id-${written}`, opening)
    await store.create(key, seal.close(key, written), minute * 60)
    t.same(await sessions.get(`id-${written}`), { ended: 'unknown' }, written)
  }
})

t.test('a store that cannot answer is told as such, never as "no session"', async t => {
  const { store } = setUp()
  const broken = createSessions({
    ...usual,
    store: {
      ...store,
      read: async () => {
        throw new StoreUnavailable(new Error('gone'))
      }
    },
    lifeTimes: { idle: minute, absolute: minute, remembered: {} }
  })
  await t.rejects(broken.get('s'), { code: 'session.unavailable', status: 503 })
})

t.test('a touch that fails does not fail the request', async t => {
  const { clock, store } = setUp()
  const failures: unknown[] = []
  const sessions = createSessions({
    ...usual,
    store: {
      ...store,
      touch: async () => {
        throw new StoreUnavailable('gone')
      }
    },
    lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
    now: () => clock.now,
    onTouchFailed: error => failures.push(error)
  })
  await sessions.open('s', opening)
  clock.now += 5 * minute
  t.ok(await request(sessions, 's'))
  await Promise.resolve()
  t.equal(failures.length, 1)
})

t.test('a session is extended at once when the user says so', async t => {
  const { clock, touches, sessions } = setUp()
  const live = await sessions.open('s', opening)
  clock.now += 1000
  t.match(await sessions.extend(live), { live: { idleEnd: clock.now + 30 * minute } })
  t.equal(touches.length, 1, 'also within the minute')
})

t.test(
  'a user’s sessions are listed with start, last use, address and agent, oldest first; ended ones are not',
  async t => {
    const { clock, sessions } = setUp()
    const first = await sessions.open('a', opening)
    clock.now += 5 * minute
    await sessions.open('b', { ...opening, address: '192.0.2.2' })
    await sessions.open('other', { ...opening, identity: { ...opening.identity, id: '2' } })
    await request(sessions, 'a')
    clock.now += minute
    const listed = await sessions.list(userOf('1'))
    t.match(listed, [
      {
        session: {
          id: first.session.id,
          address: '192.0.2.1',
          agent: 'test',
          createdAt: first.session.createdAt
        },
        lastUsedAt: clock.now - minute
      },
      { session: { address: '192.0.2.2' } }
    ])
    await sessions.close('a', 'revoked')
    t.equal((await sessions.list(userOf('1'))).length, 1)
  }
)

t.test('users of two sources with one id have their own lists, closes and caps', async t => {
  const { store } = setUp()
  const lifeTimes = { idle: minute, absolute: minute, remembered: {} }
  const sessions = createSessions({
    ...usual,
    perUser: { max: 1, over: 'evict-oldest' },
    store,
    lifeTimes
  })
  await sessions.open('file', opening)
  await sessions.open('back-end', { ...opening, source: 'upstream-login:b' })
  const states = async () =>
    await Promise.all(['file', 'back-end'].map(async id => 'live' in (await sessions.get(id))))
  t.same(await states(), [true, true])
  t.match(await sessions.list(userOf('1')), { length: 1, 0: { session: { source: 'users-file' } } })
  t.equal(await sessions.closeOf(userOf('1')), 1)
  t.same(await states(), [false, true])
})

t.test('one session of a user is closed by its public id, or all but one, or all', async t => {
  const { sessions } = setUp()
  const lives = await Promise.all(['a', 'b', 'c', 'd'].map(id => sessions.open(id, opening)))
  const states = async () =>
    await Promise.all(['a', 'b', 'c', 'd'].map(async id => 'live' in (await sessions.get(id))))
  t.equal(
    await sessions.closeOf(userOf('2'), { only: lives[0]!.session.id }),
    0,
    'not as another user'
  )
  t.equal(await sessions.closeOf(userOf('1'), { only: lives[0]!.session.id }), 1)
  t.same(await states(), [false, true, true, true])
  t.equal(await sessions.closeOf(userOf('1'), { except: lives[1]!.session.id }), 2)
  t.same(await states(), [false, true, false, false])
  t.equal(await sessions.closeOf(userOf('1')), 1)
  t.same(await states(), [false, false, false, false])
})

t.test('no public id looks like an option of a command line', async t => {
  const { sessions } = setUp()
  const ids = await Promise.all(
    Array.from(
      { length: 500 },
      async (_, index) =>
        (
          await sessions.open(`s${index}`, {
            ...opening,
            identity: { ...opening.identity, id: `${index}` }
          })
        ).session.id
    )
  )
  t.same(
    ids.filter(id => !/^[0-9a-f]{12}$/.test(id)),
    []
  )
  t.equal(new Set(ids).size, 500)
})

t.test('all sessions of everyone are closed at once; later ones are not', async t => {
  const { sessions } = setUp()
  await sessions.open('a', opening)
  await sessions.open('b', { ...opening, identity: { ...opening.identity, id: '2' } })
  await sessions.closeAll()
  t.same(await sessions.get('a'), { ended: 'revoked' })
  t.same(await sessions.get('b'), { ended: 'revoked' })
  await sessions.open('c', opening)
  t.ok('live' in (await sessions.get('c')))
})

t.test('one session too many ends the oldest, or is refused, as config says', async t => {
  for (const over of ['evict-oldest', 'refuse'] as const) {
    const { clock, store } = setUp()
    const sessions = createSessions({
      ...usual,
      store,
      perUser: { max: 2, over },
      lifeTimes: { idle: minute, absolute: minute, remembered: {} },
      now: () => clock.now
    })
    for (const id of ['a', 'b']) {
      await sessions.open(id, opening)
      clock.now += 1
    }
    if (over === 'refuse') await t.rejects(sessions.open('c', opening), { code: 'login.too-many' })
    else await sessions.open('c', opening)
    t.same(
      await Promise.all(['a', 'b', 'c'].map(async id => 'live' in (await sessions.get(id)))),
      over === 'refuse' ? [true, true, false] : [false, true, true],
      over
    )
    if (over === 'evict-oldest') t.same(await sessions.get('a'), { ended: 'replaced' })
  }
})

t.test(
  'a sign-in whose session is ended at once ends no other session, and is not one too many',
  async t => {
    for (const over of ['evict-oldest', 'refuse'] as const) {
      const { clock, store, sessions } = setUp()
      for (const id of ['a', 'b', 'c']) await sessions.open(id, opening)
      const ending: SessionStore = {
        ...store,
        follow: () => {},
        indexSession: async (user, key, until) => {
          const notes = await store.indexSession(user, key, until)
          await store.end(key, '!revoked', minute)
          return notes
        }
      }
      const lifeTimes = { idle: 30 * minute, absolute: 480 * minute, remembered: {} }
      const perUser = { max: 2, over }
      const lower = createSessions({
        ...usual,
        store: ending,
        perUser,
        lifeTimes,
        now: () => clock.now
      })
      await lower.open('ended', opening)
      const alive = await Promise.all(
        ['a', 'b', 'c'].map(async id => 'live' in (await sessions.get(id)))
      )
      t.same(alive, [true, true, true], over)
      t.same(await sessions.get('ended'), { ended: 'revoked' }, over)
    }
  }
)

t.test(
  'of many sign-ins at once, by replicas whose clocks differ by an hour, exactly as many stay as may',
  async t => {
    for (const over of ['evict-oldest', 'refuse'] as const) {
      const { clock, store } = setUp()
      const hour = 60 * minute
      const replica = (shift: number) =>
        createSessions({
          ...usual,
          store: { ...store, follow: () => {} },
          perUser: { max: 3, over },
          lifeTimes: { idle: 20 * hour, absolute: 20 * hour, remembered: {} },
          now: () => clock.now + shift
        })
      const replicas = [replica(-hour), replica(0), replica(hour)]
      const ids = Array.from({ length: 30 }, (_, n) => `s${n}`)
      const opened = await Promise.allSettled(
        ids.map((id, n) => replicas[n % 3]!.open(id, opening))
      )
      const alive = await Promise.all(ids.map(async id => 'live' in (await replicas[1]!.get(id))))
      t.equal(alive.filter(Boolean).length, 3, over)
      const accepted = opened.map(({ status }) => status === 'fulfilled')
      if (over === 'refuse') t.same(accepted, alive, 'who was let in stays in')
      else t.same(accepted.filter(Boolean).length, 30)
    }
  }
)

t.test('the newest session stays, also where the clock of its replica is behind', async t => {
  const { clock, store, sessions } = setUp()
  const perUser = { max: 2, over: 'evict-oldest' as const }
  const lifeTimes = { idle: 480 * minute, absolute: 480 * minute, remembered: {} }
  const behind = createSessions({
    ...usual,
    store: { ...store, follow: () => {} },
    perUser,
    lifeTimes,
    now: () => clock.now - 60 * minute
  })
  for (const id of ['a', 'b']) await sessions.open(id, opening)
  await behind.open('late', opening)
  t.same(
    await Promise.all(['a', 'b', 'late'].map(async id => 'live' in (await sessions.get(id)))),
    [false, true, true]
  )
})

t.test('of many sign-ins at once not one too many stays', async t => {
  const { store } = setUp()
  const sessions = createSessions({
    ...usual,
    store,
    lifeTimes: { idle: minute, absolute: minute, remembered: {} }
  })
  await Promise.all(Array.from({ length: 30 }, (_, i) => sessions.open(`s${i}`, opening)))
  t.equal((await sessions.list(userOf('1'))).length, 5, 'nor one too few')
})

t.test(
  'a renewed credential is there for the next request; a closed session gets none',
  async t => {
    const { sessions } = setUp()
    const live = await sessions.open('s', { ...opening, credential: { token: 'old' } })
    await sessions.renew(live, { token: 'new' })
    t.match(await sessions.get('s'), { live: { session: { credential: { token: 'new' } } } })
    await sessions.close('s', 'revoked')
    await sessions.renew(live, { token: 'late' })
    t.same(await sessions.get('s'), { ended: 'revoked' })
  }
)

t.test(
  'repeated requests cost the store nothing; a change by another replica counts at once',
  async t => {
    const { clock, store } = setUp()
    let reads = 0
    const sessions = createSessions({
      ...usual,
      store: {
        ...store,
        read: async key => {
          reads++
          return await store.read(key)
        }
      },
      lifeTimes: { idle: 30 * minute, absolute: 60 * minute, remembered: {} },
      now: () => clock.now
    })
    await sessions.open('s', opening)
    for (let i = 0; i < 100; i++) await sessions.get('s')
    t.ok(reads <= 2, `${reads} reads`)
    const other = createSessions({
      ...usual,
      // At most one follows a store, and that is the first.
      store: { ...store, follow: () => {} },
      lifeTimes: { idle: 30 * minute, absolute: 60 * minute, remembered: {} },
      now: () => clock.now
    })
    await other.close('s', 'revoked')
    t.same(await sessions.get('s'), { ended: 'revoked' })
    t.equal(sessions.getCachedByKey(keyOf('s')), undefined, 'nothing is remembered of it')
  }
)

t.test('while the news of changes may be missing, the store is asked each time', async t => {
  const { clock, store } = setUp()
  let reads = 0
  const deaf: SessionStore = {
    ...store,
    follow: () => {},
    read: async key => {
      reads++
      return await store.read(key)
    }
  }
  const sessions = createSessions({
    ...usual,
    store: deaf,
    lifeTimes: { idle: 30 * minute, absolute: 60 * minute, remembered: {} },
    now: () => clock.now
  })
  await sessions.open('s', opening)
  reads = 0
  for (let i = 0; i < 10; i++) await sessions.get('s')
  t.equal(reads, 10)
})

t.test('a channel that has gone silent is trusted no longer than config says', async t => {
  const { clock, store } = setUp()
  const silent: SessionStore = { ...store, follow: follower => follower.onUp() }
  const sessions = createSessions({
    ...usual,
    maxStalenessMs: 2000,
    store: silent,
    lifeTimes: { idle: 30 * minute, absolute: 60 * minute, remembered: {} },
    now: () => clock.now
  })
  await sessions.open('s', opening)
  t.ok('live' in (await sessions.get('s')))
  const [key = ''] = await store.sessionKeysOf(userOf('1'))
  await store.end(key, '!revoked', minute)
  clock.now += 1999
  t.ok('live' in (await sessions.get('s')), 'within the bound it may still be taken for alive')
  clock.now += 1
  t.same(await sessions.get('s'), { ended: 'revoked' })
})

t.test('a session is narrowed, also where the store does not take its review', async t => {
  const isAway = async () => await Promise.reject(new StoreUnavailable(new Error('away')))
  for (const [replace, roles] of [
    [isAway, ['narrowed']],
    [async () => false, ['narrowed']],
    [async () => true, ['renewed']]
  ] as const) {
    const { store, clock } = setUp()
    const sessions = createSessions({
      ...usual,
      store: { ...store, replace },
      lifeTimes: { idle: 30 * minute, absolute: 480 * minute, remembered: {} },
      now: () => clock.now,
      reviewer: {
        review: session => ({
          narrowed: { ...session, identity: { ...session.identity, roles: ['narrowed'] } },
          renewed: { ...session, identity: { ...session.identity, roles: ['renewed'] } }
        }),
        isLatest: async () => true
      }
    })
    await sessions.open('s', opening)
    t.match(await sessions.get('s'), { live: { session: { identity: { roles } } } })
  }
})

/** The idle clock of sessions, of whose use replicas hear nothing: asked before it is told. */
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createRedisDialler } from '../../src/services/redis.ts'
import { createIdleClock, createTouches, touchEveryMs } from '../../src/session/idle-clock.ts'
import { keyOf, type Session } from '../../src/session/record.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { followRedis } from '../../src/session/redis-invalidation.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions } from '../../src/session/session.ts'
import { type Follower, type SessionStore, StoreUnavailable } from '../../src/session/store.ts'
import { redisConfig } from '../support/config.ts'
import { testRedis } from '../support/redis.ts'
import { opening } from '../support/session-steps.ts'

const minute = 60_000
const idle = 30 * minute
const idPrefix = 'test:'

/** Two stores over the same sessions, as two replicas have them. */
interface Place {
  readonly stores: readonly [SessionStore, SessionStore]
  /** The store's time goes on; nobody is told. */
  readonly pass: (ms: number) => Promise<unknown>
}

async function inMemory(t: Test, now: () => number): Promise<Place> {
  const store = createMemoryStore(now)
  t.teardown(() => store.close())
  const followers: Follower[] = []
  const each = (tell: (follower: Follower) => void) => followers.forEach(tell)
  store.follow({
    onUp: () => {},
    onDown: () => {},
    onHeartbeat: agoMs => each(follower => follower.onHeartbeat(agoMs)),
    onChanged: key => each(follower => follower.onChanged(key)),
    onEpoch: () => each(follower => follower.onEpoch())
  })
  const shared = (): SessionStore => ({
    ...store,
    follow: follower => {
      followers.push(follower)
      follower.onUp()
    }
  })
  return { stores: [shared(), shared()], pass: async () => {} }
}

async function inRedis(t: Test): Promise<Place> {
  const redis = await testRedis(t.after)
  const replica = async () => {
    const dialler = createRedisDialler(
      redisConfig({ url: redis.url, commandTimeout: 30_000, connectTimeout: 30_000 }),
      '.'
    )
    const up = Promise.withResolvers<void>()
    const client = dialler.client({ onUp: up.resolve, onDown: () => {} })
    t.after(() => client.disconnect())
    await up.promise
    const store = createRedisStore({
      redis: client,
      prefix: idPrefix,
      follow: (follower, names) => {
        const dial = () => dialler.trackingConnections(client)
        const options = { dial, onTopology: () => {}, follower, names, maxStalenessMs: 120_000 }
        t.after(followRedis(options))
      }
    })
    return { client, store }
  }
  const [a, b] = [await replica(), await replica()]
  // Of the clocks alone: that of a record is announced.
  const pass = async (ms: number) => {
    for (const key of await a.client.keys(`${idPrefix}clock:*`)) {
      const left = await a.client.pttl(key)
      if (left > ms) await a.client.pexpire(key, left - ms)
      else await a.client.del(key)
    }
  }
  return { stores: [a.store, b.store], pass }
}

/** A replica that counts what it asks, and what it hears. */
async function replicaOn(store: SessionStore, now: () => number, over: Partial<SessionStore> = {}) {
  const counts = { reads: 0, touches: 0 }
  const heard: string[] = []
  const waiting = new Map<string, () => void>()
  const up = Promise.withResolvers<void>()
  const touches = new Set<Promise<boolean>>()
  const sessions = createSessions({
    seal: createSeal(['a secret of at least thirty-two characters']),
    perUser: { max: 5, over: 'evict-oldest' },
    maxStalenessMs: 1e12,
    lifeTimes: { idle, absolute: 480 * minute, remembered: {} },
    now,
    store: {
      ...store,
      read: async key => {
        counts.reads++
        return await store.read(key)
      },
      touch: (...given) => {
        counts.touches++
        const touched = store.touch(...given)
        touches.add(touched)
        return touched
      },
      follow: follower =>
        store.follow({
          ...follower,
          onUp: () => {
            follower.onUp()
            up.resolve()
          },
          onChanged: key => {
            follower.onChanged(key)
            heard.push(key)
            waiting.get(key)?.()
          }
        }),
      ...over
    }
  })
  await up.promise
  const live = async () => {
    const found = await sessions.get('s')
    if (!('live' in found)) throw new Error(`it is over: ${JSON.stringify(found)}`)
    return found.live
  }
  return {
    sessions,
    counts,
    heard,
    live,
    hears: (key: string) => new Promise<void>(resolve => waiting.set(key, resolve)),
    /** As a request does that uses the session: in the cache, where that is possible. */
    use: async () => {
      const idleEnd = sessions.use(sessions.getCachedByKey(keyOf('s')) ?? (await live()))
      await Promise.all(touches)
      return idleEnd
    },
    /** As a request does that tells of the session's time without using it. */
    ask: async () => {
      const cached = sessions.getCachedByKey(keyOf('s'))
      const isKnown = cached !== undefined && !sessions.mayBeLater(cached)
      return (isKnown ? cached : await live()).idleEnd
    }
  }
}

async function setUp(
  t: Test,
  open: (t: Test, now: () => number) => Promise<Place>,
  over?: (store: SessionStore) => Partial<SessionStore>
) {
  const clock = { now: 1_700_000_000_000 }
  const now = () => clock.now
  const { stores, pass } = await open(t, now)
  const [a, b] = [
    await replicaOn(stores[0], now),
    await replicaOn(stores[1], now, over?.(stores[1]))
  ]
  let markers = 0
  return {
    a,
    b,
    clock,
    pass: async (ms: number) => {
      clock.now += ms
      await pass(ms)
    },
    /** News come in order: both have heard of all before this. */
    settle: async () => {
      const marker = `marker-${++markers}`
      const heard = [a.hears(marker), b.hears(marker)]
      await stores[0].create(marker, '{}', 600 * minute)
      await Promise.all(heard)
    },
    /** The minutes that are left. */
    left: (idleEnd: number) => (idleEnd - clock.now) / minute
  }
}

const isNear = (minutes: number, expected: number) => Math.abs(minutes - expected) < 0.1
const isRecent = (minutes: number) => minutes > 29 - 0.1 && minutes < 30 + 0.1

for (const [name, open] of [
  ['memory', inMemory],
  ['Redis', inRedis]
] as const) {
  t.test(`${name}: a session used at one replica, asked for at the other`, async t => {
    const { a, b, pass, settle, left } = await setUp(t, open)
    const { key } = await a.sessions.open('s', opening('u'))
    await settle()
    await b.ask()
    const news = b.heard.length
    for (let minutes = 1; minutes <= 70; minutes++) {
      await pass(minute)
      t.ok(isRecent(left(await a.use())))
      if (minutes % 7 === 0) t.ok(isRecent(left(await b.ask())), `asked after ${minutes} minutes`)
      if (minutes === 36) t.equal(b.sessions.getCachedByKey(keyOf('s'))?.key, key, 'and remembered')
    }
    await settle()
    // One for each doubling of the record's time to live; see redis-scripts.ts.
    const told = b.heard.slice(news).filter(each => each === key).length
    t.ok(told <= (name === 'Redis' ? 2 : 0), `${told} news of 70 minutes`)
    t.equal(a.counts.touches, 70)
    t.ok(a.counts.reads <= 2 + told, 'a replica knows of its own use')
  })

  t.test(`${name}: nobody is told that a session is idle which is used elsewhere`, async t => {
    const { a, b, pass, settle } = await setUp(t, open)
    await a.sessions.open('s', opening('u'))
    await settle()
    await b.ask()
    await pass(20 * minute)
    await a.use()
    await pass(20 * minute)
    t.equal(b.sessions.getCachedByKey(keyOf('s')), undefined, 'as far as it knows, over')
    t.match(await b.sessions.get('s'), { live: {} })
    await pass(10 * minute)
    for (const { sessions } of [a, b]) {
      t.equal(sessions.getCachedByKey(keyOf('s')), undefined)
      t.same(await sessions.get('s'), { ended: 'idle' }, 'half an hour after the last use')
    }
  })

  t.test(`${name}: the clock is asked only where it may tell of more`, async t => {
    const { a, b, pass, settle, left } = await setUp(t, open)
    await a.sessions.open('s', opening('u'))
    await settle()
    await b.ask()
    b.counts.reads = 0
    await pass(minute - 1000)
    for (let times = 0; times < 10; times++) await b.ask()
    t.equal(b.counts.reads, 0, 'no use can have set it later than by a minute')
    await pass(1000)
    await Promise.all(Array.from({ length: 10 }, async () => await b.ask()))
    t.equal(b.counts.reads, 1, 'those who ask at once share the answer')
    await pass(minute)
    await a.use()
    t.ok(isNear(left(await b.ask()), 30), 'used at this moment')
    b.counts.reads = 0
    await pass(5 * minute)
    t.ok(isNear(left(await b.use()), 30))
    t.same(b.counts, { reads: 0, touches: 1 }, 'use need not ask')
    t.ok(isNear(left(await b.ask()), 30))
    t.equal(b.counts.reads, 0)
    t.ok(isNear(left(await a.ask()), 30), 'and the other way round')
  })

  t.test(`${name}: an extension at one replica is told at the other`, async t => {
    const { a, b, pass, settle, left } = await setUp(t, open)
    await a.sessions.open('s', opening('u'))
    await settle()
    await pass(29 * minute)
    t.ok(isNear(left(await b.ask()), 1))
    await a.sessions.extend(await a.live())
    t.ok(isNear(left(await b.ask()), 30), 'at once')
    t.ok(isNear(left(await a.use()), 30), 'and where it was made')
  })

  t.test(`${name}: an end at one replica is news to the other`, async t => {
    const { a, b, pass, settle } = await setUp(t, open)
    await a.sessions.open('s', opening('u'))
    await settle()
    await b.ask()
    await pass(10 * minute)
    await a.use()
    await a.sessions.close('s', 'revoked')
    await settle()
    t.equal(b.sessions.getCachedByKey(keyOf('s')), undefined)
    t.same(await b.sessions.get('s'), { ended: 'revoked' })
    t.same(await a.sessions.get('s'), { ended: 'revoked' })
  })

  t.test(`${name}: use right after a refresh elsewhere is written`, async t => {
    const { a, b, pass, settle, left } = await setUp(t, open)
    await a.sessions.open('s', opening('u'))
    await settle()
    await pass(10 * minute)
    await b.use()
    const refresh = async () => {
      const refreshed = await a.sessions.refresh(await a.live(), 'after-use')
      await settle()
      return 'live' in refreshed ? Math.round(left(refreshed.live.idleEnd)) : refreshed
    }
    t.equal(await refresh(), 29)
    await pass(1000)
    await b.use()
    await pass(10 * minute)
    t.equal(await refresh(), 29, 'it was used since')
    await pass(10 * minute)
    t.equal(await refresh(), 19, 'a timer alone does not extend it')
  })

  t.test(`${name}: a store that cannot be asked makes nobody idle; use goes on`, async t => {
    let isAway = false
    const away = async () => await Promise.reject(new StoreUnavailable(new Error('away')))
    const { a, b, pass, settle } = await setUp(t, open, store => ({
      read: async key => (isAway ? await away() : await store.read(key)),
      touch: async (...given) => (isAway ? await away() : await store.touch(...given))
    }))
    await a.sessions.open('s', opening('u'))
    await settle()
    await b.ask()
    await pass(10 * minute)
    isAway = true
    await t.rejects(b.ask(), { code: 'session.unavailable' })
    const live = b.sessions.getCachedByKey(keyOf('s'))
    await t.rejects(b.sessions.extend(live!), { code: 'session.unavailable' })
    await b.use()
    await pass(25 * minute)
    await t.rejects(b.ask(), { code: 'session.unavailable' })
    isAway = false
    t.same(await b.sessions.get('s'), { ended: 'idle' })
  })
}

t.test('requests at the same time are one use, which is written once', async t => {
  const { a, pass, left } = await setUp(t, inMemory)
  await a.sessions.open('s', opening('u'))
  await pass(10 * minute)
  const live = await a.live()
  t.ok(isNear(left(a.sessions.use(live)), 30))
  for (let times = 0; times < 10; times++) a.sessions.use(live)
  t.equal(a.counts.touches, 1)
})

t.test('use is written once a minute, and more often where the idle time is short', t => {
  t.equal(touchEveryMs({ idleMs: idle }), minute)
  t.equal(touchEveryMs({ idleMs: minute }), minute / 4)
  t.end()
})

t.test('after an extension use is not written again for a while', async t => {
  const { a, pass } = await setUp(t, inMemory)
  await a.sessions.open('s', opening('u'))
  await pass(10 * minute)
  const live = await a.live()
  await a.sessions.extend(live)
  t.equal(a.counts.touches, 1)
  a.sessions.use(live)
  t.equal(a.counts.touches, 1)
})

const unread = async () => await Promise.reject(new Error('use needs no reading'))

t.test('use that could not be written is written a second later, not with each use', async t => {
  let isAway = true
  let touches = 0
  let failures = 0
  let time = 29 * minute
  const clock = createIdleClock({
    store: {
      touch: async () => {
        touches++
        if (isAway) throw new StoreUnavailable('Redis takes no writes')
        return true
      }
    } as unknown as SessionStore,
    touchedAt: createTouches(),
    drop: () => {},
    read: unread,
    onSet: () => {},
    now: () => time,
    ticks: () => time,
    onFailed: () => failures++
  })
  const session = { idleMs: idle } as Session
  const live = { key: 'key', session, idleEnd: idle }
  const useFor = async (seconds: number) => {
    for (let use = 0; use < 10 * seconds; use++) {
      clock.use(live)
      await setImmediate()
      time += 100
    }
  }
  await useFor(3)
  t.same([touches, failures], [3, 3])
  isAway = false
  await useFor(59)
  t.same([touches, failures], [4, 3], 'once it could be written')
})

t.test('of a session that was not used for a minute a replica may know too little', t => {
  const clock = createIdleClock({
    store: {} as SessionStore,
    touchedAt: createTouches(),
    drop: () => {},
    read: unread,
    onSet: () => {},
    now: () => 0,
    ticks: () => 0,
    onFailed: () => {}
  })
  const live = { key: 'key', session: { idleMs: idle } as Session, idleEnd: idle - minute }
  t.equal(clock.mayBeLater(live), true)
  t.equal(clock.mayBeLater({ ...live, idleEnd: idle - minute + 1 }), false)
  t.end()
})

t.test('a touch that comes too late does not keep a session in the cache', async t => {
  const held = Promise.withResolvers<void>()
  const touched: Array<Promise<boolean>> = []
  const { a, b, pass, settle } = await setUp(t, inMemory, store => ({
    touch: async (...given) => {
      const late = held.promise.then(async () => await store.touch(...given))
      touched.push(late)
      return await late
    }
  }))
  await a.sessions.open('s', opening('u'))
  await settle()
  await b.ask()
  await pass(idle - 1)
  b.sessions.use(b.sessions.getCachedByKey(keyOf('s'))!)
  await pass(1)
  held.resolve()
  t.same(await Promise.all(touched), [false])
  // After all that waits for this.
  await setImmediate()
  t.equal(b.sessions.getCachedByKey(keyOf('s')), undefined)
  t.same(await b.sessions.get('s'), { ended: 'idle' })
})

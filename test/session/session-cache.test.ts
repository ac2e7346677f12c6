import t, { type Test } from 'tap'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { SessionCache } from '../../src/session/session-cache.ts'
import type { Follower } from '../../src/session/store.ts'
import { until } from '../support/until.ts'

const maxStalenessMs = 1000

/** A cache of one session, whose questions to the store can be held back until they may go on. */
async function held(t: Test) {
  const inner = createMemoryStore()
  t.teardown(() => inner.close())
  await inner.create('key', 'first', 60_000)
  const clock = { ms: 0 }
  const asked: string[] = []
  const gates: Array<PromiseWithResolvers<void>> = []
  let isHeld = false
  const pass = async (what: string) => {
    asked.push(what)
    if (!isHeld) return
    const gate = Promise.withResolvers<void>()
    gates.push(gate)
    await gate.promise
  }
  const followers: Follower[] = []
  const cache = new SessionCache({
    store: {
      read: async key => {
        const stored = await inner.read(key)
        await pass('read')
        return stored
      },
      epoch: async () => {
        const epoch = await inner.epoch()
        await pass('epoch')
        return epoch
      },
      follow: follower => void followers.push(follower)
    },
    parse: (_key, { record }) => ({ record }),
    maxStalenessMs,
    ticks: () => clock.ms
  })
  const [news] = followers
  if (news === undefined) throw new Error('the cache does not follow the store')
  const write = async (record: string) => {
    const stored = await inner.read('key')
    await inner.replace('key', stored?.record ?? '', record)
  }
  return {
    cache,
    clock,
    news,
    write,
    asked,
    hold: () => void (isHeld = true),
    /** Lets the oldest question go on. */
    release: () => gates.shift()?.resolve(),
    read: async () => (await cache.read('key'))?.record
  }
}

type Held = Awaited<ReturnType<typeof held>>
type Cases = Readonly<Record<string, (place: Held) => void>>

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

t.test('nothing is kept while the news of changes is missing', async t => {
  const { cache, news, read, asked } = await held(t)
  for (let times = 0; times < 2; times++) await read()
  t.equal(asked.length, 2, 'before it comes')
  news.onUp()
  for (let times = 0; times < 2; times++) await read()
  t.equal(asked.length, 3)
  await cache.epoch()
  t.match(cache.getCached('key'), { value: { record: 'first' }, epoch: 0 })
  news.onDown()
  news.onHeartbeat(0)
  t.equal(cache.getCached('key'), undefined)
  for (let times = 0; times < 2; times++) await read()
  t.equal(asked.length, 6, 'after it has ended')
})

t.test('a silence makes all stale, counted from when the news was sent', async t => {
  const { cache, clock, news, read, asked } = await held(t)
  news.onUp()
  await Promise.all([read(), cache.epoch()])
  clock.ms += 500
  news.onHeartbeat(200)
  clock.ms += maxStalenessMs - 201
  t.ok(cache.getCached('key'))
  t.equal(asked.length, 2)
  clock.ms += 1
  t.equal(cache.getCached('key'), undefined)
  await read()
  await cache.epoch()
  t.same(asked.slice(2), ['read', 'epoch'])
})

t.test('what was asked before a change, a gap in the news or a silence is not kept', async t => {
  const cases: Cases = {
    'a change': ({ news }) => news.onChanged('key'),
    'a change that nobody announces': ({ cache }) => cache.update('key', value => value),
    'a new connection': ({ news }) => news.onUp(),
    'a silence': ({ clock }) => void (clock.ms += maxStalenessMs)
  }
  for (const [name, happen] of Object.entries(cases)) {
    const place = await held(t)
    const { news, read, asked, hold, release, write } = place
    news.onUp()
    hold()
    const first = read()
    await until('the store is asked', () => asked.length === 1)
    await write('second')
    happen(place)
    release()
    t.equal(await first, 'first', name)
    news.onHeartbeat(0)
    const second = read()
    await until(`the store is asked again after ${name}`, () => asked.length === 2)
    release()
    t.equal(await second, 'second', name)
  }
})

t.test('who asks after a change gets what is stored since, and shares it', async t => {
  const { news, read, asked, hold, release, write } = await held(t)
  news.onUp()
  hold()
  const first = read()
  await until('the store is asked', () => asked.length === 1)
  await write('second')
  news.onChanged('key')
  const second = read()
  await until('the store is asked again', () => asked.length === 2)
  release()
  t.equal(await first, 'first')
  const third = read()
  release()
  t.same(await Promise.all([second, third]), ['second', 'second'])
  t.equal(await read(), 'second')
  t.equal(asked.length, 2)
})

t.test('who asks after the news has ended gets what is stored since', async t => {
  const { news, read, asked, hold, release, write } = await held(t)
  news.onUp()
  hold()
  const first = read()
  await until('the store is asked', () => asked.length === 1)
  // Nobody announces this change any more: the first reply may be from before it.
  news.onDown()
  await write('second')
  const second = read()
  await until('the store is asked again', () => asked.length === 2)
  release()
  release()
  t.same(await Promise.all([first, second]), ['first', 'second'])
})

t.test('an epoch that was asked before a change, a gap or a silence is not kept', async t => {
  const cases: Cases = {
    'a change': ({ news }) => news.onEpoch(),
    'a new connection': ({ news }) => news.onUp(),
    'a silence': ({ clock }) => void (clock.ms += maxStalenessMs)
  }
  for (const [name, happen] of Object.entries(cases)) {
    const place = await held(t)
    const { cache, news, asked, hold, release } = place
    news.onUp()
    hold()
    const first = cache.epoch()
    await until('the store is asked', () => asked.length === 1)
    happen(place)
    release()
    await first
    news.onHeartbeat(0)
    const second = cache.epoch()
    await until(`the store is asked again after ${name}`, () => asked.length === 2)
    release()
    await second
    await cache.epoch()
    t.equal(asked.length, 2, 'and this one is kept')
    news.onUp()
    const third = cache.epoch()
    await until('a new connection may have missed a change', () => asked.length === 3)
    release()
    await third
  }
})

t.test(
  'after everyone was signed out nothing is taken from the cache before the epoch is',
  async t => {
    const { cache, news, asked, read } = await held(t)
    news.onUp()
    news.onHeartbeat(0)
    await read()
    t.equal(cache.getCached('key'), undefined, 'the epoch is not known yet')
    await cache.epoch()
    t.same(cache.getCached('key'), { value: { record: 'first' }, epoch: 0 })
    news.onEpoch()
    t.equal(cache.getCached('key'), undefined)
    asked.length = 0
    await cache.epoch()
    await cache.epoch()
    t.same(asked, ['epoch'])
    t.match(cache.getCached('key'), { epoch: 0 })
  }
)

t.test('a cached value that may say too little is asked for anew', async t => {
  const { cache, news, asked, read } = await held(t)
  news.onUp()
  await read()
  asked.length = 0
  t.match(await cache.read('key', () => true), { record: 'first' })
  t.same(asked, [])
  t.match(await cache.read('key', ({ record }) => record !== 'first'), { record: 'first' })
  t.same(asked, ['read'])
})

t.test('each announced change is passed on, whether its session is cached or not', async t => {
  const inner = createMemoryStore()
  t.teardown(() => inner.close())
  const followers: Follower[] = []
  const changed: string[] = []
  const cache = new SessionCache({
    store: { ...inner, follow: follower => void followers.push(follower) },
    parse: (_key, { record }) => ({ record }),
    maxStalenessMs,
    onChanged: key => void changed.push(key)
  })
  followers[0]?.onChanged('key')
  t.same(changed, ['key'])
  t.match(cache.stats, { hits: 0, misses: 0 })
  await cache.read('key')
  t.match(cache.stats, { hits: 0, misses: 1 })
})

t.test('a change that is announced, or made here, shows at once', async t => {
  const { cache, news, write, asked, read } = await held(t)
  news.onUp()
  t.equal(await read(), 'first')
  await write('second')
  news.onChanged('key')
  t.equal(await read(), 'second')
  cache.update('key', ({ record }) => ({ record: `${record}, as changed here` }))
  asked.length = 0
  t.equal(await read(), 'second, as changed here')
  t.same(asked, [])
  cache.update('other', () => ({ record: 'never read' }))
  t.equal(await cache.read('other'), undefined)
})

t.test('what was cached before a gap in the news does not come back after it', async t => {
  const { cache, news, write, read } = await held(t)
  news.onUp()
  t.equal(await read(), 'first')
  await cache.epoch()
  news.onDown()
  await write('second')
  t.equal(cache.getCached('key'), undefined)
  news.onUp()
  t.equal(cache.getCached('key'), undefined)
  await cache.epoch()
  t.equal(cache.getCached('key'), undefined)
  t.equal(await read(), 'second')
})

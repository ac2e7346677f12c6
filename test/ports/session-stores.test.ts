/** The adapters of the session store. After failovers: redis/journal.test.ts. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { MemoryStore } from '../../src/session/memory-store.ts'
import type { SignedIn } from '../../src/session/types.ts'
import { passTime, stopClock } from '../support/clock.ts'
import { testRedis } from '../support/redis.ts'
import { minute, openingOf, redisStore } from '../support/sessions.ts'
import { sessionStoreContract } from './session-store.ts'

const user: SignedIn = { source: 's', id: 'u', username: 'u' }
const other: SignedIn = { source: 's', id: 'v', username: 'v' }

t.test('in memory', async t => {
  const pass = stopClock(t.after)
  sessionStoreContract(t, new MemoryStore(), async ms => pass(ms))
})

t.test('what is over leaves no memory behind', async t => {
  const pass = stopClock(t.after)
  const store = new MemoryStore()
  const first = openingOf(user, { stored: { sealed: 'x', idleMs: 1000, absoluteMs: 2000 } })
  await store.open(first)
  pass(5 * minute)
  await store.open(openingOf(other))
  t.match(await store.read(first.key), { sealed: 'x' }, 'for its reason')
  pass(10 * minute)
  await store.open(openingOf(other))
  pass(-10 * minute)
  t.equal(await store.read(first.key), undefined)
  t.same(await store.keysOf(user), [])
})

t.test('in Redis, by a user with the rights of the docs', async t => {
  const redis = await testRedis(t.after)
  const admin = redis.client()
  const docs = readFileSync('docs/operations.md', 'utf8')
  const rights = /user gateway on >PASSWORD (.*)/.exec(docs)?.[1]?.split(' ') ?? []
  await admin.call('ACL', 'SETUSER', 'gateway', 'on', '>password', ...rights)
  const { store, refusals } = await redisStore(
    t.after,
    `redis://gateway:password@127.0.0.1:${redis.port}`,
    '{cg}:'
  )
  sessionStoreContract(t, store, async ms => await passTime(admin, ms))
  t.same(refusals, [])
})

t.test('V1: bursts of 15 sign-ins at once over three replicas leave exactly three', async t => {
  const { url } = await testRedis(t.after)
  const replicas = await Promise.all([1, 2, 3].map(() => redisStore(t.after, url)))
  const at = (index: number) => replicas[index % 3]!.store
  /** @returns the keys of a burst, what each ended, and those of `all` that live */
  const burstOf = async (whose: SignedIn, refuse: boolean, all: readonly string[] = []) => {
    const openings = Array.from({ length: 15 }, () => openingOf(whose, { refuse }))
    const ended = await Promise.all(openings.map(async (each, n) => await at(n).open(each)))
    const keys = openings.map(({ key }) => key)
    const known = [...all, ...keys]
    const found = await Promise.all(known.map(async (key, n) => await at(n).read(key)))
    const alive = known.filter((_, n) => 'sealed' in (found[n] ?? {}))
    const gone = ended.flatMap(each => (typeof each === 'string' ? [] : [...each]))
    t.ok(
      gone.every(([, sealed]) => sealed === openings[0]?.stored.sealed),
      'with its credential'
    )
    const full = ended.filter(each => each === 'full')
    return { keys, ended: gone.map(([key]) => key), full, alive }
  }
  const all: string[] = []
  for (let burst = 0; burst < 20; burst++) {
    const { keys, ended, alive } = await burstOf(user, false, all)
    all.push(...keys)
    t.equal(alive.length, 3)
    t.ok(new Set(keys).isSupersetOf(new Set(alive)), 'of the latest burst')
    t.equal(new Set(ended).size, burst === 0 ? 12 : 15, 'each ended once')
    const refused = await burstOf({ ...user, id: `refused ${burst}` }, true)
    t.equal(refused.full.length, 12)
    t.equal(refused.alive.length, 3)
  }
})

t.test('keys are named, in one slot, and end by themselves', async t => {
  const { url } = await testRedis(t.after)
  const { client, store } = await redisStore(t.after, url)
  const opening = openingOf(user)
  await store.open(opening)
  await store.open(openingOf(user, { former: opening }))
  await store.addTo('some', 'me', 1000)
  const keys = await client.keys('*')
  t.equal(keys.length, 5)
  for (const key of keys) {
    t.match(key, /^\{test\}:/)
    if (!key.endsWith(':users')) t.ok((await client.pttl(key)) > 0, key)
  }
  t.notMatch(await client.get(`{test}:s:${opening.key}`), 'sealed', 'of an ended one the reason')
})

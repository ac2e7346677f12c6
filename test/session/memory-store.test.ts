/** The contract of session stores in memory, and what is dropped and told. */
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { contestedMs } from '../../src/session/store.ts'
import { sessionStoreContract } from '../suites/session-store.ts'
import { retainedBytes } from '../support/retained.ts'

let now = 1_000_000
const store = createMemoryStore(() => now)
t.teardown(() => store.close())
sessionStoreContract(
  t,
  store,
  async ms => {
    now += ms
  },
  () => now
)

/** A store with a clock of its own, whose timers run when a test says so. */
function timed(t: Test) {
  mock.timers.enable({ apis: ['setInterval'] })
  const clock = { now: 1_000_000 }
  const timedStore = createMemoryStore(() => clock.now)
  t.teardown(async () => {
    await timedStore.close()
    mock.timers.reset()
  })
  return { store: timedStore, clock }
}

t.test('what is over is no longer there, and nothing else', async t => {
  const { store: swept, clock } = timed(t)
  const user = (id: string) => identityKey({ source: 's', identity: { id } })
  for (const [name, ms] of [
    ['over', 1000],
    ['alive', 1001]
  ] as const) {
    await swept.create(name, '{}', ms)
    await swept.lock(name, 'owner', ms)
    await swept.indexSession(user('both'), name, clock.now + ms)
    await swept.addSignedIn({ source: 's', id: name, username: name }, clock.now + ms)
  }
  clock.now += 1000
  mock.timers.tick(60_000)
  t.match(await swept.read('alive'), { ttlMs: 1 })
  t.equal(await swept.lock('alive', 'other', 1), false)
  t.same(await swept.sessionKeysOf(user('both')), ['alive'])
  t.same(await swept.signedIn(9), [{ source: 's', id: 'alive', username: 'alive' }])
})

t.test('memory is freed within a minute of the end', async t => {
  const { store: swept, clock } = timed(t)
  const fill = async () => {
    for (let index = 0; index < 20_000; index++) {
      const name = `${index}`
      const user = identityKey({ source: 's', identity: { id: name } })
      await swept.create(name, '{}', 1000)
      await swept.lock(name, 'owner', 1000)
      await swept.fence(name, 'owner', 1000)
      await swept.indexSession(user, name, clock.now + 1000)
      await swept.addSignedIn({ source: 's', id: name, username: name }, clock.now + 1000)
    }
  }
  const bytes = await retainedBytes(async () => {
    await fill()
    clock.now += Math.max(1000, contestedMs)
    mock.timers.tick(60_000)
  })
  t.ok(bytes < 1_000_000, `${bytes}`)
})

t.test('at the moment of its end a record is over', async t => {
  const { store: timedStore, clock } = timed(t)
  await timedStore.create('key', '{}', 1000)
  clock.now += 1000
  t.equal(await timedStore.read('key'), undefined)
  t.equal(await timedStore.touch('key', 1000, -1), false)
})

t.test('each change of the epoch is announced', async t => {
  const { store: told } = timed(t)
  let changes = 0
  told.follow({
    onUp: () => {},
    onDown: () => {},
    onHeartbeat: () => {},
    onChanged: () => {},
    onEpoch: () => changes++
  })
  await told.bumpEpoch()
  t.equal(changes, 1)
  await told.restoreEpoch(5)
  t.equal(changes, 2)
  await told.restoreEpoch(5)
  t.equal(changes, 2, 'it is there already')
  t.equal(await told.epoch(), 5)
})

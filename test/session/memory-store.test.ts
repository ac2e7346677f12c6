/** The contract of session stores in memory, and what is dropped, moved and told. */
import { mock } from 'node:test'
import t, { type Test } from 'tap'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { contestedMs } from '../../src/session/store.ts'
import { sessionStoreContract } from '../suites/session-store.ts'

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
  const tables = () => Array.from(timedStore.entries(), ([table]) => table)
  return { store: timedStore, clock, tables }
}

t.test('what is over is dropped within a minute, and nothing else', async t => {
  const { store: swept, clock, tables } = timed(t)
  const user = (id: string) => identityKey({ source: 's', identity: { id } })
  for (const [name, ms] of [
    ['over', 1000],
    ['alive', 1001]
  ] as const) {
    await swept.create(name, '{}', ms)
    await swept.lock(name, 'owner', ms)
    await swept.indexSession(user(name), name, clock.now + ms)
    await swept.indexSession(user('both'), name, clock.now + ms)
    await swept.addSignedIn({ source: 's', id: name, username: name }, clock.now + ms)
  }
  clock.now += 1000
  mock.timers.tick(60_000)
  const left = tables()
  for (const table of ['records', 'locks', 'signedIn']) {
    t.equal(left.filter(each => each === table).length, 1, table)
  }
  const index = [...swept.entries()].filter(([table]) => table === 'index')
  t.match(
    index.map(([, , sessions]) => sessions),
    [[['alive', {}]], [['alive', {}]]]
  )
  t.match(await swept.read('alive'), { ttlMs: 1 })
  t.equal(await swept.lock('alive', 'other', 1), false)
  t.same(await swept.sessionKeysOf(user('both')), ['alive'])
  t.same(await swept.signedIn(9), [{ source: 's', id: 'alive', username: 'alive' }])
})

t.test('a fence is kept for as long as it may be contested', async t => {
  const { store: swept, clock, tables } = timed(t)
  await swept.lock('name', 'owner', 10)
  await swept.fence('name', 'owner', 10)
  clock.now += contestedMs - 1
  mock.timers.tick(60_000)
  t.ok(tables().includes('fences'))
  clock.now += 1
  mock.timers.tick(60_000)
  t.notOk(tables().includes('fences'))
})

t.test('at the moment of its end a record is over', async t => {
  const { store: timedStore, clock } = timed(t)
  await timedStore.create('key', '{}', 1000)
  clock.now += 1000
  t.equal(await timedStore.read('key'), undefined)
  t.equal(await timedStore.touch('key', 1000, -1), false)
})

t.test('while another process has the state nothing is announced, and nobody may cache', t => {
  const { store: moved } = timed(t)
  const heard: string[] = []
  moved.follow({
    onUp: () => heard.push('up'),
    onDown: () => heard.push('down'),
    onHeartbeat: agoMs => heard.push(`heartbeat ${agoMs}`),
    onChanged: () => {},
    onEpoch: () => {}
  })
  moved.onMoved?.(true)
  moved.onMoved?.(false)
  t.same(heard, ['up', 'down', 'up'])
  mock.timers.tick(250)
  t.same(heard, ['up', 'down', 'up', 'heartbeat 0'])
  t.end()
})

t.test(
  'each change of the epoch is announced, also one that comes from another process',
  async t => {
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
    told.load(['epoch', '', 7])
    t.equal(changes, 3)
    t.equal(await told.epoch(), 7)
  }
)

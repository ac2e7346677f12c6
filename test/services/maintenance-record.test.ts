/** Maintenance as a record in Redis: who takes it, what ends it, and what cannot. */
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createLocalMaintenance } from '../../src/services/maintenance-record.ts'
import { createReplicaSeal } from '../../src/services/replica-seal.ts'
import { wallClock } from '../support/clock.ts'
import { inTouch, secret, testMember } from '../support/ops-services.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const key = 'cg:maintenance'
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString()
const closing = (end: string, message = 'Closed.') => ({
  routes: [],
  methods: [],
  allowRoles: [],
  retryAfter: 60_000,
  message,
  until: end
})

async function pair(t: Test) {
  const server = await testRedis(t.after)
  const settings = { url: server.url, commandTimeout: '5s' }
  const [a, b] = [await testMember(t.after, settings), await testMember(t.after, settings)]
  const redis = new Redis(server.url)
  t.after(() => redis.disconnect())
  redis.on('error', () => {})
  await inTouch([a, b])
  return { a, b, redis, server, settings }
}

t.test('begun at one replica it is in force at both, and so is its end', async t => {
  const { a, b } = await pair(t)
  const begun = await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  t.same([...begun.replicas].toSorted(), [a.bus.id, b.bus.id].toSorted())
  t.same(begun.silent, [])
  t.match(b.inForce, [[{ message: 'Closed.' }]], 'when the act was answered')
  t.match(b.maintenance.current(), [{ author: 'alice', maintenance: { message: 'Closed.' } }])
  await b.maintenance.end([])
  t.same(a.inForce.at(-1), [])
  t.same(a.maintenance.current(), [])
})

t.test('it ends at no day that the calendar does not have', async t => {
  wallClock(t.after)(Date.parse('2031-02-26T00:00Z') - Date.now())
  const local = createLocalMaintenance('a', async () => {})
  for (const end of ['2031-02-28T12:00Z', '2031-03-01T00:00+08:00']) local.checkEnd(end)
  for (const end of ['2031-02-29T00:00Z', '2031-02-30T08:00+08:00']) {
    t.throws(() => local.checkEnd(end), { code: 'request.malformed' }, end)
  }
})

t.test('a replica that hears no messages takes it by looking', async t => {
  const { a, b, redis } = await pair(t)
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
  await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  await until('the other has it', () => b.inForce.length === 1)
  t.match(b.inForce, [[{ message: 'Closed.' }]])
})

t.test('a replica that starts later has it before it listens', async t => {
  const { a, settings } = await pair(t)
  await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  const late = await testMember(t.after, settings)
  await late.read
  t.match(late.inForce, [[{ message: 'Closed.' }]])
})

t.test('it ends by itself', async t => {
  const { a, b, redis } = await pair(t)
  await a.maintenance.begin(closing(inMs(1500)), 'alice')
  await until('both have ended it', () =>
    [a, b].every(({ inForce }) => inForce.length === 2 && inForce[1]?.length === 0)
  )
  await until('nothing is left in Redis', async () => (await redis.exists(key)) === 0)
})

t.test('an end that is past or more than 7 days ahead is refused', async t => {
  const alone = await testMember(t.after, undefined)
  for (const end of [inMs(-1), inMs(7 * 86_400_000 + 60_000), 'never']) {
    await t.rejects(alone.maintenance.begin(closing(end), 'alice'), { code: 'request.malformed' })
  }
  t.same(alone.inForce, [])
})

t.test('without Redis it is in force in this process', async t => {
  const alone = await testMember(t.after, undefined)
  t.equal(alone.maintenance.isShared, false)
  t.same(await alone.maintenance.begin(closing(inMs(60_000)), 'alice'), {
    replicas: [alone.bus.id],
    silent: []
  })
  t.equal(alone.inForce.length, 1)
  await alone.maintenance.end([])
  t.same(alone.inForce.at(-1), [])
})

t.test('while Redis is away it holds, and nothing can be begun or ended', async t => {
  const { a, server } = await pair(t)
  await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  await server.kill()
  await t.rejects(a.maintenance.end([]), { code: 'ops.redis' })
  t.match(a.maintenance.current(), [{ author: 'alice' }])
  await server.start()
  await until('the new server has it', async () => (await a.redis?.exists(key)) === 1)
})

t.test('deleting the record ends nothing: a replica puts it back', async t => {
  const { a, b, redis } = await pair(t)
  await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  await redis.flushall()
  await until('it is back', async () => (await redis.exists(key)) === 1)
  t.equal(b.inForce.length, 1)
})

t.test('an old record that is put back does not revive what was ended', async t => {
  const { a, b, redis } = await pair(t)
  await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  const old = (await redis.get(key)) ?? ''
  await a.maintenance.end([])
  await redis.set(key, old)
  await until('the end is back', async () => (await redis.get(key)) !== old)
  t.same(a.maintenance.current(), [])
  t.same(b.maintenance.current(), [])
})

t.test('a planted record is ignored, counted once, and replaced by the next act', async t => {
  const { a, b, redis } = await pair(t)
  const foreign = createReplicaSeal(['some other secret of more than thirty-two characters'])
  const stored = { version: 9e15, author: 'mallory', at: inMs(0), keepUntil: 9e15 }
  const planted = [
    JSON.stringify({ ...stored, maintenance: closing(inMs(60_000)) }),
    foreign.close('maintenance', JSON.stringify(stored)),
    createReplicaSeal([secret]).close('question', JSON.stringify(stored)),
    'x'.repeat(1_000_000)
  ]
  for (const [index, text] of planted.entries()) {
    await redis.set(key, text)
    await until('both have seen it', async () => {
      const counts = await Promise.all([a.refused(), b.refused()])
      return counts.every(by => (by['unsealed'] ?? 0) + (by['foreign'] ?? 0) === index + 1)
    })
  }
  t.same([...a.inForce, ...b.inForce], [])
  t.same(
    a.log.filter(({ event }) => event === 'replicas.message-refused').map(({ reason }) => reason),
    ['unsealed', 'foreign'],
    'one line for each reason'
  )
  await a.maintenance.begin(closing(inMs(60_000)), 'alice')
  t.equal(b.inForce.length, 1)
})

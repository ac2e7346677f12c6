/** The bus of replicas over a real Redis: which replicas are heard, and what is refused. */
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { createReplicaSeal } from '../../src/services/replica-seal.ts'
import { testCluster } from '../support/cluster.ts'
import { inTouch, secret, testMember } from '../support/ops-services.ts'
import { lose } from '../support/failover.ts'
import { testSentinel } from '../support/sentinel.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const newSecret = 'another secret of at least thirty-two characters'

async function pair(t: Test) {
  const server = await testRedis(t.after)
  const settings = { url: server.url, commandTimeout: '5s' }
  const [a, b] = [await testMember(t.after, settings), await testMember(t.after, settings)]
  const redis = new Redis(server.url)
  t.after(() => redis.disconnect())
  await inTouch([a, b])
  return { a, b, redis, server, settings }
}

/** Keeps the texts that go over the channel of questions. */
async function overhear(t: Test, url: string) {
  const listener = new Redis(url)
  t.after(() => listener.disconnect())
  const texts: string[] = []
  listener.on('message', (_channel, text: string) => texts.push(text))
  await listener.subscribe('cg:replica-questions')
  return texts
}

t.test('each replica answers a question, the asker first', async t => {
  const { a, b } = await pair(t)
  for (const { bus } of [a, b]) {
    bus.serve('greet', payload => ({ ...(payload as object), by: bus.id }))
  }
  const { replies, silent, problem } = await a.bus.ask('greet', { hello: 'all' }, 5000)
  t.same(replies, [
    { replica: a.bus.id, value: { hello: 'all', by: a.bus.id } },
    { replica: b.bus.id, value: { hello: 'all', by: b.bus.id } }
  ])
  t.same(silent, [])
  t.equal(problem, undefined)
})

t.test('a replica that is alone waits for nobody', async t => {
  const server = await testRedis(t.after)
  const alone = await testMember(t.after, { url: server.url, commandTimeout: '5s' })
  await inTouch([alone])
  alone.bus.serve('who', () => 'alone')
  const longer = 10 * 60_000
  t.match(await alone.bus.ask('who', {}, longer), { replies: [{ value: 'alone' }], silent: [] })
})

t.test('an error is a reply, and so is a kind that a replica does not know', async t => {
  const { a, b } = await pair(t)
  a.bus.serve('fail', () => 'fine')
  b.bus.serve('fail', () => {
    throw new Error('not here')
  })
  t.same((await a.bus.ask('fail', {}, 5000)).replies, [
    { replica: a.bus.id, value: 'fine' },
    { replica: b.bus.id, error: 'not here' }
  ])
  const [, reply] = (await a.bus.ask('unheard-of', {}, 5000)).replies
  t.match(reply, { error: /does not know unheard-of: it runs another version/ })
})

t.test('a replica answers 64 questions at once, and others once it has', async t => {
  const { a, b } = await pair(t)
  a.bus.serve('wait', () => 'here')
  const gate = Promise.withResolvers<string>()
  let asked = 0
  b.bus.serve('wait', async () => {
    asked++
    return await gate.promise
  })
  const ask = async () => {
    const { silent } = await a.bus.ask('wait', {}, 60_000)
    return silent.length
  }
  const first = Array.from({ length: 64 }, ask)
  await until('all are being answered', () => asked === 64)
  void a.bus.ask('wait', {}, 1)
  await until('one more is refused', async () => (await b.refused())['crowded'] === 1)
  gate.resolve('there')
  t.same(new Set(await Promise.all(first)), new Set([0]))
  for (let index = 0; index < 64; index++) t.equal(await ask(), 0)
})

t.test('a replica that does not reply in time is named', async t => {
  const { a, b } = await pair(t)
  a.bus.serve('slow', () => 'quick')
  b.bus.serve('slow', async () => await new Promise(() => {}))
  const { replies, silent } = await a.bus.ask('slow', {}, 300)
  t.same(replies, [{ replica: a.bus.id, value: 'quick' }])
  t.same(silent, [b.bus.id])
})

t.test('without Redis the bus reaches this replica alone', async t => {
  const alone = await testMember(t.after, undefined)
  alone.bus.serve('greet', () => 'hello')
  t.same(await alone.bus.ask('greet', {}, 5000), {
    replies: [{ replica: alone.bus.id, value: 'hello' }],
    silent: []
  })
  t.equal((await alone.bus.replicas()).length, 1)
  t.equal(alone.redis, undefined)
})

t.test('while Redis is away only this replica is asked, and the reply says so', async t => {
  const { a, b, server } = await pair(t)
  a.bus.serve('greet', () => 'hello')
  await server.kill()
  const { replies, silent, problem } = await a.bus.ask('greet', {}, 5000)
  t.same(replies, [{ replica: a.bus.id, value: 'hello' }])
  t.same(silent, [b.bus.id])
  t.match(problem, /Redis is unavailable/)
  await server.start()
  await inTouch([a, b])
})

t.test('replicas that share any secret hear each other; others do not', async t => {
  const { url } = await testRedis(t.after)
  const before = await testMember(t.after, { url }, [secret])
  const rotating = await testMember(t.after, { url }, [newSecret, secret])
  const after = await testMember(t.after, { url }, [newSecret])
  await inTouch([rotating], 3)
  const heardBy = async ({ bus }: typeof before) =>
    (await bus.ask('none', {}, 1000)).replies.map(({ replica }) => replica).toSorted()
  t.same(await heardBy(rotating), [before.bus.id, rotating.bus.id, after.bus.id].toSorted())
  t.same(await heardBy(before), [before.bus.id, rotating.bus.id].toSorted())
  t.same(await heardBy(after), [rotating.bus.id, after.bus.id].toSorted())
  t.match(await after.refused(), { foreign: 1 })
})

t.test('a message that is sent again is refused', async t => {
  const { a, b, redis, settings } = await pair(t)
  let calls = 0
  b.bus.serve('count', () => calls++)
  const texts = await overhear(t, settings.url)
  await a.bus.ask('count', {}, 5000)
  await until('the question was overheard', () => texts.length === 1)
  await redis.publish('cg:replica-questions', texts[0] ?? '')
  await until('the copy is refused', async () => (await b.refused())['replayed'] === 1)
  t.equal(calls, 1)
  t.match(
    b.log.filter(({ event }) => event === 'replicas.message-refused'),
    [{ reason: 'replayed' }]
  )
})

const seal = createReplicaSeal([secret])
const questionOf = (at: number) =>
  seal.close(
    'question',
    JSON.stringify({ nonce: `n${at}`, from: 'mallory', at, kind: 'count', payload: {} })
  )

t.test('a message that is too old, of the future, or from before the start is refused', async t => {
  const { b, redis } = await pair(t)
  let calls = 0
  b.bus.serve('count', () => calls++)
  const now = Date.now()
  for (const [index, at] of [now - 31_000, now + 31_000, now - 25_000].entries()) {
    await redis.publish('cg:replica-questions', questionOf(at))
    await until('it is refused', async () => (await b.refused())['stale'] === index + 1)
  }
  t.equal(calls, 0)
})

t.test('what is planted, changed or huge is counted, and has one line for each reason', async t => {
  const { b, redis } = await pair(t)
  let calls = 0
  b.bus.serve('count', () => calls++)
  const good = questionOf(Date.now())
  const foreign = createReplicaSeal([newSecret])
  const planted = [
    ['', 'unsealed'],
    ['{"kind":"count"}', 'unsealed'],
    [`${good.slice(0, -4)}AAAA`, 'unsealed'],
    [seal.close('directory mallory', '{"kind":"count"}'), 'unsealed'],
    [foreign.close('question', '{"kind":"count"}'), 'foreign'],
    ['x'.repeat(300 * 1024), 'oversized'],
    ['a.b '.repeat(60 * 1024), 'unsealed']
  ] as const
  const counts: Record<string, number> = {}
  for (const [text, reason] of planted) {
    counts[reason] = (counts[reason] ?? 0) + 1
    await redis.publish('cg:replica-questions', text)
    await redis.publish(`cg:replica-replies:${b.bus.id}`, text)
  }
  await until('all are refused', async () => {
    const { unsealed = 0, foreign: others = 0, oversized = 0 } = await b.refused()
    return unsealed + others + oversized >= 2 * planted.length - 1
  })
  t.equal(calls, 0)
  const lines = b.log.filter(({ event }) => event === 'replicas.message-refused')
  t.same(new Set(lines.map(({ reason }) => reason)).size, lines.length)
})

t.test('after a flood of messages questions are answered', async t => {
  const { a, b, redis } = await pair(t)
  b.bus.serve('greet', () => 'hello')
  const flood = `${questionOf(Date.now()).slice(0, -4)}AAAA`
  for (let round = 0; round < 20; round++) {
    const pipeline = redis.pipeline()
    for (let n = 0; n < 500; n++) pipeline.publish('cg:replica-questions', flood)
    await pipeline.exec()
  }
  const { replies } = await a.bus.ask('greet', {}, 10_000)
  t.match(
    replies.find(({ replica }) => replica === b.bus.id),
    { value: 'hello' }
  )
  t.equal((await b.refused())['unsealed'], 10_000)
})

t.test('an entry that was planted in the directory is no replica, and nobody calls it', async t => {
  const { a, redis } = await pair(t)
  const key = 'cg:replica-directory'
  const trap = createServer()
  let connections = 0
  trap.on('connection', () => connections++)
  trap.listen(0, '127.0.0.1')
  await once(trap, 'listening')
  t.after(() => trap.close())
  const { port } = trap.address() as AddressInfo
  const address = { id: 'mallory', host: `127.0.0.1:${port}`, url: `http://127.0.0.1:${port}` }
  const info = JSON.stringify({ ...address, seenAt: new Date().toISOString() })
  const old = JSON.stringify({ ...address, seenAt: new Date(Date.now() - 11_000).toISOString() })
  const [ownEntry = ''] = await redis.hvals(key)
  await redis.hset(key, {
    mallory: `${Date.now()} ${info}`,
    foreign: `${Date.now()} ${createReplicaSeal([newSecret]).close('directory foreign', info)}`,
    late: `${Date.now()} ${seal.close('directory late', old)}`,
    copy: ownEntry,
    huge: 'x'.repeat(100_000)
  })
  t.equal((await a.bus.replicas()).length, 2)
  const { silent } = await a.bus.ask('none', {}, 5000)
  t.same(silent, [])
  t.equal(connections, 0)
  await until('what is too long is cleared away', async () => !(await redis.hexists(key, 'huge')))
})

t.test('replicas hear each other in a Cluster', async t => {
  const { nodes } = await testCluster(t.after)
  const settings = { cluster: nodes, commandTimeout: '5s' }
  const [a, b] = [await testMember(t.after, settings), await testMember(t.after, settings)]
  await inTouch([a, b])
  b.bus.serve('greet', () => 'hello')
  t.match((await a.bus.ask('greet', {}, 5000)).replies[1], { value: 'hello' })
})

t.test('after the primary was killed, replicas hear each other through the new one', async t => {
  const sentinel = await testSentinel(t.after)
  const { sentinels, name: primary, servers } = sentinel
  const settings = { sentinels, primary, commandTimeout: '5s' }
  const [a, b] = [await testMember(t.after, settings), await testMember(t.after, settings)]
  await inTouch([a, b])
  b.bus.serve('greet', () => 'hello')
  await lose(servers[0], 'killed')
  await sentinel.downAfter(500)
  const answers = async () => JSON.stringify((await a.bus.ask('greet', {}, 2000)).replies)
  await until('a question reaches the other again', async () => (await answers()).includes('hello'))
  t.equal(await sentinel.primaryPort(), servers[1].port)
})

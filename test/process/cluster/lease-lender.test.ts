/** The primary's accounts of what its workers use of limits. */
import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { machineTicks } from '../../../src/steady-clock.ts'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import { noGrant } from '../../../src/limits/counting/shared-leases.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { LeaseLender } from '../../../src/process/cluster/lease-lender.ts'
import {
  askMs,
  type LimitAnswers,
  type LimitAsks
} from '../../../src/process/cluster/lease-messages.ts'
import { LeaseRelay } from '../../../src/process/cluster/lease-relay.ts'
import { redisConfig } from '../../support/config.ts'
import { wallClock } from '../../support/clock.ts'
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { rule } from '../../suites/tally.ts'

/** A primary of two workers, whose messages arrive at once. */
async function primary(t: Test, redis = testRedis(t.after)) {
  const { url } = await redis
  const lender = new LeaseLender({
    redis: redisConfig({ url }),
    folder: '.',
    metrics: createMetrics(),
    workers: 2
  })
  t.after(() => lender.close())
  const worker = (id: number) => {
    const ends = Object.assign(new EventEmitter(), {
      id,
      isConnected: () => true,
      send: ({ limits }: { readonly limits: LimitAnswers }) => relay.onAnswers(limits)
    })
    const relay = new LeaseRelay(message => ends.emit('message', message), 2, 400)
    lender.serve(ends as unknown as Worker)
    return { relay, tally: relay.tally(createMemoryTally()), ends }
  }
  /** A worker that only writes down what the primary tells it. */
  const listener = (id: number) => {
    const heard: LimitAnswers[] = []
    const ends = Object.assign(new EventEmitter(), {
      id,
      isConnected: () => true,
      send: ({ limits }: { readonly limits: LimitAnswers }) => void heard.push(limits)
    })
    lender.serve(ends as unknown as Worker)
    const ask = (asks: LimitAsks['asks'], limits: Partial<LimitAsks> = {}) => {
      const rules = [[0, limit]] as const
      const message = { sentAt: machineTicks(), rules, asks, forgotten: [], ...limits }
      ends.emit('message', { limits: message })
    }
    const answersOf = (id: number) =>
      heard.flatMap(({ answers }) => answers.filter(([each]) => each === id).map(([, is]) => is))
    return { ends, heard, ask, answersOf }
  }
  return { worker, listener }
}

const limit = rule({ max: 1000 })
const key = '{u:mia}l'
const entry = { rule: limit, key, unreported: 0 }

t.test(
  'what a worker used before a reset does not count after it, and what came after does',
  async t => {
    const { worker } = await primary(t)
    const { relay, tally } = worker(1)
    void tally.report([{ ...entry, unreported: 5 }])
    relay.forget('{u:mia}')
    t.match(await tally.consume([entry]), [{ remaining: 999 }])
  }
)

t.test('an account that comes after the end of a worker counts nothing twice', async t => {
  const { worker } = await primary(t)
  const [first, second] = [worker(1), worker(2)]
  let taken = 0
  let lent = 0
  await until('a part was lent', async () => {
    const [verdict] = await first.tally.consume([entry])
    taken++
    lent = verdict?.grant?.requests ?? 0
    return lent > 0
  })
  first.ends.emit('exit')
  const before = await second.tally.report([entry])
  t.equal(before[0]?.remaining, 1000 - taken - lent, 'its part counts as used')
  void first.tally.report([{ ...entry, unreported: lent }])
  first.relay.flush()
  const after = await second.tally.report([entry])
  t.equal(after[0]?.remaining, before[0]?.remaining)
})

t.test('a question that was read too late counts what was used before it alone', async t => {
  const { worker } = await primary(t)
  const { ends } = worker(1)
  const limits: LimitAsks = {
    sentAt: machineTicks() - askMs,
    rules: [[0, limit]],
    asks: [[1, 'consume', [[0, key, 5, 0]]]],
    forgotten: []
  }
  ends.emit('message', { limits })
  t.match(await worker(2).tally.report([entry]), [{ remaining: 995 }])
})

t.test('a wall clock that is set makes no question late', async t => {
  const { listener } = await primary(t)
  const { ends, answersOf } = listener(1)
  const sent: Array<{ readonly limits: LimitAsks }> = []
  const relay = new LeaseRelay(message => sent.push(message) > 0, 2, 400)
  void relay.tally(createMemoryTally()).report([entry])
  relay.flush()
  wallClock(t.after)(3_600_000)
  for (const message of sent) ends.emit('message', message)
  await until('it is answered', () => answersOf(1).some(answer => answer !== 'under way'))
  t.match(answersOf(1).at(-1), [[false, 1000]])
})

t.test('a number of processes in config counts the workers of this machine as one', async t => {
  const { worker } = await primary(t)
  const { tally } = worker(1)
  const wide = { ...entry, rule: rule({ max: 100_000, replicas: 4 }) }
  await until('Redis is asked', async () => {
    const [verdict] = await tally.consume([{ ...wide, key: 'before' }])
    return (verdict?.remaining ?? 0) > 90_000
  })
  t.match(await tally.consume([wide]), [{ remaining: 99_999, grant: noGrant }])
  // Of two machines each has half of a hundredth, and of two workers each has half of that.
  t.match(await tally.consume([wide]), [{ remaining: 99_998, grant: { requests: 250 } }])
})

t.test('what was asked too late is answered at once: the worker has counted it', async t => {
  const { listener } = await primary(t)
  const { ask, answersOf } = listener(1)
  const entries = [[0, key, 0, 0]] as const
  const late: LimitAsks['asks'] = [
    [1, 'consume', entries],
    [2, 'inspect', entries],
    [0, 'settle', [[0, key, 1, 0]]]
  ]
  ask(late, { sentAt: machineTicks() - askMs })
  await until('both are answered', () => answersOf(2).length === 1)
  t.same([answersOf(1), answersOf(2), answersOf(0)], [['undecided'], ['undecided'], []])
  ask([[3, 'inspect', entries]])
  await until('it is answered', () => answersOf(3).some(answer => answer !== 'under way'))
  t.match(answersOf(3).at(-1), [[false, 999]], 'only what was settled counts')
})

t.test('while Redis is slow a worker hears once that its question is under way', async t => {
  const redis = testRedis(t.after)
  const { listener, worker } = await primary(t, redis)
  const { ask, answersOf } = listener(1)
  const client = new Redis((await redis).url)
  t.after(() => client.disconnect())
  const { tally } = worker(2)
  const shared = { ...entry, key: 'before', rule: rule({ max: 1000, replicas: 4 }) }
  await until('Redis is asked', async () => {
    const [verdict] = await tally.consume([shared])
    return (verdict?.remaining ?? 0) > 900
  })
  ask([[1, 'consume', [[0, 'quick', 0, 0]]]])
  await until('it is answered', () => answersOf(1).length > 0)
  t.same(answersOf(1).at(-1)?.length, 1)
  await client.call('CLIENT', 'PAUSE', '400', 'ALL')
  ask([
    [2, 'consume', [[0, 'slow', 0, 0]]],
    [3, 'inspect', [[0, 'slower', 0, 0]]]
  ])
  await until('both are decided', () => answersOf(2).length > 1 && answersOf(3).length > 1)
  t.match(answersOf(2), ['under way', [[false, 999]]])
  t.match(answersOf(3), ['under way', [[false, 1000]]])
})

t.test('a worker gives back its part where another one needs it', async t => {
  const { worker } = await primary(t)
  const [first, second] = [worker(1), worker(2)]
  const recalled: string[] = []
  let lent = 0
  first.relay.onRecall(keys => {
    recalled.push(...keys)
    void first.tally.report([{ ...entry, unused: lent }])
  })
  let used = 0
  await until('a part was lent', async () => {
    const [verdict] = await first.tally.consume([entry])
    used++
    lent = verdict?.grant?.requests ?? 0
    return lent > 0
  })
  void second.tally.report([{ ...entry, unreported: 1000 - used - lent }])
  let passed = 0
  await until('nothing is left', async () => {
    const [verdict] = await second.tally.consume([entry])
    if (verdict?.exceeded === false) passed += 1
    return verdict?.exceeded === true
  })
  t.equal(passed, lent)
  t.same(recalled, [key])
})

t.test('workers hear how many processes count together, also while they ask nothing', async t => {
  const redis = testRedis(t.after)
  const here = await primary(t, redis)
  const { heard, ask } = here.listener(1)
  ask([[1, 'inspect', [[0, key, 0, 0]]]])
  await until('two of this machine', () => heard.at(-1)?.processes === 2)
  const told = heard.length
  await primary(t, redis)
  await until('and two of the other', () => heard.at(-1)?.processes === 4)
  t.ok(heard.length <= told + 2, 'each change is told once')
})

t.test('a limit that all replicas count is shared by those that are there', async t => {
  const { worker } = await primary(t)
  const { tally } = worker(1)
  const wide = { ...entry, rule: rule({ max: 10_000, replicas: undefined }), key: 'wide' }
  let grants: number[] = []
  await until('a part is lent', async () => {
    const [verdict] = await tally.consume([wide])
    grants = [...grants, verdict?.grant?.requests ?? 0]
    return grants.at(-1) !== 0
  })
  t.equal(grants.at(-1), 50, 'a hundredth, for one of two workers')
})

t.test('other messages of a worker are none of its business', async t => {
  const { listener } = await primary(t)
  const { ends, ask, answersOf } = listener(1)
  for (const message of ['failing', { id: 1, value: true }]) ends.emit('message', message)
  ask([[1, 'inspect', [[0, key, 0, 0]]]])
  await until('it is answered', () => answersOf(1).length > 0)
})

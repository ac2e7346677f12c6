/** The primary's accounts of what its workers use of limits. */
import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
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
import { testRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { rule } from '../../suites/tally.ts'

/** A primary of two workers, whose messages arrive at once. */
async function primary(t: Test) {
  const { url } = await testRedis(t.after)
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
    const relay = new LeaseRelay(message => ends.emit('message', message), 2)
    lender.serve(ends as unknown as Worker)
    return { relay, tally: relay.tally(createMemoryTally()), ends }
  }
  return { worker }
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
    sentAt: Date.now() - askMs,
    rules: [[0, limit]],
    asks: [[1, 'consume', [[0, key, 5, 0]]]],
    forgotten: []
  }
  ends.emit('message', { limits })
  t.match(await worker(2).tally.report([entry]), [{ remaining: 995 }])
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

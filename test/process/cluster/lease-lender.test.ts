/** The primary's accounts of what its workers use of limits. */
import type { Worker } from 'node:cluster'
import { EventEmitter } from 'node:events'
import t, { type Test } from 'tap'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { LeaseLender } from '../../../src/process/cluster/lease-lender.ts'
import type { LimitAnswers } from '../../../src/process/cluster/lease-messages.ts'
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
  let lent = 0
  await until('a part was lent', async () => {
    const [verdict] = await first.tally.consume([entry])
    lent = verdict?.grant?.requests ?? 0
    return lent > 0
  })
  first.ends.emit('exit')
  const before = await second.tally.report([entry])
  void first.tally.report([{ ...entry, unreported: lent }])
  first.relay.flush()
  const after = await second.tally.report([entry])
  t.equal(after[0]?.remaining, before[0]?.remaining)
})

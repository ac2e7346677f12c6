import t from 'tap'
import { measureEventLoop } from '../../src/observability/event-loop.ts'
import { createMetrics } from '../../src/observability/metrics.ts'
import { until } from '../support/until.ts'

/** @returns the number of measurements of at most so many seconds; of all for `+Inf` */
async function countUpTo(metrics: ReturnType<typeof createMetrics>, le: string): Promise<number> {
  const { body } = await metrics.text()
  const line = body.split('\n').find(each => each.includes(`delay_seconds_bucket{le="${le}"}`))
  return Number(line?.split(' ').at(-1))
}

t.test('work that blocks the process is a delay of the event loop', async t => {
  const metrics = createMetrics()
  t.after(measureEventLoop(metrics))
  await until('it measures', async () => (await countUpTo(metrics, '+Inf')) > 2)
  const before = (await countUpTo(metrics, '+Inf')) - (await countUpTo(metrics, '0.1'))
  const startedAt = performance.now()
  while (performance.now() - startedAt < 250);
  await until('the delay is measured', async () => {
    return (await countUpTo(metrics, '+Inf')) - (await countUpTo(metrics, '0.1')) > before
  })
})

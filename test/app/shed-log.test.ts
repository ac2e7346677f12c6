import { mock } from 'node:test'
import t from 'tap'
import { createShedLog } from '../../src/app/shed-log.ts'
import { Metrics } from '../../src/observability/metrics.ts'

t.test('a line has the totals of what was refused since the last one', async t => {
  const lines: unknown[] = []
  const metrics = new Metrics()
  const shed = createShedLog(metrics, {
    warn: (...line: unknown[]) => void lines.push(line)
  } as never)
  for (let n = 1; n <= 5; n++) shed.count('address', { address: `10.0.0.${n}` })
  shed.count('load', { address: '10.0.0.9' })
  shed.write()
  shed.write()
  shed.count('load', { address: '10.0.0.8' })
  shed.write()
  const message = 'refused because of overload'
  const event = 'requests.shed'
  t.same(lines, [
    [{ event, shed: { address: 5, load: 1 }, last: { address: '10.0.0.9' } }, message],
    [{ event, shed: { load: 1 }, last: { address: '10.0.0.8' } }, message]
  ])
  const { body } = await metrics.text()
  t.match(body, 'console_gateway_shed_total{reason="address"} 5')
  t.match(body, 'console_gateway_shed_total{reason="load"} 2')
})

t.test('each second with refusals has a line', t => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const lines: object[] = []
  const shed = createShedLog(new Metrics(), {
    warn: (fields: object) => void lines.push(fields)
  } as never)
  for (let second = 1; second <= 3; second++) {
    shed.count('load', {})
    shed.count('load', {})
    t.equal(lines.length, second - 1)
    mock.timers.tick(1000)
    t.match(
      lines,
      Array.from({ length: second }, () => ({ shed: { load: 2 } }))
    )
  }
  mock.timers.tick(5000)
  t.equal(lines.length, 3, 'none without refusals')
  t.end()
})

t.end()

/** A real Prometheus scrapes a gateway. */
import t from 'tap'
import { start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testPrometheus } from '../support/prometheus.ts'
import { until } from '../support/until.ts'

t.test('Prometheus reads the metrics', async t => {
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}` },
      ops: { listen: `127.0.0.1:${opsPort}`, openMetrics: true }
    }
  })
  await start(t.after, folder).says('listening on')
  const [url, ops] = [`http://127.0.0.1:${port}`, `127.0.0.1:${opsPort}`]
  const prometheus = await testPrometheus(t.after, ops)
  await until('a scrape is there', async () => {
    const target = await prometheus.target()
    if (target?.health === 'down') throw new Error(target.lastError)
    return target?.health === 'up'
  })
  await fetch(`${url}/api/x`, { headers: { connection: 'close' } })
  const errors = 'sum(console_gateway_errors_total{code="route.unknown"})'
  await until('Prometheus has the request', async () => {
    const [series] = await prometheus.query(errors)
    return series?.value[1] === '1'
  })
})

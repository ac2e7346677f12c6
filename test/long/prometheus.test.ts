/** A real Prometheus scrapes a gateway. */
import t from 'tap'
import { start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testPrometheus } from '../support/prometheus.ts'
import { until } from '../support/until.ts'

t.test('Prometheus reads OpenMetrics', async t => {
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}` },
      ops: { listen: `127.0.0.1:${opsPort}`, openMetrics: true }
    }
  })
  await start(t.after, folder).says('listening on')
  const [url, ops] = [`http://127.0.0.1:${port}`, `127.0.0.1:${opsPort}`]
  const response = await fetch(`http://${ops}/metrics`, {
    headers: { accept: 'application/openmetrics-text; version=1.0.0' }
  })
  t.match(response.headers.get('content-type'), 'application/openmetrics-text; version=1.0.0')
  const body = await response.text()
  t.equal(body.match(/# EOF/g)?.length, 1)
  t.match(body, /# EOF\n$/)
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
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const traceparent = (flags: string, id: string) => ({
    headers: { connection: 'close', traceparent: `00-${id}-b7ad6b7169203331-${flags}` }
  })
  await fetch(`${url}/api/x`, traceparent('00', 'f'.repeat(32)))
  await fetch(`${url}/api/x`, traceparent('01', traceId))
  await until('Prometheus has the trace of a request in a bucket', async () => {
    const [found] = await prometheus.exemplars('console_gateway_request_duration_seconds_bucket')
    return found !== undefined && found.exemplars.length > 0
  })
  const found = await prometheus.exemplars('console_gateway_request_duration_seconds_bucket')
  const traces = found.flatMap(({ exemplars }) => exemplars.map(({ labels }) => labels))
  t.same(new Set(traces.map(({ trace_id: id }) => id)), new Set([traceId]), 'only sampled ones')
})

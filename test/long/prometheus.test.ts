/** A real Prometheus scrapes a gateway of two workers. */
import t from 'tap'
import { start } from '../support/command.ts'
import { configFolder } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testPrometheus } from '../support/prometheus.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

async function twoWorkers(after: (undo: () => unknown) => void) {
  const redis = await testRedis(after)
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = await configFolder({
    gateway: {
      server: { listen: `127.0.0.1:${port}`, workers: 2 },
      ops: { listen: `127.0.0.1:${opsPort}`, openMetrics: true },
      redis: { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' },
      session: { secrets: ['${SESSION_SECRET}'] }
    }
  })
  const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
  const gateway = start(after, folder, environment)
  await gateway.says('with 2 workers')
  return { url: `http://127.0.0.1:${port}`, ops: `127.0.0.1:${opsPort}` }
}

t.test('Prometheus reads OpenMetrics of all workers', async t => {
  const { url, ops } = await twoWorkers(t.after)
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
  const workers = await prometheus.query('count by (worker) (console_gateway_requests_in_flight)')
  t.same(workers.map(({ metric }) => metric['worker']).toSorted(), ['1', '2'])
})

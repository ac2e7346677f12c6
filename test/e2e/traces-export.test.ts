/** The export of traces by whole gateways: clients that ask for too much, TLS. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import {
  exportTo,
  setEnvironment,
  type TestCollector,
  testCollector
} from '../support/collector.ts'
import { start } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`
const routes = { routes: { fine: { path: '/api/fine', access: 'public', answer: { json: {} } } } }

const requestIds = ({ requests }: TestCollector) =>
  requests.flatMap(({ spans }) => spans.map(span => span.attributes['console_gateway.request_id']))

t.test('the span of each request is exported once', async t => {
  const collector = await testCollector(t.after)
  exportTo(t.after, collector.url)
  const gateway = await testGateway(t.after, { routes })
  const ids: Array<string | null> = []
  for (let count = 0; count < 20; count++) {
    ids.push((await gateway.call('/api/fine')).headers.get('x-request-id'))
  }
  await until('all spans came', () => requestIds(collector).length >= ids.length)
  t.same(requestIds(collector).toSorted(), ids.toSorted())
})

t.test('a client that has all of its requests sampled fills a bounded queue, no more', async t => {
  const collector = await testCollector(t.after)
  const held: ServerResponse[] = []
  collector.answer = response => void held.push(response)
  exportTo(t.after, collector.url, {
    OTEL_BSP_MAX_QUEUE_SIZE: '50',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10'
  })
  const gateway = await testGateway(t.after, { routes })
  const headers = { traceparent }
  for (let index = 0; index < 300; index++) {
    t.equal((await gateway.call('/api/fine', { headers })).status, 200)
  }
  await until('a batch hangs', () => held.length === 1)
  collector.answer = undefined
  held[0]?.writeHead(200).end()
  await until('those that waited came', () => collector.spans().length === 50)
  await gateway.call('/api/fine', { headers })
  const { reason } = await gateway.logged(({ event }) => event === 'traces.failing')
  t.match(reason, /^Dropped \d+ spans because maxQueueSize reached/)
  await until('the next one came', () => collector.spans().length === 51)
})

t.test('nothing of the exporter is loaded without a collector', async t => {
  const folder = await configFolder({ gateway: { server: { listen: '127.0.0.1:0' } }, routes })
  const watch =
    'data:text/javascript,' +
    encodeURIComponent(
      `import { registerHooks } from 'node:module'
     registerHooks({ load: (url, context, next) => {
       if (url.includes('@opentelemetry/sdk-trace')) console.log('LOADED')
       return next(url, context)
     } })`
    )
  const collector = await testCollector(t.after)
  for (const [environment, isLoaded] of [
    [{}, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url }, true]
  ] as const) {
    const gateway = start(t.after, folder, { ...environment, NODE_OPTIONS: `--import=${watch}` })
    await gateway.says('listening on')
    gateway.signal('SIGTERM')
    await gateway.ended
    t.equal((await gateway.says('stopped')).includes('LOADED'), isLoaded)
  }
})

t.test('settings that cannot be taken are warnings', async t => {
  for (const [variables, warning] of [
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /is not a URL of http or https; no traces/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://c:1', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /"grpc"/],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /takes otlp or none, not "zipkin"/],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, /OTEL_EXPORTER_OTLP_ENDPOINT is not set/],
    [{ OTEL_TRACES_SAMPLER: 'some' }, /does not take "some": parentbased_always_on is taken/],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' }, /1 is taken/]
  ] as const) {
    await t.test(JSON.stringify(variables), async test => {
      setEnvironment(test.after, variables)
      const gateway = await testGateway(test.after, { routes })
      t.match((await gateway.logged(({ event }) => event === 'traces.config'))['msg'], warning)
      t.equal((await gateway.call('/api/fine')).status, 200)
    })
  }
})

t.test('a collector with TLS is believed by OTEL_EXPORTER_OTLP_CERTIFICATE alone', async t => {
  const authority = testAuthority(t.after)
  const collector = await testCollector(t.after, authority)
  exportTo(t.after, collector.url)
  const stranger = await testGateway(t.after, { routes })
  await stranger.call('/api/fine')
  await stranger.logged(({ event }) => event === 'traces.failing')
  t.equal(collector.requests.length, 0)
  setEnvironment(t.after, { OTEL_EXPORTER_OTLP_CERTIFICATE: authority.certificate })
  const gateway = await testGateway(t.after, { routes })
  const id = (await gateway.call('/api/fine')).headers.get('x-request-id')
  await until('the span came', () => requestIds(collector).includes(id))
})

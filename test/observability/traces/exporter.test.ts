/** The export of spans to a real server, which takes them, refuses, hangs or is not there. */
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { Metrics } from '../../../src/observability/metrics.ts'
import { createExporter } from '../../../src/observability/traces/exporter.ts'
import { readTraceSettings } from '../../../src/observability/traces/settings.ts'
import { contextOf } from '../../../src/observability/traces/trace-context.ts'
import { Trail } from '../../../src/observability/trail.ts'
import { partialSuccess, type TestCollector, testCollector } from '../../support/collector.ts'
import { standstill } from '../../support/machine.ts'
import { freePort } from '../../support/ports.ts'
import { until } from '../../support/until.ts'

interface Line {
  readonly event: string
  readonly reason?: string
  readonly dropped?: number
}

function exporterTo(url: string, environment: Record<string, string> = {}) {
  const { exporting } = readTraceSettings(
    { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '10', ...environment },
    '/',
    '1.2.3'
  )
  if (exporting === undefined) throw new Error('nothing is exported')
  const lines: Line[] = []
  const log = {
    info: (fields: object) => lines.push(fields as Line),
    warn: (fields: object) => lines.push(fields as Line)
  }
  const metrics = new Metrics()
  const exporter = createExporter({
    settings: exporting,
    version: '1.2.3',
    hasRedis: false,
    metrics,
    log: log as never
  })
  const counted = async (name: string): Promise<number> => {
    const { body } = await metrics.text()
    const sample = body.split('\n').find(line => line.startsWith(`console_gateway_trace_${name} `))
    return Number(sample?.split(' ')[1] ?? 0)
  }
  return {
    exporter,
    lines,
    exported: () => counted('spans_exported_total'),
    dropped: (reason: string) => counted(`spans_dropped_total{reason="${reason}"}`),
    queued: () => counted('spans_queued')
  }
}

const recording = { sampler: () => true, isRecording: true }

function request(id: string | number) {
  const trail = new Trail(String(id), 'GET', `/api/orders/${id}`, '192.0.2.7')
  Object.assign(trail, { status: 200, ms: 5, route: 'orders' })
  return { trail, trace: contextOf({}, recording), scheme: 'https', template: '/api/orders/:id' }
}

const status =
  (code: number, headers: Record<string, string> = {}, body: Buffer | string = '') =>
  (response: ServerResponse) => {
    response.writeHead(code, headers).end(body)
  }

const idsOf = (collector: TestCollector) =>
  collector.spans().map(({ attributes }) => attributes['console_gateway.request_id'])

t.test('spans arrive in their order, in batches, each once', async t => {
  const collector = await testCollector(t.after)
  const { exporter, exported, lines } = exporterTo(collector.url, {
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10'
  })
  for (let id = 0; id < 35; id++) exporter.add(request(id))
  await until('all came', () => collector.spans().length === 35)
  t.same(
    idsOf(collector),
    Array.from({ length: 35 }, (_, id) => String(id))
  )
  t.ok(collector.requests.every(({ spans }) => spans.length <= 10))
  await until('they were counted', async () => (await exported()) === 35)
  t.same(lines, [], 'nothing to say')
  await exporter.close(1000)
})

t.test('JSON, gzip, headers and the path of an endpoint are as the environment says', async t => {
  const collector = await testCollector(t.after)
  const { exporter } = exporterTo(collector.url, {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/insert/opentelemetry`,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc,x-tenant=a',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=other',
    OTEL_SERVICE_NAME: 'admin gateway'
  })
  exporter.add(request('a'))
  await until('it came', () => collector.spans().length === 1)
  t.match(collector.requests[0], {
    path: '/insert/opentelemetry',
    headers: {
      'content-type': 'application/json',
      'content-encoding': 'gzip',
      'authorization': 'Bearer abc',
      'x-tenant': 'a',
      'user-agent': 'console-gateway/1.2.3'
    },
    resource: {
      'service.name': 'admin gateway',
      'service.version': '1.2.3',
      'deployment.environment.name': 'test'
    }
  })
  await exporter.close(1000)
})

t.test('a batch is sent again after 429, 502, 503, 504, when the collector says', async t => {
  for (const code of [429, 502, 503, 504]) {
    const collector = await testCollector(t.after)
    let refusals = 2
    collector.answer = response => {
      if (--refusals === 0) collector.answer = undefined
      status(code, { 'retry-after': '0' })(response)
    }
    const { exporter, lines, exported } = exporterTo(collector.url)
    exporter.add(request('a'))
    await until('it came', async () => (await exported()) === 1)
    t.same(idsOf(collector), ['a'])
    t.same(
      lines.map(({ event }) => event),
      ['traces.failing', 'traces.ok'],
      'a line for each change'
    )
    t.equal(lines[0]?.reason, `status ${code}`)
    await exporter.close(1000)
  }
})

t.test('without Retry-After it waits, and longer each time', async t => {
  const collector = await testCollector(t.after)
  const times: number[] = []
  collector.answer = response => {
    times.push(performance.now())
    if (times.length === 2) collector.answer = undefined
    status(503)(response)
  }
  const { exporter, exported } = exporterTo(collector.url)
  exporter.add(request('a'))
  await until('it came', async () => (await exported()) === 1)
  times.push(performance.now())
  const [first = 0, second = 0, third = 0] = times
  t.ok(second - first >= 490, `${second - first}`)
  t.ok(third - second >= 990, `${third - second}`)
  await exporter.close(1000)
})

t.test('what the collector refuses for good is dropped at once', async t => {
  const collector = await testCollector(t.after)
  collector.answer = status(400)
  const { exporter, dropped, lines } = exporterTo(collector.url)
  exporter.add(request('a'))
  await until('it was dropped', async () => (await dropped('refused')) === 1)
  t.equal(collector.begun(), 1)
  t.match(lines, [{ event: 'traces.failing', reason: 'status 400' }])
  collector.answer = undefined
  exporter.add(request('b'))
  await until('the next came', () => collector.spans().length === 1)
  await until('it is said', () => lines.length === 2)
  t.match(lines[1], { event: 'traces.ok', dropped: 1 })
  await exporter.close(1000)
})

t.test('spans that the collector rejected of a batch are counted, with its reason', async t => {
  for (const [protocol, body] of [
    ['http/protobuf', partialSuccess(2, 'the attribute is too long')],
    [
      'http/json',
      '{"partialSuccess":{"rejectedSpans":"2","errorMessage":"the attribute is too long"}}'
    ]
  ] as const) {
    const collector = await testCollector(t.after)
    collector.answer = status(200, {}, body)
    const { exporter, dropped, exported, lines } = exporterTo(collector.url, {
      OTEL_EXPORTER_OTLP_PROTOCOL: protocol
    })
    for (const id of ['a', 'b', 'c']) exporter.add(request(id))
    await until('they were counted', async () => (await dropped('refused')) === 2)
    t.equal(await exported(), 1)
    t.match(lines, [{ event: 'traces.failing', reason: 'the attribute is too long' }])
    t.equal(collector.begun(), 1, 'it is not sent again')
    await exporter.close(1000)
  }
})

t.test('spans of a fault of ours are counted, and told once', async t => {
  const collector = await testCollector(t.after)
  const { exporter, lines, exported, dropped } = exporterTo(collector.url, {
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1'
  })
  for (const id of [1, 2]) {
    const broken = request(id)
    Object.defineProperty(broken, 'scheme', {
      get: () => {
        throw new Error('broken')
      }
    })
    exporter.add(broken)
  }
  exporter.add(request(3))
  await exporter.close(5000)
  t.equal(await dropped('fault'), 2)
  t.equal(await exported(), 1)
  t.match(
    lines.map(({ event }) => event),
    ['traces.fault', 'traces.ok']
  )
  t.equal(lines.length, 2)
})

t.test('a hanging collector costs a bounded queue, and one line', async t => {
  const collector = await testCollector(t.after)
  collector.answer = () => {}
  const { exporter, dropped, queued, lines } = exporterTo(collector.url, {
    OTEL_BSP_MAX_QUEUE_SIZE: '100',
    OTEL_EXPORTER_OTLP_TIMEOUT: '50'
  })
  for (let id = 0; id < 100_000; id++) exporter.add(request(id))
  t.ok((await queued()) <= 100)
  t.ok((await dropped('queue')) >= 99_800)
  await until('it was noticed', () => lines.length === 1)
  t.match(lines, [{ event: 'traces.failing', reason: 'no response within 50 ms' }])
  const startedAt = performance.now()
  const stoodStillMs = standstill()
  await exporter.close(200)
  const ms = performance.now() - startedAt
  t.ok(ms < 2000 + stoodStillMs(), 'the stop does not wait for it')
  t.equal(lines.length, 1)
})

t.test('the stop does not wait for a request that hangs since before it', async t => {
  const collector = await testCollector(t.after)
  collector.answer = () => {}
  const { exporter, dropped } = exporterTo(collector.url, {
    OTEL_EXPORTER_OTLP_TIMEOUT: '60000'
  })
  exporter.add(request('a'))
  await until('it hangs', () => collector.begun() === 1)
  const startedAt = performance.now()
  await exporter.close(200)
  t.ok(performance.now() - startedAt < 10_000)
  t.equal(collector.begun(), 1, 'nor is it sent again')
  t.equal(await dropped('stop'), 1)
})

t.test('a collector that is not there, or hangs up, costs one line and no stop', async t => {
  const collector = await testCollector(t.after)
  collector.answer = response => response.destroy()
  for (const url of [`http://127.0.0.1:${await freePort()}`, collector.url]) {
    const { exporter, dropped, lines } = exporterTo(url)
    for (let id = 0; id < 20; id++) exporter.add(request(id))
    await until('it was noticed', () => lines.length === 1)
    t.match(lines[0]?.reason, /^ECONN/)
    await exporter.close(5000)
    t.equal(await dropped('stop'), 20)
    exporter.add(request('late'))
    t.equal(await dropped('queue'), 1, 'after the stop nothing is taken')
    t.equal(lines.length, 1)
  }
})

t.test('a stop sends what waits', async t => {
  const collector = await testCollector(t.after)
  const { exporter } = exporterTo(collector.url, {
    OTEL_BSP_SCHEDULE_DELAY: '3600000',
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '8'
  })
  for (let id = 0; id < 20; id++) exporter.add(request(id))
  await exporter.close(5000)
  t.equal(collector.spans().length, 20)
})

t.test('a response without end is not read without end', async t => {
  const collector = await testCollector(t.after)
  collector.answer = response => {
    response.writeHead(200)
    const write = () => {
      while (!response.destroyed && response.write(Buffer.alloc(16 * 1024)));
    }
    response.on('drain', write)
    write()
  }
  const { exporter, exported } = exporterTo(collector.url)
  exporter.add(request('a'))
  await until('it counts as taken', async () => (await exported()) === 1)
  await exporter.close(1000)
})

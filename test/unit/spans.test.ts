/** Spans as the library writes them, read by a decoder that is not ours. */
import { resourceFromAttributes } from '@opentelemetry/resources'
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace'
import t from 'tap'
import { createSpans } from '../../src/observability/traces/spans.ts'
import { Trail, TrailAttempt } from '../../src/observability/trail.ts'
import { decode } from '../support/collector.ts'

const trace = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentId: '00f067aa0ba902b7',
  sampled: true,
  isRecorded: true,
  isLogged: true,
  state: 'foo=1'
}
const resource = resourceFromAttributes({
  'service.name': 'console-gateway',
  'process.pid': 4711
})

function written(request: Parameters<ReturnType<typeof createSpans>>[0]) {
  const exporter = new InMemorySpanExporter()
  createSpans(new SimpleSpanProcessor({ exporter }), resource, true)(request)
  const bytes = ProtobufTraceSerializer.serializeRequest(exporter.getFinishedSpans())
  return decode(bytes ?? new Uint8Array())
}

t.test('a request with its steps and attempts, whatever their texts are', async t => {
  for (const text of ['orders', '', '\ud800', 'ä'.repeat(300), '\0\u202e']) {
    const trail = new Trail('4f0c', 'PROPFIND', '/x', '192.0.2.7')
    const values = { route: text, limit: text, status: 502, code: 'upstream.timeout', ms: 12.5 }
    Object.assign(trail, values, { sessionMs: 1, sessionAt: trail.startedAt + 0.5 })
    const attempt = new TrailAttempt('b', 'http://b', { purpose: 'request' })
    const span = { id: 'a'.repeat(16), method: 'GET', url: 'http://b.example:8080/x' }
    trail.addAttempt(Object.assign(attempt, { span, part: text, ms: 3, failure: 'left' }))
    const request = { trail, trace, scheme: 'https', template: undefined }
    const { resource: of, scope, spans } = written(request)
    t.same(of, { 'service.name': 'console-gateway', 'process.pid': 4711 })
    t.match(scope, /^console-gateway \d+\.\d+\.\d+/)
    t.match(spans, [
      {
        kind: 'SPAN_KIND_SERVER',
        parentSpanId: trace.parentId,
        traceState: 'foo=1',
        flags: 0x301,
        isError: true,
        attributes: { 'http.request.method': '_OTHER', 'error.type': 'upstream.timeout' }
      },
      { kind: 'SPAN_KIND_CLIENT', name: 'session', parentSpanId: trace.spanId, flags: 0x101 },
      { kind: 'SPAN_KIND_CLIENT', spanId: span.id, isError: false }
    ])
    const { startTimeUnixNano: start = '', endTimeUnixNano: end = '' } = spans[0] ?? {}
    t.equal(Number(BigInt(end) - BigInt(start)) / 1e6, 12.5)
    t.ok(Math.abs(Number(BigInt(start) / 1_000_000n) - trail.at) <= 1)
    t.equal(spans[0]?.attributes['console_gateway.route'], text.toWellFormed())
  }
})

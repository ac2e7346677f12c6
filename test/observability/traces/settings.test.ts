/** OpenTelemetry's environment variables. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { readTraceSettings } from '../../../src/observability/traces/settings.ts'
import { testAuthority } from '../../support/authority.ts'

const endpoint = 'http://collector.example:4318'
const read = (environment: Record<string, string>, folder = '/') =>
  readTraceSettings(environment, folder, '1.2.3')
const withEndpoint = (environment: Record<string, string>, folder = '/') =>
  read({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...environment }, folder)
const traceId = '0af7651916cd43dd8448eb211c80319c'

t.test('without an endpoint nothing is exported, and new traces are sampled', async t => {
  const { exporting, sampler, problems } = read({})
  t.equal(exporting, undefined)
  t.equal(sampler?.(traceId, undefined), true)
  t.same(problems, [])
  t.equal(withEndpoint({ OTEL_TRACES_EXPORTER: 'none' }).exporting, undefined)
  const disabled = withEndpoint({ OTEL_SDK_DISABLED: 'True' })
  t.match(disabled, { sampler: undefined, exporting: undefined, problems: [] })
  t.match(read({ OTEL_TRACES_EXPORTER: 'otlp' }).problems, [/ENDPOINT is not set/])
})

t.test('the defaults are those of the specification', async t => {
  const { exporting, problems } = withEndpoint({ OTEL_EXPORTER_OTLP_HEADERS: '' })
  t.same(problems, [])
  t.match(exporting, {
    encoding: 'protobuf',
    isCompressed: false,
    headers: {},
    tls: {},
    timeoutMs: 10_000,
    batchTimeoutMs: 30_000,
    delayMs: 5000,
    maxQueue: 2048,
    maxBatch: 512
  })
  t.equal(exporting?.url.href, `${endpoint}/v1/traces`)
})

t.test('variables of traces come before those of all signals', async t => {
  const { exporting } = withEndpoint({
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://all.example/otlp/',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1',
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=2',
    OTEL_EXPORTER_OTLP_TIMEOUT: '1000',
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: '2000'
  })
  t.equal(exporting?.url.href, 'https://all.example/otlp/v1/traces')
  t.match(exporting, { encoding: 'json', timeoutMs: 2000 })
  t.same(exporting?.headers, { b: '2' })
  const traces = withEndpoint({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://t.example/own' })
  t.equal(traces.exporting?.url.href, 'http://t.example/own', 'as it is')
})

t.test('what cannot be exported is said, and the gateway goes on without', async t => {
  const unusable: Array<[Record<string, string>, RegExp]> = [
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, /grpc.*http\/protobuf/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }, /not a URL/],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://u:p@c.example' }, /HEADERS/],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, /otlp or none/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'no pair' }, /name=value/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a b=1' }, /name/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=1%0d%0ab' }, /characters/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=%zz' }, /name=value/],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=file:/nowhere/token' }, /ENOENT/],
    [{ OTEL_EXPORTER_OTLP_CERTIFICATE: '/nowhere/ca.pem' }, /ENOENT/]
  ]
  for (const [environment, message] of unusable) {
    const { exporting, problems, sampler } = withEndpoint(environment)
    t.equal(exporting, undefined)
    t.equal(problems.length, 1)
    t.match(problems[0], message)
    t.match(problems[0], /no traces are exported$/)
    t.ok(sampler, 'contexts go on')
    t.notMatch(problems[0], /u:p/)
  }
})

t.test('a wrong value is said, and the default is taken', async t => {
  const { exporting, sampler, problems } = withEndpoint({
    OTEL_TRACES_SAMPLER: 'sometimes',
    OTEL_BSP_MAX_QUEUE_SIZE: '-1',
    OTEL_BSP_SCHEDULE_DELAY: 'soon',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'br',
    OTEL_RESOURCE_ATTRIBUTES: 'nonsense'
  })
  t.match(exporting, { maxQueue: 2048, delayMs: 5000, isCompressed: false })
  t.equal(sampler?.(traceId, undefined), true)
  t.equal(problems.length, 5)
  const ratio = read({ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' })
  t.equal(ratio.problems.length, 1)
  t.equal(ratio.sampler?.(traceId, undefined), true)
})

t.test('secrets of headers, and certificates, are read from files', async t => {
  const folder = mkdtempSync(join(tmpdir(), 'otel-'))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'token'), 'Bearer a=b,c\n')
  const pair = testAuthority(t.after)
  const [certificate, key] = [pair.certificate, pair.key].map(file =>
    readFileSync(file, 'utf8').trimEnd()
  )
  writeFileSync(join(folder, 'ca.pem'), `${certificate}\n`)
  const { exporting, problems } = withEndpoint(
    {
      OTEL_EXPORTER_OTLP_HEADERS: `Authorization=file:token,x-a=file:${join(folder, 'token')}`,
      OTEL_EXPORTER_OTLP_CERTIFICATE: 'ca.pem',
      OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: 'ca.pem',
      OTEL_EXPORTER_OTLP_CLIENT_KEY: pair.key
    },
    folder
  )
  t.same(problems, [])
  t.same(exporting?.headers, { 'authorization': 'Bearer a=b,c', 'x-a': 'Bearer a=b,c' })
  t.same(exporting?.tls, { ca: certificate, cert: certificate, key })
})

t.test('a key that fits no certificate is said at once, not with each batch', t => {
  const [one, other] = [testAuthority(t.after), testAuthority(t.after)]
  for (const key of [other.key, one.certificate]) {
    const { exporting, problems } = withEndpoint({
      OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE: one.certificate,
      OTEL_EXPORTER_OTLP_CLIENT_KEY: key
    })
    t.equal(exporting, undefined)
    t.match(problems, [/CLIENT_KEY are no certificate and its key.*\(ERR_/])
    t.equal(problems.length, 1)
  }
  t.end()
})

t.test('an authority that is no certificate is said at once, too', t => {
  const { key } = testAuthority(t.after)
  const { exporting, problems } = withEndpoint({ OTEL_EXPORTER_OTLP_CERTIFICATE: key })
  t.equal(exporting, undefined)
  t.match(problems, [/OTEL_EXPORTER_OTLP_CERTIFICATE is none \(ERR_/])
  t.end()
})

t.test('the queue holds a batch at least', async t => {
  t.match(withEndpoint({ OTEL_BSP_MAX_QUEUE_SIZE: '100' }).exporting, { maxBatch: 100 })
})

/**
 * Sends spans to a collector by OpenTelemetry's own exporter, which reads its settings from
 * `process.env`. It takes 26 MB and 140 ms of CPU time, so it is loaded only where a collector is
 * named.
 */
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { createQuiet } from '../quiet.ts'
import type { EndedRequest, SpanOrigin } from './spans.ts'

interface Options {
  readonly environment: NodeJS.ProcessEnv
  readonly version: string
  readonly hasRedis: boolean
  readonly log: {
    readonly info: (fields: object, message: string) => void
    readonly warn: (fields: object, message: string) => void
  }
}

export interface SpanExport {
  /** Of a request that has ended, and whose trace is recorded. */
  readonly add: (request: EndedRequest) => void
  /** Sends the last spans, within a bounded time. */
  readonly close: () => Promise<void>
}

/** Less than the time that the end of a process has after its drain. */
const flushMs = 2000

/** @returns undefined where no collector is named, or none that spans can be sent to */
export function openExport({ environment, log, ...origin }: Options): SpanExport | undefined {
  const { url, problem } = collectorOf(environment)
  if (problem !== undefined) {
    log.warn({ event: 'traces.config' }, `${problem}; no traces are exported`)
  }
  if (url === undefined) return undefined
  log.info(
    { event: 'traces.export', collector: url.origin },
    `traces are exported to ${url.origin}`
  )
  const opening = open({ environment, log, ...origin })
  return {
    add: request => void opening.then(({ add }) => add(request)),
    close: async () => {
      const closing = opening.then(({ close }) => close())
      await Promise.race([closing, wait(flushMs, undefined, { ref: false })])
    }
  }
}

/** The collector, as the library will find it, or why spans cannot be sent there. */
function collectorOf(environment: NodeJS.ProcessEnv): { url?: URL; problem?: string } {
  const valueOf = (name: string) => environment[name]?.trim() || undefined
  const ofOtlp = (name: string) =>
    valueOf(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? valueOf(`OTEL_EXPORTER_OTLP_${name}`)
  const endpoint = ofOtlp('ENDPOINT')
  const exporter = valueOf('OTEL_TRACES_EXPORTER') ?? (endpoint === undefined ? 'none' : 'otlp')
  const protocol = ofOtlp('PROTOCOL') ?? 'http/protobuf'
  if (exporter === 'none') return {}
  if (exporter !== 'otlp') {
    return { problem: `OTEL_TRACES_EXPORTER takes otlp or none, not "${exporter}"` }
  }
  if (endpoint === undefined) {
    return { problem: 'OTEL_TRACES_EXPORTER is otlp, but OTEL_EXPORTER_OTLP_ENDPOINT is not set' }
  }
  if (protocol !== 'http/protobuf') {
    const advice = 'set http/protobuf, and an endpoint that takes it (most often port 4318)'
    return { problem: `OTEL_EXPORTER_OTLP_PROTOCOL does not take "${protocol}": ${advice}` }
  }
  if (/^https?:/.test(endpoint) && URL.canParse(endpoint)) return { url: new URL(endpoint) }
  return { problem: 'OTEL_EXPORTER_OTLP_ENDPOINT is not a URL of http or https' }
}

async function open({ environment, version, hasRedis, log }: Options): Promise<SpanExport> {
  const [{ spansOf }, { diag, DiagLogLevel }, { BatchSpanProcessor }, exporters, resources] =
    await Promise.all([
      import('./spans.ts'),
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-proto'),
      import('@opentelemetry/resources')
    ])
  const report = faultLog(log)
  diag.setLogger(
    { error: report, warn: report, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true }
  )
  const numberOf = (name: string, fallback: number) => {
    const value = Number(environment[name] || fallback)
    return Number.isInteger(value) && value > 0 ? value : fallback
  }
  const processor = new BatchSpanProcessor({
    exporter: new exporters.OTLPTraceExporter(),
    maxQueueSize: numberOf('OTEL_BSP_MAX_QUEUE_SIZE', 2048),
    maxExportBatchSize: numberOf('OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512),
    scheduledDelayMillis: numberOf('OTEL_BSP_SCHEDULE_DELAY', 5000),
    exportTimeoutMillis: numberOf('OTEL_BSP_EXPORT_TIMEOUT', 30_000)
  })
  const { resourceFromAttributes, detectResources, envDetector } = resources
  const own = resourceFromAttributes({
    'service.name': 'console-gateway',
    'service.version': version,
    'service.instance.id': `${hostname()}:${process.pid}`,
    'host.name': hostname(),
    'process.pid': process.pid
  })
  const origin: SpanOrigin = {
    resource: own.merge(detectResources({ detectors: [envDetector] })),
    instrumentationScope: { name: 'console-gateway', version },
    hasRedis
  }
  return {
    add: request => {
      for (const span of spansOf(request, origin)) processor.onEnd(span)
    },
    close: () => processor.shutdown().catch(() => {})
  }
}

/** The library reports errors as text, some of it JSON with the stack; one may come for each batch. */
function faultLog(log: Options['log']): (text: string, ...more: unknown[]) => void {
  const onceAMinute = createQuiet()
  return (text, ...more) =>
    onceAMinute(() => {
      const reason = /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? [text, ...more].join(' ')
      log.warn({ event: 'traces.failing', reason }, 'spans could not be exported, and are lost')
    })
}

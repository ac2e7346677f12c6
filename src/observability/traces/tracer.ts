/**
 * Traces, as OpenTelemetry's environment variables ask for them. The exporter takes 26 MB and 140
 * ms of CPU time, so it is loaded only where a collector is named.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { hostname } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import packageJson from '../../../package.json' with { type: 'json' }
import { createQuiet } from '../quiet.ts'
import { contextOf, type Sampler, type TraceContext } from './context.ts'
import type { EndedRequest } from './spans.ts'

export type Tracer = ReturnType<typeof createTracer>

type Log = Pick<Logger, 'info' | 'warn'>
type Environment = Readonly<NodeJS.ProcessEnv>

const { version } = packageJson
const defaultName = 'parentbased_always_on'
const defaultSampler: Sampler = { ratio: 1, followsCaller: true }
/** Less than the time that the end of a process has after its drain. */
const flushMs = 2000

function createTracer(sampler?: Sampler, exporting?: ReturnType<typeof openExport>) {
  return {
    /** The context of a request that begins; undefined where traces are turned off. */
    begin: (headers: IncomingHttpHeaders): TraceContext | undefined =>
      sampler && contextOf(headers, sampler, exporting !== undefined),
    add: (request: EndedRequest): void => void exporting?.then(({ add }) => add(request)),
    /** Sends the last spans, within a bounded time. */
    close: async (): Promise<void> => {
      const closing = exporting?.then(({ close }) => close())
      await Promise.race([closing, wait(flushMs, undefined, { ref: false })])
    }
  }
}

export const contextsOnly = (): Tracer => createTracer(defaultSampler)

export function openTracer(hasRedis: boolean, log: Log): Tracer {
  const warn = (problem: string) => log.warn({ event: 'traces.config' }, problem)
  if (process.env['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return createTracer()
  const sampler = samplerOf(process.env, warn)
  const collector = collectorOf(process.env, problem => warn(`${problem}; no traces are exported`))
  if (collector === undefined) return createTracer(sampler)
  const { origin } = collector
  log.info({ event: 'traces.export', collector: origin }, `traces are exported to ${origin}`)
  return createTracer(sampler, openExport(hasRedis, log))
}

export function samplerOf(environment: Environment, warn: (problem: string) => void): Sampler {
  const name = environment['OTEL_TRACES_SAMPLER']?.trim() || defaultName
  const [, followed, kind] = /^(parentbased_)?(always_on|always_off|traceidratio)$/.exec(name) ?? []
  if (kind === undefined) {
    warn(`OTEL_TRACES_SAMPLER does not take "${name}": ${defaultName} is taken`)
    return defaultSampler
  }
  const followsCaller = followed !== undefined
  if (kind !== 'traceidratio') return { ratio: kind === 'always_on' ? 1 : 0, followsCaller }
  const ratio = Number(environment['OTEL_TRACES_SAMPLER_ARG'] || 1)
  if (ratio >= 0 && ratio <= 1) return { ratio, followsCaller }
  warn('OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: 1 is taken')
  return { ratio: 1, followsCaller }
}

/** The collector that the library will find. */
function collectorOf(environment: Environment, warn: (problem: string) => void): URL | undefined {
  const valueOf = (name: string) => environment[name]?.trim() || undefined
  const ofOtlp = (name: string) =>
    valueOf(`OTEL_EXPORTER_OTLP_TRACES_${name}`) ?? valueOf(`OTEL_EXPORTER_OTLP_${name}`)
  const endpoint = ofOtlp('ENDPOINT')
  const exporter = valueOf('OTEL_TRACES_EXPORTER') ?? (endpoint === undefined ? 'none' : 'otlp')
  const protocol = ofOtlp('PROTOCOL') ?? 'http/protobuf'
  if (exporter === 'none') return undefined
  if (exporter !== 'otlp') warn(`OTEL_TRACES_EXPORTER takes otlp or none, not "${exporter}"`)
  else if (endpoint === undefined) {
    warn('OTEL_TRACES_EXPORTER is otlp, but OTEL_EXPORTER_OTLP_ENDPOINT is not set')
  } else if (protocol !== 'http/protobuf') {
    const advice = 'set http/protobuf, and an endpoint that takes it (most often port 4318)'
    warn(`OTEL_EXPORTER_OTLP_PROTOCOL does not take "${protocol}": ${advice}`)
  } else if (/^https?:/.test(endpoint) && URL.canParse(endpoint)) return new URL(endpoint)
  else warn('OTEL_EXPORTER_OTLP_ENDPOINT is not a URL of http or https')
  return undefined
}

async function openExport(hasRedis: boolean, log: Log) {
  const [{ createSpans }, { diag, DiagLogLevel }, { BatchSpanProcessor }, exporters, resources] =
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
  const processor = new BatchSpanProcessor({
    exporter: new exporters.OTLPTraceExporter(),
    maxQueueSize: batchSetting('MAX_QUEUE_SIZE', 2048),
    maxExportBatchSize: batchSetting('MAX_EXPORT_BATCH_SIZE', 512),
    scheduledDelayMillis: batchSetting('SCHEDULE_DELAY', 5000),
    exportTimeoutMillis: batchSetting('EXPORT_TIMEOUT', 30_000)
  })
  const own = resources.resourceFromAttributes({
    'service.name': 'console-gateway',
    'service.version': version,
    'service.instance.id': `${hostname()}:${process.pid}`,
    'host.name': hostname(),
    'process.pid': process.pid
  })
  const named = resources.detectResources({ detectors: [resources.envDetector] })
  return {
    add: createSpans(processor, own.merge(named), hasRedis),
    close: () => processor.shutdown().catch(() => {})
  }
}

function batchSetting(name: string, standard: number): number {
  const value = Number(process.env[`OTEL_BSP_${name}`] || standard)
  return Number.isInteger(value) && value > 0 ? value : standard
}

/** The library reports errors as text, some of it JSON with the stack; one may come for each batch. */
function faultLog(log: Log): (text: string, ...more: unknown[]) => void {
  const onceAMinute = createQuiet()
  return (text, ...more) =>
    onceAMinute(() => {
      const reason = /"message":"((?:[^"\\]|\\.)*)"/.exec(text)?.[1] ?? [text, ...more].join(' ')
      log.warn({ event: 'traces.failing', reason }, 'spans could not be exported, and are lost')
    })
}

/** The traces of a process: the context of each request, and the export of its spans. */
import type { IncomingHttpHeaders } from 'node:http'
import packageJson from '../../package.json' with { type: 'json' }
import { contextOf, type TraceContext } from '../observability/traces/context.ts'
import { openExport, type SpanExport } from '../observability/traces/export.ts'
import { createSampler, defaultSampler, isSamplerName } from '../observability/traces/sampler.ts'
import type { Log } from './logger.ts'

export interface Tracer {
  /** The context of a request that begins; undefined where traces are turned off. */
  readonly begin: (headers: IncomingHttpHeaders) => TraceContext | undefined
  readonly record: SpanExport['add']
  readonly close: SpanExport['close']
}

/** A tracer that passes contexts on and records nothing. */
export function contextsOnly(sampler = createSampler(defaultSampler, 1)): Tracer {
  const context = { sampler, isRecording: false }
  return {
    begin: headers => contextOf(headers, context),
    record: () => {},
    close: async () => {}
  }
}

/** As OpenTelemetry's environment variables ask for them; a wrong value is a warning. */
export function openTracer(hasRedis: boolean, log: Log, environment = process.env): Tracer {
  if (environment['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') {
    return { ...contextsOnly(), begin: () => undefined }
  }
  const sampler = samplerOf(environment, problem => log.warn({ event: 'traces.config' }, problem))
  const { version } = packageJson
  const exporting = openExport({ environment, version, hasRedis, log })
  if (exporting === undefined) return contextsOnly(sampler)
  const context = { sampler, isRecording: true }
  return {
    begin: headers => contextOf(headers, context),
    record: exporting.add,
    close: exporting.close
  }
}

function samplerOf(environment: typeof process.env, warn: (problem: string) => void) {
  const name = environment['OTEL_TRACES_SAMPLER']?.trim() || defaultSampler
  const ratio = Number(environment['OTEL_TRACES_SAMPLER_ARG'] || 1)
  const isRatio = ratio >= 0 && ratio <= 1
  if (!isRatio && name.endsWith('ratio')) {
    warn('OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: 1 is taken')
  }
  if (isSamplerName(name)) return createSampler(name, isRatio ? ratio : 1)
  warn(`OTEL_TRACES_SAMPLER does not take "${name}": ${defaultSampler} is taken`)
  return createSampler(defaultSampler, 1)
}

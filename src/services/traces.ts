/** The traces of a process: the context of each request, and the export of its spans. */
import type { IncomingHttpHeaders } from 'node:http'
import packageJson from '../../package.json' with { type: 'json' }
import { contextOf, type Sampler, type TraceContext } from '../observability/traces/context.ts'
import { openExport, type SpanExport } from '../observability/traces/export.ts'
import type { Log } from './logger.ts'

export interface Tracer extends SpanExport {
  /** The context of a request that begins; undefined where traces are turned off. */
  readonly begin: (headers: IncomingHttpHeaders) => TraceContext | undefined
}

const defaultName = 'parentbased_always_on'
const defaultSampler: Sampler = { ratio: 1, followsCaller: true }

/** A tracer that passes contexts on and records nothing. */
export function contextsOnly(sampler = defaultSampler): Tracer {
  return {
    begin: headers => contextOf(headers, sampler, false),
    add: () => {},
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
  return { begin: headers => contextOf(headers, sampler, true), ...exporting }
}

export function samplerOf(
  environment: typeof process.env,
  warn: (problem: string) => void
): Sampler {
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

/** The traces of a process: the context of each request, and the export of its spans. */
import type { IncomingHttpHeaders } from 'node:http'
import { createExporter, type ExporterOptions } from './exporter.ts'
import { createSampler, defaultSampler } from './sampler.ts'
import type { TraceSettings } from './settings.ts'
import type { EndedRequest } from './spans.ts'
import { contextOf, type TraceContext } from './trace-context.ts'

export interface Tracer {
  /** The context of a request that begins; undefined where traces are turned off. */
  readonly begin: (headers: IncomingHttpHeaders) => TraceContext | undefined
  /** Hands the spans of a request that has ended, and whose trace is recorded, to the exporter. */
  readonly record: (request: EndedRequest) => void
  /** Sends the last spans, within a bounded time. */
  readonly close: () => Promise<void>
}

/** Less than the time that the end of a process has after its drain. */
const flushMs = 2000

type Options = Pick<ExporterOptions, 'version' | 'hasRedis' | 'metrics' | 'log'>

export function createTracer(
  { sampler, exporting, problems }: TraceSettings,
  { log, ...options }: Options
): Tracer {
  for (const problem of problems) log.warn({ event: 'traces.config' }, problem)
  if (sampler === undefined) return { ...contextsOnly(), begin: () => undefined }
  if (exporting === undefined) return contextsOnly(sampler)
  const exporter = createExporter({ settings: exporting, log, ...options })
  const context = { sampler, isRecording: true }
  const { origin } = exporting.url
  log.info({ event: 'traces.export', collector: origin }, `traces are exported to ${origin}`)
  return {
    begin: headers => contextOf(headers, context),
    record: request => exporter.add(request),
    close: () => exporter.close(flushMs)
  }
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

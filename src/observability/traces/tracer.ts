/** The traces of a process: the context of each request. */
import type { IncomingHttpHeaders } from 'node:http'
import { createSampler, defaultSampler } from './sampler.ts'
import { contextOf, type TraceContext } from './trace-context.ts'

export interface Tracer {
  /** The context of a request that begins. */
  readonly begin: (headers: IncomingHttpHeaders) => TraceContext | undefined
}

export function createTracer(): Tracer {
  const options = { sampler: createSampler(defaultSampler, 1), isRecording: false }
  return { begin: headers => contextOf(headers, options) }
}

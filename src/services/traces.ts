/** Opens the traces of this process, as OpenTelemetry's environment variables ask for them. */
import packageJson from '../../package.json' with { type: 'json' }
import type { Metrics } from '../observability/metrics.ts'
import { type Environment, readTraceSettings } from '../observability/traces/settings.ts'
import { createTracer, type Tracer } from '../observability/traces/tracer.ts'
import type { Log } from './logger.ts'

interface Options {
  readonly environment: Environment
  /** Of the config: paths of files are relative to it. */
  readonly folder: string
  readonly hasRedis: boolean
  readonly metrics: Metrics
  readonly log: Log
}

export function openTracer({ environment, folder, ...options }: Options): Tracer {
  const { version } = packageJson
  return createTracer(readTraceSettings(environment, folder, version), { version, ...options })
}

/** The state of the running config as metrics. */
import packageJson from '../../package.json' with { type: 'json' }
import type { Metrics } from '../observability/metrics.ts'
import type { Outcome } from './reload/outcome.ts'
import type { Reloader } from './reload/reload.ts'
import type { Generations } from './server/generations.ts'

/** The gateway's version, from package.json. */
export const { version } = packageJson

export function countReload(metrics: Metrics, outcome: Outcome['outcome']): void {
  metrics
    .counter(
      'console_gateway_reloads_total',
      'Reloads, by what became of them: reloaded, unchanged, refused.',
      ['outcome']
    )
    .labels(outcome)
    .inc()
}

export function measureConfig(
  metrics: Metrics,
  reloader: Reloader,
  generations: Generations
): void {
  metrics.read({
    name: 'console_gateway_info',
    help: 'Always 1; says what runs.',
    labelNames: ['version', 'node'],
    read: () => [[[version, process.version], 1]]
  })
  const addGauge = (name: string, help: string, value: () => number) =>
    metrics.read({ name, help, read: value })
  addGauge(
    'console_gateway_generation',
    'The number of the running generation: 1 at start, higher with each reload.',
    () => generations.current.number
  )
  addGauge(
    'console_gateway_generations_draining',
    'Old generations that still answer what began in them.',
    () => generations.draining().length
  )
  addGauge(
    'console_gateway_config_refused',
    'Whether the config files were refused, so that an older config runs: 1 or 0.',
    () => (reloader.state.files.state === 'refused' ? 1 : 0)
  )
  addGauge(
    'console_gateway_config_restart_needed',
    'Keys of gateway.yaml that wait for a restart.',
    () => reloader.state.restartNeeded.length
  )
  addGauge(
    'console_gateway_config_loaded_timestamp_seconds',
    'When the running config was taken.',
    () => Date.parse(reloader.state.taken.at) / 1000
  )
}

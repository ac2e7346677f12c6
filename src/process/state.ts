/** Makes the one truth of the gateway's health, and its metrics. */
import packageJson from '../../package.json' with { type: 'json' }
import { configHashes } from '../config/config-hash.ts'
import type { LimitsConfig } from '../config/schema/limits.ts'
import { type MaintenanceConfig, maintenanceInWords } from '../config/schema/maintenance.ts'
import type { HighestUse } from '../limits/highest-use.ts'
import type { GatewayState } from '../services/gateway-state.ts'
import type { RedisHealth } from '../services/shared.ts'
import type { Reloader } from './reload.ts'
import type { PublicServer } from './server.ts'

/** The gateway's version, from package.json. */
export const { version } = packageJson

/** How far start and stop are. */
export interface Life {
  phase: GatewayState['phase']
}

const startedAt = new Date().toISOString()

export function createState(
  life: Life,
  { generations, services }: PublicServer,
  reloader: Reloader
): () => GatewayState {
  const { redis, upstreams, ledger, maintenance } = services
  return () => {
    const { config, number, requests } = generations.current
    const { files, faults, restartNeeded, taken } = reloader.state
    const hashes = configHashes(config)
    return {
      version,
      startedAt,
      phase: life.phase,
      ready: life.phase === 'serving' && isUsable(redis, config.gateway.ops.strictRedis),
      config: {
        folder: config.folder,
        hash: hashes.config,
        installHash: hashes.install,
        generation: number,
        requests: requests(),
        draining: generations.draining(),
        files,
        places: faults,
        restartNeeded,
        taken
      },
      redis,
      upstreams: upstreams.addresses(),
      ledger: ledger?.status(),
      refusing: refusingOf(config.limits, services.highestUse),
      maintenance: [
        ...closedByFile(config.routes.maintenance),
        ...maintenance.entries().map(({ maintenance: closing, author, since }) => ({
          name: author,
          since,
          detail: maintenanceInWords(closing)
        }))
      ]
    }
  }
}

function refusingOf({ limits }: LimitsConfig, highestUse: HighestUse): GatewayState['refusing'] {
  return Object.entries(limits).flatMap(([limit, { mode }]) => {
    const { over } = highestUse.read(limit)
    return mode === 'enforce' && over.length > 0 ? [{ limit, over }] : []
  })
}

/** Upstreams that are down make no replica unready: all would leave at once. */
function isUsable(redis: RedisHealth | undefined, strictRedis: boolean): boolean {
  if (redis === undefined) return true
  return redis.fault === undefined && (strictRedis ? redis.up : redis.hasConnected)
}

function closedByFile(maintenance: MaintenanceConfig | undefined): GatewayState['maintenance'] {
  const { until } = maintenance ?? {}
  const isOver = until !== undefined && Date.parse(until) <= Date.now()
  if (maintenance === undefined || isOver) return []
  return [{ name: 'routes.yaml', detail: maintenanceInWords(maintenance) }]
}

export function measureConfig({ generations, services }: PublicServer, reloader: Reloader): void {
  const { metrics } = services
  metrics.read({
    name: 'console_gateway_info',
    help: 'Always 1; says what runs.',
    labelNames: ['version', 'node'],
    read: () => [[[version, process.version], 1]]
  })
  metrics.read({
    name: 'console_gateway_generation',
    help: 'The number of the running generation: 1 at start, higher with each reload.',
    read: () => generations.current.number
  })
  metrics.read({
    name: 'console_gateway_generations_draining',
    help: 'Old generations that still answer what began in them.',
    read: () => generations.draining().length
  })
  metrics.read({
    name: 'console_gateway_config_refused',
    help: 'Whether the config files were refused, so that an older config runs: 1 or 0.',
    read: () => Number(reloader.state.files.state === 'refused')
  })
  metrics.read({
    name: 'console_gateway_config_restart_needed',
    help: 'Keys of gateway.yaml that wait for a restart.',
    read: () => reloader.state.restartNeeded.length
  })
  metrics.read({
    name: 'console_gateway_config_loaded_timestamp_seconds',
    help: 'When the running config was taken.',
    read: () => Date.parse(reloader.state.taken.at) / 1000
  })
}

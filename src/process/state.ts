/** Makes the one truth of the gateway's health. */
import { configHashes } from '../config/load/config-hash.ts'
import { type MaintenanceConfig, maintenanceInWords } from '../config/schema/maintenance.ts'
import type { Ledger } from '../observability/audit/ledger.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { Reloader } from './reload/reload.ts'
import type { PublicServer } from './server/public-server.ts'
import { version } from './status.ts'

/** How far start and stop are. */
export interface Life {
  phase: GatewayState['phase']
}

interface Options {
  readonly life: Life
  readonly publicServer: Pick<PublicServer, 'generations' | 'services' | 'maintenance'>
  readonly reloader: Pick<Reloader, 'state'>
  readonly ledger: Ledger | undefined
}

const startedAt = new Date().toISOString()

export function createState(options: Options): () => GatewayState {
  const { life, publicServer, reloader, ledger } = options
  const { generations, services, maintenance } = publicServer
  return () => {
    const { config, number, requests } = generations.current
    const { files, restartNeeded, taken } = reloader.state
    const { strictRedis } = config.gateway.ops
    const redisState = services.redis()
    const redis = redisState.kind === 'embedded' ? undefined : redisState
    return {
      version,
      startedAt,
      phase: life.phase,
      ready: life.phase === 'serving' && isUsable(redis, strictRedis),
      config: {
        folder: config.folder,
        hash: configHashes(config).config,
        generation: number,
        requests: requests(),
        draining: generations.draining(),
        files,
        restartNeeded,
        taken
      },
      redis,
      upstreams: services.upstreams.addresses(),
      ledger: ledger?.status(),
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

/** Upstreams that are down make no replica unready: all would leave at once. */
function isUsable(redis: GatewayState['redis'], strictRedis: boolean): boolean {
  if (redis === undefined) return true
  return redis.fault === undefined && (strictRedis ? redis.up : redis.hasConnected)
}

function closedByFile(maintenance: MaintenanceConfig | undefined): GatewayState['maintenance'] {
  const { until } = maintenance ?? {}
  const isOver = until !== undefined && Date.parse(until) <= Date.now()
  if (maintenance === undefined || isOver) return []
  return [{ name: 'routes.yaml', detail: maintenanceInWords(maintenance) }]
}

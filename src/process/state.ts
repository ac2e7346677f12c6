/** Makes the one truth of the gateway's health. */
import { configHashes } from '../config/load/config-hash.ts'
import { type MaintenanceConfig, maintenanceInWords } from '../config/schema/maintenance.ts'
import type { AuditLedger } from '../observability/audit/ledger.ts'
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
  readonly publicServer: PublicServer
  readonly reloader: Reloader
  readonly ledger: AuditLedger | undefined
  /** `ops.strictRedis`. */
  readonly strictRedis: boolean
}

const startedAt = new Date().toISOString()

export function createState(options: Options): () => GatewayState {
  const { life, publicServer, reloader, ledger, strictRedis } = options
  return () => {
    const { config, number, requests } = reloader.current()
    const redis = publicServer.redis()
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
        draining: reloader.draining(),
        files: reloader.files(),
        restartNeeded: reloader.restartNeeded(),
        taken: reloader.taken()
      },
      redis,
      upstreams: publicServer.upstreams(),
      ledger: ledger?.status(),
      maintenance: [
        ...closedByFile(config.routes.maintenance),
        ...publicServer.maintenance.entries().map(({ maintenance, author, since }) => ({
          name: author,
          since,
          detail: maintenanceInWords(maintenance)
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

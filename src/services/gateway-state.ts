/** The gateway's health: what operators and load balancers see are views of it. */
import packageJson from '../../package.json' with { type: 'json' }
import type { Config } from '../config/schema/config.ts'
import type { Services } from './services.ts'

export type FilesState =
  | { readonly state: 'running'; readonly faults?: never }
  | { readonly state: 'refused'; readonly since: string; readonly faults: readonly string[] }

export interface ReloadState {
  readonly files: FilesState
  readonly restartNeeded: readonly string[]
  readonly taken: { readonly at: string; readonly by: string; readonly changes: readonly string[] }
}

interface Running {
  readonly config: Config
  readonly number: number
  readonly requests: () => number
  readonly draining: ReadonlyArray<{ readonly generation: number; readonly requests: number }>
}

export type Phase = 'starting' | 'serving' | 'stopping'

export type GatewayState = ReturnType<typeof stateOf>

export const { version } = packageJson
const startedAt = new Date().toISOString()

export function stateOf(phase: Phase, services: Services, running: Running, reload: ReloadState) {
  const { redis, upstreams, ledger, maintenance } = services
  const { config, number, requests, draining } = running
  return {
    version,
    startedAt,
    phase,
    // Upstreams that are down make no replica unready: all would leave at once.
    ready: phase === 'serving' && redis?.fault === undefined && redis?.hasConnected !== false,
    config: {
      folder: config.folder,
      hash: config.hash,
      generation: number,
      requests: requests(),
      draining,
      ...reload
    },
    redis,
    upstreams: upstreams.addresses(),
    sourceFaults: services.sourceFaults.read(),
    ledger,
    refusing: refusingOf(config, services),
    maintenance: maintenance.entries()
  }
}

/** The enforced limits that refused somebody in this hour, and whom. */
function refusingOf({ limits: { limits } }: Config, { highestUse }: Services) {
  return Object.entries(limits).flatMap(([limit, { mode }]) => {
    const { over } = highestUse.read(limit)
    return mode === 'enforce' && over.length > 0 ? [{ limit, over }] : []
  })
}

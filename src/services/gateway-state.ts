/** One truth of the gateway's health. What operators and load balancers see are views of it. */
import packageJson from '../../package.json' with { type: 'json' }
import { configHash } from '../config/config-hash.ts'
import type { Config } from '../config/schema/config.ts'
import { maintenanceInWords } from './closing.ts'
import type { Services } from './services.ts'

/** The state of the config files, compared with the running config. */
export type FilesState =
  | { readonly state: 'running'; readonly faults?: never }
  | { readonly state: 'refused'; readonly since: string; readonly faults: readonly string[] }

/** When and why the running config came, with its changes in words. */
export interface Taken {
  readonly at: string
  readonly by: string
  readonly changes: readonly string[]
}

/** What is known of the config that runs, and of its files. */
export interface ReloadState {
  readonly files: FilesState
  readonly restartNeeded: readonly string[]
  readonly taken: Taken
}

/** The generation that runs, and those before it. */
interface Running {
  readonly config: Config
  readonly number: number
  readonly requests: () => number
  readonly draining: ReadonlyArray<{ readonly generation: number; readonly requests: number }>
}

/** How far start and stop are. */
export type Phase = 'starting' | 'serving' | 'stopping'

export type GatewayState = ReturnType<typeof stateOf>

/** The gateway's version, from package.json. */
export const { version } = packageJson
const startedAt = new Date().toISOString()

export function stateOf(phase: Phase, services: Services, running: Running, reload: ReloadState) {
  const { redis, upstreams, ledger, maintenance } = services
  const { config, number, requests, draining } = running
  return {
    version,
    startedAt,
    phase,
    ready: phase === 'serving' && isUsable(redis),
    config: {
      folder: config.folder,
      hash: configHash(config),
      /** Of `gateway.yaml`, without the addresses on which it listens. */
      generation: number,
      requests: requests(),
      draining,
      ...reload
    },
    /** Undefined for a process without Redis. */
    redis,
    upstreams: upstreams.addresses(),
    /** Credential sources that did not answer when they were asked last. */
    sourceFaults: services.sourceFaults.read(Object.keys(config.gateway.login.sources)),
    /** Undefined where config has no audit ledger. */
    ledger: ledger?.status(),
    refusing: refusingOf(config, services),
    maintenance: maintenance.entries().map(({ maintenance: closing, author }) => ({
      author,
      detail: maintenanceInWords(closing)
    }))
  }
}

/** The enforced limits that refused somebody in this hour, and whom. */
function refusingOf({ limits: { limits } }: Config, { highestUse }: Services) {
  return Object.entries(limits).flatMap(([limit, { mode }]) => {
    const { over } = highestUse.read(limit)
    return mode === 'enforce' && over.length > 0 ? [{ limit, over }] : []
  })
}

/** Upstreams that are down make no replica unready: all would leave at once. */
function isUsable(redis: Services['redis']): boolean {
  return redis === undefined || (redis.fault === undefined && redis.hasConnected)
}

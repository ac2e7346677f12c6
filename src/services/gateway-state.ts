/** One truth of the gateway's health. What operators and load balancers see are views of it. */
import type { Fault } from '../config/schema/faults.ts'
import type { LedgerStatus } from '../observability/audit/ledger.ts'
import type { AddressUse } from '../proxy/pools.ts'
import type { RedisHealth } from './shared.ts'

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

export interface GatewayState {
  readonly version: string
  readonly startedAt: string
  readonly phase: 'starting' | 'serving' | 'stopping'
  readonly ready: boolean
  readonly config: {
    readonly folder: string
    readonly hash: string
    /** Of `gateway.yaml`, without the addresses on which it listens. */
    readonly installHash: string
    readonly generation: number
    readonly requests: number
    readonly draining: ReadonlyArray<{ readonly generation: number; readonly requests: number }>
    readonly files: FilesState
    /** The faults of refused files by file and line, as far as known. */
    readonly places: readonly Fault[]
    readonly restartNeeded: readonly string[]
    readonly taken: Taken
  }
  /** Undefined for a process without Redis. */
  readonly redis: Readonly<RedisHealth> | undefined
  readonly upstreams: readonly AddressUse[]
  /** Undefined where config has no audit ledger. */
  readonly ledger: LedgerStatus | undefined
  /** The enforced limits that refused somebody in this hour, and whom. */
  readonly refusing: ReadonlyArray<{ readonly limit: string; readonly over: readonly string[] }>
  /** Each closing in force; its name is that of the author: an operator, or `routes.yaml`. */
  readonly maintenance: ReadonlyArray<{
    readonly name: string
    readonly since?: string
    readonly detail: string
  }>
}

/** One truth of the gateway's health. What operators and load balancers see are views of it. */
import type { LedgerStatus } from './audit/ledger.ts'

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

/** An address of an upstream. */
export interface AddressStatus {
  readonly upstream: string
  readonly address: string
  readonly state: 'up' | 'open' | 'unhealthy'
  readonly inFlight: number
  /** The last change between in and out of use, in milliseconds since the epoch. */
  readonly since: number
}

export interface RedisHealth {
  readonly up: boolean
  /** Turns true at the first contact. */
  readonly hasConnected: boolean
  /** It answers, but refuses what is needed: why, and what to do. */
  readonly fault?: string | undefined
  /** The last change of `up`, in milliseconds since the epoch. */
  readonly since: number
  /** Milliseconds of its last answer; undefined while it is away. */
  readonly latencyMs: number | undefined
}

export interface GatewayState {
  readonly version: string
  readonly startedAt: string
  readonly phase: 'starting' | 'serving' | 'stopping'
  readonly ready: boolean
  readonly config: {
    readonly folder: string
    readonly hash: string
    readonly generation: number
    readonly requests: number
    readonly draining: ReadonlyArray<{ readonly generation: number; readonly requests: number }>
    readonly files: FilesState
    readonly restartNeeded: readonly string[]
    readonly taken: Taken
  }
  /** Undefined for a process without Redis. */
  readonly redis: RedisHealth | undefined
  readonly upstreams: readonly AddressStatus[]
  /** Undefined where config has no audit ledger. */
  readonly ledger: LedgerStatus | undefined
  /** Each closing in force; its name is that of the author: an operator, or `routes.yaml`. */
  readonly maintenance: ReadonlyArray<{
    readonly name: string
    readonly since?: string
    readonly detail: string
  }>
}

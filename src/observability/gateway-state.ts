/** One truth of the gateway's health. What operators and load balancers see are views of it. */
import type { LedgerStatus } from './audit/ledger.ts'

/** The state of the config files, compared with the running config. */
export type FilesState =
  | { readonly state: 'running'; readonly faults?: never }
  | { readonly state: 'refused'; readonly since: string; readonly faults: readonly string[] }

export interface FaultPlace {
  readonly file: string
  /** 0 for the whole file. */
  readonly line: number
  readonly path: string
  readonly message: string
}

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
    /** Of `gateway.yaml`, without the addresses on which it listens. */
    readonly installHash: string
    readonly generation: number
    readonly requests: number
    readonly draining: ReadonlyArray<{ readonly generation: number; readonly requests: number }>
    readonly files: FilesState
    /** The faults of refused files by file and line, as far as known. */
    readonly places: readonly FaultPlace[]
    readonly restartNeeded: readonly string[]
    readonly taken: Taken
  }
  /** Undefined for a process without Redis. */
  readonly redis: RedisHealth | undefined
  readonly upstreams: readonly AddressStatus[]
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

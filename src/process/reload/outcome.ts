/** The triggers of a reload, and its outcomes. */
import type { Fault } from '../../config/schema/faults.ts'
import type { Taken } from '../../observability/gateway-state.ts'

export type Trigger = 'files changed' | 'SIGHUP' | 'operator'

export type Outcome =
  | {
      readonly outcome: 'reloaded'
      readonly generation: number
      readonly changes: readonly string[]
      /** The results for sessions of changed users, in words. */
      readonly sessions: readonly string[]
      readonly restartNeeded: readonly string[]
    }
  | {
      readonly outcome: 'unchanged'
      readonly generation: number
      readonly restartNeeded: readonly string[]
      /** The change that put the running config in force; undefined for the config of the start. */
      readonly taken?: Taken
    }
  | { readonly outcome: 'refused'; readonly generation: number; readonly faults: readonly string[] }

/** Files that were refused at the start, while an earlier config runs. */
export interface Refused {
  readonly faults: readonly Fault[]
  /** When the config that runs was accepted. */
  readonly lastGoodOf: string
}

/** Who asked for a reload. */
export interface Asking {
  /** Whether the operator accepts that most sessions of file users end. */
  readonly yes?: boolean
  readonly operator?: { readonly name: string; readonly via: 'secret' | 'session' } | undefined
}

/** The triggers of a reload, and its outcomes. */

export type Trigger = 'files changed' | 'SIGHUP' | 'operator'

export type Outcome =
  | {
      readonly outcome: 'reloaded' | 'rolled back'
      /** Of a rollback: whether the files hold another config, which comes back with them. */
      readonly filesDiffer?: boolean
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
      readonly taken?: {
        readonly at: string
        readonly by: string
        readonly changes: readonly string[]
      }
    }
  | { readonly outcome: 'refused'; readonly generation: number; readonly faults: readonly string[] }

/** The state of the config files, compared with the running config. */
export type FilesState =
  | { readonly state: 'running'; readonly faults?: never }
  | { readonly state: 'refused'; readonly since: string; readonly faults: readonly string[] }
  | {
      readonly state: 'rolled back'
      readonly since: string
      /** Of files that had been refused before, and are as they were. */
      readonly faults?: readonly string[]
    }

/** Files that had been refused are so still: they did not change. */
export function rolledBack({ faults }: FilesState): FilesState {
  const since = new Date().toISOString()
  return { state: 'rolled back', since, ...(faults !== undefined && { faults }) }
}

export interface Confirmed {
  /** Whether the operator accepts that most sessions of file users end. */
  readonly yes?: boolean
  /** The operator who asked for it, for the audit ledger. */
  readonly operator?: AskingOperator
}

export type AskingOperator =
  | { readonly name: string; readonly via: 'secret' | 'session' }
  | undefined

/** Something that may change the running config, for the audit ledger. */
export interface Attempt {
  readonly kind: 'config.reload' | 'config.rollback'
  readonly by: Trigger
  readonly operator: AskingOperator
}

/** A rollback that was checked and waits for a decision; nothing has changed yet. */
export interface HeldRollback {
  /** Makes it, then ends the hold. */
  readonly commit: () => Promise<Outcome>
  /** Ends the hold without it. */
  readonly release: () => void
}

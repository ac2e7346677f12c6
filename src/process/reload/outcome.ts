/** What asks for a reload, and what can come of it. */

export type Trigger = 'files changed' | 'SIGHUP' | 'operator'

export type Outcome =
  | {
      readonly outcome: 'reloaded' | 'rolled back'
      readonly generation: number
      readonly changes: readonly string[]
      /** What became of the sessions of users that changed. */
      readonly sessions: readonly string[]
      readonly restartNeeded: readonly string[]
    }
  | {
      readonly outcome: 'unchanged'
      readonly generation: number
      readonly restartNeeded: readonly string[]
      /** How what runs came to run; undefined where it is what the process started with. */
      readonly taken?: {
        readonly at: string
        readonly by: string
        readonly changes: readonly string[]
      }
    }
  | { readonly outcome: 'refused'; readonly generation: number; readonly faults: readonly string[] }

/** How the files stand to what runs. */
export type FilesState =
  | { readonly state: 'running' }
  | { readonly state: 'refused'; readonly since: string; readonly faults: readonly string[] }
  | { readonly state: 'rolled back'; readonly since: string }

/** Whether it is meant that most sessions of file users end. */
export interface Confirmed {
  readonly yes?: boolean
}

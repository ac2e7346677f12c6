/** Limits that another process of this machine counts. */
import type { SubjectKey } from './callers.ts'
import type { Tally } from './rules.ts'

export interface MachineLimits {
  /** @param direct is asked where the other process does not answer in time */
  readonly tally: (direct: Tally) => Tally
  /** Calls back with keys whose parts have to be given back. */
  readonly onRecall: (release: (keys: readonly string[]) => void) => void
  /** The other process forgets what it knows of keys that begin with `subject`. */
  readonly forget: (subject: SubjectKey) => void
  /** The number of processes, on all machines, that share the counters. */
  readonly processes: () => number
}

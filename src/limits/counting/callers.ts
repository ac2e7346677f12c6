/** The counters of one caller, which operators list and reset. */

/** The beginning of a limit's keys: an address, or a user by source and id. */
export type SubjectKey = `{${'a' | 'u'}:${string}}`

/** Counters that can be listed and reset by caller. */
export interface CallerCounts {
  /** The current keys of a caller. */
  readonly keysOf: (subject: SubjectKey) => Promise<string[]>
  /** Resets the caller's counters. */
  readonly forget: (subject: SubjectKey) => Promise<void>
}

/** What is counted of one caller: listed for operators, and forgotten when they say so. */

/** As keys of limits begin: an address, or a user by source and id. */
export type SubjectKey = `{${'a' | 'u'}:${string}}`

/** Counters that can be asked by whom they count. */
export interface CallerCounts {
  /** The keys of what is counted of a caller now. */
  readonly keysOf: (subject: SubjectKey) => Promise<string[]>
  /** Counts anew from now on. */
  readonly forget: (subject: SubjectKey) => Promise<void>
}

/** A lease, and what can be said of it alone. */
import type { Rule } from './rules.ts'

/** Times are whole milliseconds, rounded by the tally. */
export const roundingMs = 3

/** A share of a key's remaining requests, which this process may use by itself. */
export interface Lease {
  /** Requests that may still pass without asking. */
  left: number
  /** Requests that passed and are not counted by the tally yet. */
  unreported: number
  readonly expiresAt: number
  remaining: number
  readonly resetAt: number
  readonly rule: Rule
}

/** Whether what was counted by a lease has surely ended; not known of a lease without an end. */
export function isPast({ rule, resetAt }: Lease, time: number): boolean {
  return rule.kind === 'fixed' && resetAt > 0 && time >= resetAt + roundingMs
}

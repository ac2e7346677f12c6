/** A lease, and what can be said of it alone. */
import type { Rule } from './rules.ts'

/** Times are whole milliseconds, rounded by the tally, the lender and the borrower. */
export const roundingMs = 3

/** A share of a key's remaining requests, which this process may use by itself. */
export interface Lease {
  /** Requests that it allowed when it was taken. */
  readonly size: number
  /** Requests that may still pass without asking. */
  left: number
  /** Requests that passed and are not counted by the tally yet. */
  unreported: number
  /** Whether the tally was asked since: what comes back of parts is then void. */
  isAsked: boolean
  /** Whether another process lent it, and is told what was used of it. */
  readonly isBorrowed: boolean
  /** Parts that other processes have of it, and whose use they have not reported. */
  lent: Lent | undefined
  readonly expiresAt: number
  remaining: number
  readonly resetAt: number
  readonly rule: Rule
}

/** Requests that each borrowing process may let pass, by its number. */
export type Lent = Map<number, number>

/** Requests that others may still let pass by parts of a lease. */
export function lentOf(lease: Lease | undefined): number {
  let sum = 0
  if (lease?.lent !== undefined) for (const requests of lease.lent.values()) sum += requests
  return sum
}

/** Whether what was counted by a lease has surely ended; not known of a lease without an end. */
export function isPast({ rule, resetAt }: Lease, time: number): boolean {
  return rule.kind === 'fixed' && resetAt > 0 && time >= resetAt + roundingMs
}

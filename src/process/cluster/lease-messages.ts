/** Messages between workers and the primary about limits: short lists, since they are many. */
import type { Rule, Verdict } from '../../limits/counting/rules.ts'
import { noGrant } from '../../limits/counting/shared-leases.ts'

/** A worker counts without the primary if that has not begun by then. */
export const askMs = 100

/** Of a request's limits: to be counted, only looked at, or an account of what was used before. */
export type AskKind = 'consume' | 'inspect' | 'settle'

type Entry = readonly [rule: number, key: string, unreported: number, unused: number]

type WrittenVerdict = readonly [
  exceeded: boolean,
  remaining: number,
  resetMs: number,
  retryMs: number,
  grant: number,
  grantMs: number
]

/** From a worker. */
export interface LimitAsks {
  /** As of `machineTicks()`. */
  readonly sentAt: number
  /** Rules that entries name from now on, by number. */
  readonly rules: ReadonlyArray<readonly [number: number, rule: Rule]>
  /** The id is 0 where no answer is awaited. */
  readonly asks: ReadonlyArray<readonly [id: number, kind: AskKind, entries: readonly Entry[]]>
  /** Subjects whose counts were reset. */
  readonly forgotten: readonly string[]
}

export type Answer = readonly [
  id: number,
  verdicts: readonly WrittenVerdict[] | 'under way' | 'undecided'
]

/** From the primary. */
export interface LimitAnswers {
  readonly answers: readonly Answer[]
  /** Keys whose parts the worker gives back. */
  readonly recalled: readonly string[]
  /** The number of processes that share the counters. */
  readonly processes: number
}

export function writeVerdict(verdict: Verdict): WrittenVerdict {
  const { exceeded, remaining, resetMs, retryMs, grant = noGrant } = verdict
  return [exceeded, remaining, resetMs, retryMs, grant.requests, grant.ms]
}

export function verdictOf(written: WrittenVerdict): Verdict {
  const [exceeded, remaining, resetMs, retryMs, requests, ms] = written
  const grant = requests === 0 ? noGrant : { requests, ms }
  return { exceeded, remaining, resetMs, retryMs, grant }
}

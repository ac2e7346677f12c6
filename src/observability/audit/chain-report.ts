/** The result of verifying a chain. */
import type { ChainPosition } from './line.ts'

/** `fault`: the ledger is not as it was written. `warning`: something cannot be shown. */
type Severity = 'fault' | 'warning' | 'note'

export interface Finding {
  readonly severity: Severity
  readonly file: string
  /** Counted from 1; undefined for the file as a whole. */
  readonly line: number | undefined
  readonly message: string
}

/** The origin of a head. One that is `beside` the files proves nothing against a writer of both. */
export type StoredHead =
  | { readonly from: 'redis' | 'beside'; readonly position: ChainPosition }
  | { readonly from: 'none'; readonly reason: string }

export interface ChainReport {
  readonly chain: string
  readonly files: number
  readonly lines: number
  readonly bytes: number
  readonly lastSeq: number
  /** Time of the first and the last line. */
  readonly since: string | undefined
  readonly until: string | undefined
  readonly head: StoredHead
  readonly findings: readonly Finding[]
  /** Of all findings, those that are not listed. */
  readonly unlisted: number
}

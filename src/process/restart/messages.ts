/** The messages between a process and its successor, which has inherited its listeners. */
import type { Entry } from '../../movable-state.ts'
import type { ClockState } from '../../steady-clock.ts'
import type { Secrets } from '../../services/handover.ts'

/** Names the inherited descriptors to the successor, as JSON. */
export const listenersVariable = 'CONSOLE_GATEWAY_LISTENERS'

export type FromSuccessor =
  /** Everything is built and could be asked; it does not listen yet. */
  | { readonly kind: 'prepared' }
  /**
   * It takes requests. `keepsSecretFile`: commands find its `ops.secret` in the file that its
   * predecessor has written. A former version does not say so.
   */
  | { readonly kind: 'ready'; readonly keepsSecretFile?: boolean }
  | { readonly kind: 'failed'; readonly reason: string }
  | ({ readonly kind: 'result' } & CallResult)

export type FromPredecessor =
  /** The first. A former version has no clock: its times are those of the wall clock. */
  | { readonly kind: 'secrets'; readonly secrets: Secrets; readonly clock?: ClockState }
  | { readonly kind: 'state'; readonly entries: ReadonlyArray<readonly [string, Entry]> }
  /** All state has been sent: from now on the successor may take requests. */
  | { readonly kind: 'begin' }
  /** Of a store whose state the successor has. */
  | ({ readonly kind: 'call' } & StoreCall)

export interface StoreCall {
  readonly id: number
  readonly store: string
  readonly method: string
  readonly parameters: readonly unknown[]
}

export interface CallResult {
  readonly id: number
  readonly value?: unknown
  /** The message of what was thrown. */
  readonly error?: string
}

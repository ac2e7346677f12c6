/** The messages between a process and its successor, which has inherited its listeners. */
import type { ListenerFd, ListenerName } from '../server/listeners.ts'

/** Names the inherited descriptors to the successor, as JSON. */
export const listenersVariable = 'CONSOLE_GATEWAY_LISTENERS'

export interface InheritedListener extends ListenerFd {
  readonly name: ListenerName | 'ops'
}

export type FromSuccessor =
  /** Everything is built and could be asked; it does not listen yet. */
  | { readonly kind: 'prepared' }
  /** It takes requests. */
  | { readonly kind: 'ready' }
  | { readonly kind: 'failed'; readonly reason: string }

export type FromPredecessor =
  /** All state has been sent: from now on the successor may take requests. */
  { readonly kind: 'begin' }

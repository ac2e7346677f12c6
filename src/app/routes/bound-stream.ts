/** A live stream (WebSocket, event stream, download) that ends with its session or access. */
import type { ErrorCode } from '../../errors/errors.ts'
import type { Live } from '../../session/types.ts'
import type { Access } from '../hooks/context.ts'

export interface BoundStream {
  /** The session that opened it; none on public routes, where no session ends it. */
  readonly live: Live | undefined
  /** The route's name: what later config says of that route holds for the stream too. */
  readonly route: string
  /** The route's access, until a later config changes it. */
  readonly access: Access
  /** Whether it keeps its session from going idle: only where its route says so itself. */
  readonly touch: boolean
  /** Ends by itself, as a download does: a drain leaves it the time that any request has. */
  readonly isFinite?: boolean
  readonly stream: {
    /**
     * Ends it, with the reason that a request would now be refused for, or `gateway.stopping`.
     * Called once at most.
     */
    readonly end: (reason: ErrorCode) => void
  }
}

/** @returns what to call when the stream is over by itself */
export type BindStream = (stream: BoundStream) => () => void

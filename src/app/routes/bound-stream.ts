/** A live stream (WebSocket, event stream, download) that ends with its session or access. */
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode } from '../../errors/errors.ts'
import { isEventStream, type UpstreamResponse } from '../../proxy/response.ts'
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

/** A client that does not take the end of its stream is cut after this. */
const endMs = 250

/**
 * Streamed responses end with the session that asked for them. Those of a public route belong to
 * no session.
 * @returns called before a response whose body is a stream is sent
 */
export function createBinding(
  bindStream: BindStream,
  bound: Pick<BoundStream, 'route' | 'access' | 'touch'>
) {
  return (
    request: FastifyRequest,
    { raw }: FastifyReply,
    headers: UpstreamResponse['headers'],
    body: Readable
  ): void => {
    const live = request.live
    const hasEvents = isEventStream(headers)
    // The client of an unsafe request has to learn what became of it.
    if (live === undefined || (request.method !== 'GET' && !hasEvents)) return
    const end = (reason: ErrorCode) => {
      request.trail.code = reason
      // A length that was announced cannot be kept any more.
      if (!hasEvents || raw.hasHeader('content-length')) return void raw.destroy()
      body.unpipe(raw)
      raw.once('close', () => body.destroy())
      raw.end()
      setTimeout(() => raw.destroy(), endMs).unref()
    }
    // Most streamed responses are short: only those that go on are held against their session.
    setImmediate(() => {
      if (raw.closed || raw.writableEnded || body.destroyed) return
      const remove = bindStream({ ...bound, live, isFinite: !hasEvents, stream: { end } })
      request.onResponseClose.push(remove)
    })
  }
}

/** Responses that are streamed end with the session that asked for them. */
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorCode } from '../../errors/errors.ts'
import { isEventStream } from '../../proxy/event-stream.ts'
import type { UpstreamResponse } from '../../proxy/receiver.ts'
import type { BindStream } from './bound-stream.ts'
import type { ForwardedRoute } from './route.ts'

/** A client that does not take the end of its stream is cut after this. */
const endMs = 250

/**
 * Those of a public route belong to no session.
 * @returns called before a response whose body is a stream is sent
 */
export function createBinding({ name, access, target }: ForwardedRoute, bindStream: BindStream) {
  return (
    request: FastifyRequest,
    { raw }: FastifyReply,
    headers: UpstreamResponse['headers'],
    body: Readable
  ): void => {
    const live = request.live
    const hasEvents = isEventStream(headers)
    // The client of an unsafe request has to learn what became of it.
    const isUnsafe = request.method !== 'GET' && target.isReadOnly !== true
    if (access === 'public' || live === undefined || (isUnsafe && !hasEvents)) return
    const end = (reason: ErrorCode) => {
      request.errorCode = reason
      request.trail.code = reason
      // A length that was announced cannot be kept any more.
      if (!hasEvents || raw.hasHeader('content-length')) return void raw.destroy()
      endEvents(raw, body)
    }
    // Most streamed responses are short: only those that go on are held against their session.
    setImmediate(() => {
      if (raw.closed || raw.writableEnded || body.destroyed) return
      const remove = bindStream({
        live,
        route: name,
        access,
        touch: target.touchesByStream === true,
        isFinite: !hasEvents,
        stream: { end }
      })
      request.onResponseClose.push(remove)
    })
  }
}

function endEvents(raw: ServerResponse, body: Readable): void {
  body.unpipe(raw)
  raw.once('close', () => body.destroy())
  raw.end()
  setTimeout(() => raw.destroy(), endMs).unref()
}

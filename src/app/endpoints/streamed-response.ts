/** Responses that are streamed end with the session that asked for them. */
import { isEventStream } from '../../proxy/event-stream.ts'
import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { ErrorCode } from '../../errors.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import { liveOf } from '../hooks/session.ts'
import type { Access } from '../hooks/context.ts'
import type { BindStream } from './bound-stream.ts'
import type { ProxiedExchange } from './exchange.ts'

export interface StreamedRoute {
  readonly name: string
  readonly access: Access
  /** Whether streams keep their session alive: only if config says so itself. */
  readonly touchesByStream: boolean
}

/** Called before a response whose body is a stream is sent. */
export type BindResponse = (
  exchange: ProxiedExchange,
  headers: UpstreamResponse['headers'],
  body: Readable
) => void

/** A client that does not take the end of its stream is cut after this. */
const endMs = 250

/** @returns undefined for a public route, whose streams belong to no session */
export function createBinding(
  { name, access, touchesByStream }: StreamedRoute,
  bindStream: BindStream
): BindResponse | undefined {
  if (access === 'public') return undefined

  return function bindResponse(exchange, headers, body) {
    const { request, method } = exchange
    const { raw } = exchange.reply
    const live = liveOf(request)
    const hasEvents = isEventStream(headers)
    // The client of an unsafe request has to learn what became of it.
    if (live === undefined || (method !== 'GET' && !hasEvents)) return
    const end = (reason: ErrorCode) => {
      request.errorCode = reason
      exchange.cutCode = reason
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
        touch: touchesByStream,
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

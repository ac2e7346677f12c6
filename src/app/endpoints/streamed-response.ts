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
  /** Whether event streams name the reason of their end in a last event. */
  readonly endEvent: boolean
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
  { name, access, touchesByStream, endEvent }: StreamedRoute,
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
    const border = hasEvents && endEvent ? new EventBorder(headers, body) : undefined
    const end = (reason: ErrorCode) => {
      request.errorCode = reason
      exchange.cutCode = reason
      // A length that was announced cannot be kept any more.
      if (!hasEvents || raw.hasHeader('content-length')) return void raw.destroy()
      endEvents(raw, body, border?.isBetween === true ? reason : undefined)
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

/** @param reason for the last event; without it the stream just ends */
function endEvents(raw: ServerResponse, body: Readable, reason: ErrorCode | undefined): void {
  body.unpipe(raw)
  raw.once('close', () => body.destroy())
  const isTold = reason !== undefined && reason !== 'gateway.stopping'
  raw.end(isTold ? `event: session-ended\ndata: ${JSON.stringify({ reason })}\n\n` : undefined)
  setTimeout(() => raw.destroy(), endMs).unref()
}

const endsWithBlankLine = /(?:\n\n|\r\r|\n\r\n)$/

/** Whether all of an event stream that has been sent is whole events. */
class EventBorder {
  readonly #isCoded: boolean
  #tail = '\n\n'

  constructor(headers: UpstreamResponse['headers'], body: Readable) {
    this.#isCoded = (headers['content-encoding'] ?? 'identity') !== 'identity'
    // An earlier listener would make the body flow before it is piped.
    body.once('resume', () => body.on('data', (chunk: Buffer) => this.#follow(chunk)))
  }

  get isBetween(): boolean {
    return !this.#isCoded && endsWithBlankLine.test(this.#tail)
  }

  #follow(chunk: Buffer): void {
    const end = chunk.toString('latin1', Math.max(0, chunk.length - 3))
    this.#tail = (this.#tail + end).slice(-3)
  }
}

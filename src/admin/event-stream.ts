/** Server-sent events for operators: the latest state, sent once a second to all who watch. */
import { adopt } from '../observability/emitters.ts'
import { GatewayError } from '../errors.ts'
import { opsHeaders } from './response-headers.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ServerResponse } from 'node:http'

interface Options {
  /** Names the events. */
  readonly name: string
  /** Makes the next event's data; asked once for all streams. */
  readonly read: () => Promise<object>
  /** Whether the request's operator may still see it. */
  readonly isAllowed: (request: FastifyRequest) => Promise<boolean>
  readonly everyMs?: number
  readonly maxStreams?: number
  /** A reader that takes nothing for this time is dropped. */
  readonly maxStallMs?: number
}

interface Stream {
  readonly request: FastifyRequest
  readonly raw: ServerResponse
  /** Since when its reader has not taken the last event. */
  stalledAt: number | undefined
}

/** A slow reader misses events and gets the newest; nothing is queued for it. */
export class StateStreams {
  readonly #options: Required<Options>
  readonly #streams = new Set<Stream>()
  #timer: NodeJS.Timeout | undefined
  #isSending = false

  constructor(options: Options) {
    this.#options = { everyMs: 1000, maxStreams: 32, maxStallMs: 30_000, ...options }
  }

  get size(): number {
    return this.#streams.size
  }

  /** Ends all streams when the listener closes, which would wait for them. */
  endWith(ops: FastifyInstance): void {
    ops.addHook('preClose', async () => {
      for (const stream of this.#streams) this.#end(stream)
    })
  }

  /** @throws GatewayError `overloaded`, or what reading the first event throws */
  async open(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { maxStreams } = this.#options
    if (this.#streams.size >= maxStreams) throw tooMany(maxStreams)
    const first = await this.#read()
    if (this.#streams.size >= maxStreams) throw tooMany(maxStreams)
    reply.hijack()
    const { raw } = reply
    adopt(raw)
    raw.writeHead(200, {
      ...opsHeaders,
      ...reply.getHeaders(),
      'content-type': 'text/event-stream',
      'x-request-id': request.id,
      'cache-control': 'no-store',
      // A listener that closes waits for connections that may be used again.
      'connection': 'close',
      'x-accel-buffering': 'no'
    } as Record<string, string>)
    const stream: Stream = { request, raw, stalledAt: undefined }
    this.#streams.add(stream)
    raw.once('close', () => this.#forget(stream))
    raw.write(first)
    if (raw.closed) this.#forget(stream)
    else this.#timer ??= setInterval(() => void this.#tick(), this.#options.everyMs).unref()
  }

  async #read(): Promise<string> {
    const { name, read } = this.#options
    return `event: ${name}\ndata: ${JSON.stringify(await read())}\n\n`
  }

  /** A round that takes longer than its time delays the next; none runs beside it. */
  async #tick(): Promise<void> {
    if (this.#isSending) return
    this.#isSending = true
    try {
      await this.#endRefused()
      if (this.#streams.size > 0) this.#sendAll(await this.#read())
    } catch {
      // A failed reading, such as while a worker restarts, is made up for by the next one.
    } finally {
      this.#isSending = false
    }
  }

  async #endRefused(): Promise<void> {
    const { isAllowed } = this.#options
    await Promise.all(
      Array.from(this.#streams, async stream => {
        // An unreachable store is no end of a session.
        if (!(await isAllowed(stream.request).catch(() => true))) this.#end(stream)
      })
    )
  }

  #sendAll(text: string): void {
    const now = performance.now()
    for (const stream of this.#streams) {
      if (!stream.raw.writableNeedDrain) {
        stream.stalledAt = undefined
        stream.raw.write(text)
      } else {
        stream.stalledAt ??= now
        if (now - stream.stalledAt >= this.#options.maxStallMs) stream.raw.destroy()
      }
    }
  }

  #end(stream: Stream): void {
    if (stream.raw.writableNeedDrain) stream.raw.destroy()
    else stream.raw.end('event: end\ndata: {}\n\n')
    this.#forget(stream)
  }

  #forget(stream: Stream): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

function tooMany(maxStreams: number): GatewayError {
  return new GatewayError('overloaded', {
    retryAfter: 5,
    message: `${maxStreams} live views are open already. Close one, or try again later.`
  })
}

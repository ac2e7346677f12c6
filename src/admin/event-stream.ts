/** Server-sent events for operators: open streams, their bounds and their end. */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import { opsHeaders } from './response-headers.ts'

/** Whether the request's operator may still see events. */
export type MaySee = (request: FastifyRequest) => Promise<boolean>

export interface EventStream<State> {
  readonly request: FastifyRequest
  readonly raw: ServerResponse
  /** For the kind of stream. */
  readonly state: State
}

interface Options {
  readonly isAllowed: MaySee
  /** Called every `everyMs` while streams are open, after those of refused operators were ended. */
  readonly onTick?: () => void | Promise<void>
  readonly everyMs?: number
  readonly maxStreams?: number
}

export class EventStreams<State> {
  readonly #options: Required<Options>
  readonly #streams = new Set<EventStream<State>>()
  #timer: NodeJS.Timeout | undefined
  #isTicking = false

  constructor(options: Options) {
    this.#options = { everyMs: 1000, maxStreams: 32, onTick: () => {}, ...options }
  }

  get size(): number {
    return this.#streams.size
  }

  [Symbol.iterator](): IterableIterator<EventStream<State>> {
    return this.#streams.values()
  }

  /** Ends all streams when the listener closes, which would wait for them. */
  endWith(ops: FastifyInstance): void {
    ops.addHook('preClose', async () => {
      for (const stream of this.#streams) this.end(stream)
    })
  }

  /** @throws GatewayError `overloaded` */
  refuseMore(): void {
    const { maxStreams } = this.#options
    if (this.#streams.size < maxStreams) return
    const message = `${maxStreams} live views are open already. Close one, or try again later.`
    throw new GatewayError('overloaded', { retryAfter: 5, message })
  }

  /**
   * @param first the text that the stream begins with
   * @throws GatewayError `overloaded`
   */
  open(request: FastifyRequest, reply: FastifyReply, first: string, state: State): void {
    this.refuseMore()
    reply.hijack()
    const raw = adopt(reply.raw)
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
    const stream = { request, raw, state }
    this.#streams.add(stream)
    raw.once('close', () => this.#forget(stream))
    raw.write(first)
    if (raw.closed) this.#forget(stream)
    else this.#timer ??= setInterval(() => void this.#tick(), this.#options.everyMs).unref()
  }

  end(stream: EventStream<State>): void {
    if (stream.raw.writableNeedDrain) stream.raw.destroy()
    else stream.raw.end('event: end\ndata: {}\n\n')
    this.#forget(stream)
  }

  /** A round that takes longer than its time delays the next; none runs beside it. */
  async #tick(): Promise<void> {
    if (this.#isTicking) return
    this.#isTicking = true
    try {
      await this.#endRefused()
      if (this.#streams.size > 0) await this.#options.onTick()
    } catch {
      // A failed reading is made up for by the next one.
    } finally {
      this.#isTicking = false
    }
  }

  async #endRefused(): Promise<void> {
    const { isAllowed } = this.#options
    await Promise.all(
      Array.from(this.#streams, async stream => {
        // An unreachable store is no end of a session.
        if (!(await isAllowed(stream.request).catch(() => true))) this.end(stream)
      })
    )
  }

  #forget(stream: EventStream<State>): void {
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

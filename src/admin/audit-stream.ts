/** Server-sent events with the lines of the audit ledger, as they are written. */
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError } from '../errors.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { adopt } from '../observability/emitters.ts'
import { opsHeaders } from './response-headers.ts'

type Line = Readonly<Record<string, unknown>>

interface Stream {
  readonly request: FastifyRequest
  readonly raw: ServerResponse
  readonly isWanted: (line: Line) => boolean
  timer: NodeJS.Timeout | undefined
  /** Lines that a slow reader did not get. */
  missed: number
}

const maxStreams = 32
/** A browser connects again by itself. */
const maxStreamMs = 60_000
const reviewMs = 1000

export class LineStreams {
  readonly #streams = new Set<Stream>()
  readonly #isAllowed: (request: FastifyRequest) => Promise<boolean>
  #review: NodeJS.Timeout | undefined

  /** @param isAllowed whether the request's operator may still see lines */
  constructor(isAllowed: (request: FastifyRequest) => Promise<boolean>) {
    this.#isAllowed = isAllowed
  }

  /** Ends all streams when the listener closes, which would wait for them. */
  endWith(ops: FastifyInstance): void {
    ops.addHook('preClose', async () => {
      for (const stream of this.#streams) this.#end(stream)
    })
  }

  /** @throws GatewayError `overloaded` */
  open(request: FastifyRequest, reply: FastifyReply, isWanted: Stream['isWanted']): void {
    if (this.#streams.size >= maxStreams) {
      const message = `${maxStreams} live views are open already. Close one, or try again later.`
      throw new GatewayError('overloaded', { retryAfter: 5, message })
    }
    reply.hijack()
    const raw = adopt(reply.raw)
    raw.writeHead(200, {
      ...opsHeaders,
      ...reply.getHeaders(),
      'content-type': 'text/event-stream',
      'x-request-id': reply.request.id,
      'cache-control': 'no-store',
      'connection': 'close',
      'x-accel-buffering': 'no'
    } as Record<string, string>)
    const stream: Stream = { request, raw, isWanted, timer: undefined, missed: 0 }
    stream.timer = setTimeout(() => this.#end(stream), maxStreamMs).unref()
    raw.once('close', () => this.#forget(stream))
    this.#streams.add(stream)
    this.#review ??= setInterval(() => void this.#endRefused(), reviewMs).unref()
    raw.write('retry: 500\n\n')
    if (raw.closed) this.#forget(stream)
  }

  /** @param texts lines of a chain, as JSON */
  send(chain: string, texts: readonly string[]): void {
    if (this.#streams.size === 0) return
    const lines = texts.map(text => parseKeepingDigits(text) as Line)
    for (const stream of this.#streams) {
      for (const line of lines) if (stream.isWanted(line)) write(stream, chain, line)
    }
  }

  async #endRefused(): Promise<void> {
    await Promise.all(
      Array.from(this.#streams, async stream => {
        // An unreachable store is no end of a session.
        if (!(await this.#isAllowed(stream.request).catch(() => true))) this.#end(stream)
      })
    )
  }

  #end(stream: Stream): void {
    if (stream.raw.writableNeedDrain) stream.raw.destroy()
    else stream.raw.end()
    this.#forget(stream)
  }

  #forget(stream: Stream): void {
    clearTimeout(stream.timer)
    this.#streams.delete(stream)
    if (this.#streams.size > 0) return
    clearInterval(this.#review)
    this.#review = undefined
  }
}

/** Nothing is queued for a slow reader: it learns how many lines it missed. */
function write(stream: Stream, chain: string, line: Line): void {
  const { raw } = stream
  if (raw.writableNeedDrain) {
    stream.missed++
    return
  }
  if (stream.missed > 0) raw.write(`event: missed\ndata: ${stream.missed}\n\n`)
  stream.missed = 0
  raw.write(`event: line\ndata: ${JSON.stringify({ chain, signed: true, line })}\n\n`)
}

/** Server-sent events with the lines of the audit ledger, as they are written. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { parseKeepingDigits } from '../json/digits.ts'
import { type EventStream, EventStreams, type MaySee } from './event-stream.ts'

type Line = Readonly<Record<string, unknown>>

interface Reader {
  readonly isWanted: (line: Line) => boolean
  readonly endsAt: number
  /** Lines that a slow reader did not get. */
  missed: number
}

/** A browser connects again by itself. */
const maxStreamMs = 60_000

export class LineStreams {
  readonly #streams: EventStreams<Reader>

  constructor(isAllowed: MaySee) {
    this.#streams = new EventStreams({ isAllowed, onTick: () => this.#endOld() })
  }

  endWith(ops: FastifyInstance): void {
    this.#streams.endWith(ops)
  }

  /** @throws GatewayError `overloaded` */
  open(request: FastifyRequest, reply: FastifyReply, isWanted: Reader['isWanted']): void {
    const endsAt = performance.now() + maxStreamMs
    this.#streams.open(request, reply, 'retry: 500\n\n', { isWanted, endsAt, missed: 0 })
  }

  /** @param texts lines of a chain, as JSON */
  send(chain: string, texts: readonly string[]): void {
    if (this.#streams.size === 0) return
    const lines = texts.map(text => parseKeepingDigits(text) as Line)
    for (const stream of this.#streams) {
      for (const line of lines) if (stream.state.isWanted(line)) write(stream, chain, line)
    }
  }

  #endOld(): void {
    const now = performance.now()
    for (const stream of this.#streams) if (now >= stream.state.endsAt) this.#streams.end(stream)
  }
}

/** Nothing is queued for a slow reader: it learns how many lines it missed. */
function write({ raw, state }: EventStream<Reader>, chain: string, line: Line): void {
  if (raw.writableNeedDrain) {
    state.missed++
    return
  }
  if (state.missed > 0) raw.write(`event: missed\ndata: ${state.missed}\n\n`)
  state.missed = 0
  raw.write(`event: line\ndata: ${JSON.stringify({ chain, signed: true, line })}\n\n`)
}

/** Server-sent events of a state: the newest, sent once a second to all who watch. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { EventStreams, type MaySee } from './event-stream.ts'

interface Options {
  /** Names the events. */
  readonly name: string
  /** Makes the next event's data; asked once for all streams. */
  readonly read: () => Promise<object>
  readonly isAllowed: MaySee
  readonly everyMs?: number
  readonly maxStreams?: number
  /** A reader that takes nothing for this time is dropped. */
  readonly maxStallMs?: number
}

/** Since when the reader of a stream has not taken the last event. */
interface Stall {
  since: number | undefined
}

/** A slow reader misses events and gets the newest; nothing is queued for it. */
export class StateStreams {
  readonly #streams: EventStreams<Stall>
  readonly #name: string
  readonly #readState: Options['read']
  readonly #maxStallMs: number

  constructor({ name, read, maxStallMs = 30_000, ...options }: Options) {
    this.#name = name
    this.#readState = read
    this.#maxStallMs = maxStallMs
    const onTick = async () => this.#sendAll(await this.#read())
    this.#streams = new EventStreams({ ...options, onTick })
  }

  get size(): number {
    return this.#streams.size
  }

  endWith(ops: FastifyInstance): void {
    this.#streams.endWith(ops)
  }

  /** @throws GatewayError `overloaded`, or what reading the first event throws */
  async open(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    this.#streams.refuseMore()
    this.#streams.open(request, reply, await this.#read(), { since: undefined })
  }

  async #read(): Promise<string> {
    return `event: ${this.#name}\ndata: ${JSON.stringify(await this.#readState())}\n\n`
  }

  #sendAll(text: string): void {
    const now = performance.now()
    for (const { raw, state } of this.#streams) {
      if (!raw.writableNeedDrain) {
        state.since = undefined
        raw.write(text)
      } else {
        state.since ??= now
        if (now - state.since >= this.#maxStallMs) raw.destroy()
      }
    }
  }
}

/** The connections of an upstream that streams may hold: the rest is left to short requests. */
import { GatewayError } from '../errors.ts'

export class StreamShare {
  readonly #max: number
  #taken = 0

  constructor({
    connections,
    streams
  }: {
    readonly connections: number
    readonly streams: number
  }) {
    this.#max = Math.max(1, Math.floor(connections * streams))
  }

  get taken(): number {
    return this.#taken
  }

  get isFull(): boolean {
    return this.#taken >= this.#max
  }

  /** Takes one, though it be one too many: a response that has begun is not taken back. */
  add(): void {
    this.#taken++
  }

  release(): void {
    this.#taken--
  }
}

export function tooManyStreams(): GatewayError {
  const cause = new Error('streams hold their share of the connections to the upstream')
  return new GatewayError('overloaded', { retryAfter: 5, cause, limit: 'streams' })
}

/** Whether a request is for events, as every EventSource says. */
export function asksForEvents({ accept }: Readonly<Record<string, string | string[]>>): boolean {
  return typeof accept === 'string' && accept.startsWith('text/event-stream')
}

/** Measures the work on one response with parts, which is done in several pieces. */
import type { JsonSource } from '../../proxy/merge-parts.ts'
import type { Shaping } from './shaped.ts'

export class ResponseWork {
  readonly #shaping: Shaping
  /** Of the route's own response and of the parts, as they come. */
  #bytes = 0
  /** The same once decoded. */
  #unpacked = 0
  #ms = 0

  constructor(shaping: Shaping) {
    this.#shaping = shaping
  }

  /** @returns whether what has come takes long, so that a thread should read it */
  add({ bytes, headers }: JsonSource): boolean {
    const { apart } = this.#shaping
    this.#bytes += bytes.length
    this.#unpacked += apart?.unpacked(bytes, headers) ?? 0
    return apart?.isLong(this.#unpacked) === true
  }

  /** @returns whether a thread takes all that has come */
  isTaken(): boolean {
    return this.#shaping.apart?.takes(this.#bytes, this.#unpacked) === true
  }

  /** @param ms of an uninterrupted piece of the work */
  spend(ms: number): void {
    this.#ms += ms
    this.#shaping.onStretch?.(ms)
  }

  /** All was done without a thread. */
  finish(): void {
    this.#shaping.apart?.learn(this.#bytes, this.#ms)
  }
}

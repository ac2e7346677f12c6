/** Estimates how long a route's bodies keep the event loop, by what former ones took. */
import { stallMs } from '../observability/shaping-stalls.ts'

/** Below it a body costs less than a trip to a thread, and is mostly fixed cost. */
export const minBytes = 16 * 1024
/** Before the first body: a plain list takes half of it. */
const firstMsPerByte = 20e-6
/** The share of the latest body in the average. */
const weight = 0.2

export class ShapingCost {
  #msPerByte = firstMsPerByte

  isLong(bytes: number): boolean {
    return bytes >= minBytes && bytes * this.#msPerByte > stallMs
  }

  /** @param ms of parsing, shaping and writing */
  add(bytes: number, ms: number): void {
    if (bytes < minBytes) return
    this.#msPerByte += (ms / bytes - this.#msPerByte) * weight
  }
}

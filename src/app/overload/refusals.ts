/**
 * Answers refused requests at a bounded pace: a client at full throttle sends its next request when
 * it has the answer to the last one, so the pace bounds what refusals cost in all.
 */
import type { IncomingMessage } from 'node:http'
import { type Link, LinkedList } from '../../proxy/linked-list.ts'

/** A refused request that waits for its answer. */
interface Waiting {
  readonly request: IncomingMessage
  readonly answer: () => void
  link?: Link<Waiting>
}

const tickMs = 10
const perTick = 16
/** The connection of one more is cut. */
const maxWaiting = 10_000

export class Refusals {
  readonly #waiting = new LinkedList<Waiting>()
  #count = 0
  #left = perTick
  #timer: NodeJS.Timeout | undefined

  get waiting(): number {
    return this.#count
  }

  /** @param answer writes the whole response: at once, or when its turn has come */
  add(request: IncomingMessage, answer: () => void): void {
    this.#timer ??= setInterval(() => this.tick(), tickMs).unref()
    if (this.#left > 0) {
      this.#left--
      return answer()
    }
    if (this.#count >= maxWaiting) return void request.socket.destroy()
    const waiting: Waiting = { request, answer }
    waiting.link = this.#waiting.add(waiting)
    this.#count++
  }

  /** Answers the next ones; clients that have left cost nothing. */
  tick(): void {
    if (this.#count === 0 && this.#left === perTick) return this.close()
    this.#left = perTick
    for (let next = this.#waiting.first; next !== undefined; next = this.#waiting.first) {
      if (this.#left === 0) return
      if (next.link !== undefined) this.#waiting.remove(next.link)
      this.#count--
      if (next.request.socket.destroyed) continue
      this.#left--
      next.answer()
    }
  }

  close(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

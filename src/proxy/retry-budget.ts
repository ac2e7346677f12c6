/** A bound on the requests to an upstream that are sent again. */

/** Retries that may be made at once, whatever came before. */
const minRetries = 10

/**
 * A retry costs 1, a request earns 0.1: at most 10 % more load on a back-end in trouble. Where
 * there are several addresses, beside it the requests of one that break at once when it dies.
 */
export class RetryBudget {
  readonly #max: number
  #left: number

  constructor(connections: number, addresses: number) {
    this.#max = minRetries + (addresses > 1 ? Math.ceil(connections / addresses) : 0)
    this.#left = this.#max
  }

  earn(): void {
    if (this.#left < this.#max) this.#left += 0.1
  }

  /** @returns whether a retry may be made */
  spend(): boolean {
    if (this.#left < 1) return false
    this.#left -= 1
    return true
  }
}

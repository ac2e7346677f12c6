/** Which address of an upstream a request goes to. */
import type { Address } from './address.ts'

export class Balancer {
  readonly addresses: readonly Address[]
  #turn = 0

  /** @param addresses one at least */
  constructor(addresses: readonly Address[]) {
    this.addresses = addresses
  }

  /**
   * Of those that work the one with the fewest requests in flight, by turns where several have as
   * few; the same of all where none works.
   * @param tried addresses that the request had already
   * @returns undefined where it had all
   */
  pick(tried?: readonly Address[]): Address | undefined {
    const { length } = this.addresses
    this.#turn = (this.#turn + 1) % length
    let best: Address | undefined
    for (let n = 0; n < length; n++) {
      const address = this.addresses[(this.#turn + n) % length] as Address
      if (tried?.includes(address) === true) continue
      if (best === undefined || isBetter(address, best)) best = address
    }
    return best
  }
}

function isBetter(one: Address, other: Address): boolean {
  const isUsable = one.isUsable
  return isUsable === other.isUsable ? one.inFlight < other.inFlight : isUsable
}

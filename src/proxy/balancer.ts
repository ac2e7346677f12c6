/** Which address a request goes to: the less busy of two random ones among those that work. */
import { GatewayError } from '../errors.ts'
import type { Address } from './address.ts'

const noAddresses: readonly Address[] = []

export class Balancer {
  readonly #random: () => number
  readonly #maxOpenFor: number
  #addresses: readonly Address[]
  /** The address of an upstream of one: there is no choice to pay for. */
  #only: Address | undefined

  constructor(
    addresses: readonly Address[],
    maxOpenFor: number,
    random: () => number = Math.random
  ) {
    this.#addresses = addresses
    this.#only = onlyOf(addresses)
    this.#maxOpenFor = maxOpenFor
    this.#random = random
  }

  get addresses(): readonly Address[] {
    return this.#addresses
  }

  replace(addresses: readonly Address[]): void {
    this.#addresses = addresses
    this.#only = onlyOf(addresses)
  }

  /**
   * An address for a request. Where one is due for a trial, a request that may be sent again is it.
   * @param owner stands for the request
   * @throws GatewayError `upstream.unavailable`
   */
  pick(mayRetry: boolean, owner: object): Address {
    const only = this.#only
    if (only === undefined) return this.#pickOfMany(mayRetry, owner)
    if (only.state.breaker === 'closed') return only
    throw unavailable(only.state.openUntil - performance.now())
  }

  /** Another address for a request that these failed; undefined where there is none. */
  pickOther(tried: readonly Address[]): Address | undefined {
    return this.#only === undefined ? this.#choose(tried, performance.now()) : undefined
  }

  #pickOfMany(mayRetry: boolean, owner: object): Address {
    const now = performance.now()
    const due = this.#dueAddress(mayRetry, now)
    if (due !== undefined) {
      due.state.beginTrial(owner)
      return due
    }
    const address = this.#choose(noAddresses, now)
    if (address === undefined) throw unavailable(0)
    return address
  }

  /** An address whose time is over; one that could not be reached tries itself. */
  #dueAddress(mayRetry: boolean, now: number): Address | undefined {
    for (const address of this.#addresses) {
      const { state } = address
      if (state.failure === 'connect' || !state.isDue(now)) continue
      if (mayRetry || now - state.openUntil > this.#maxOpenFor) return address
    }
    return undefined
  }

  #choose(tried: readonly Address[], now: number): Address | undefined {
    const isPanic = this.#isPanic()
    const weigh = (address: Address, skipped?: Address) => {
      const { state, endpoint } = address
      if (address === skipped || tried.includes(address)) return 0
      if (isPanic) return endpoint.weight
      return state.isUsable ? endpoint.weight * state.share(now) : 0
    }
    const first = this.#sample(weigh)
    if (first === undefined) return undefined
    const second = this.#sample(address => weigh(address, first))
    if (second === undefined) return first
    return second.inFlight / weigh(second) < first.inFlight / weigh(first) ? second : first
  }

  /** Below half, those that are left would break under the load of all. */
  #isPanic(): boolean {
    let usable = 0
    for (const { state } of this.#addresses) if (state.isUsable) usable++
    return usable * 2 < this.#addresses.length
  }

  /** A random address, by weight. */
  #sample(weigh: (address: Address) => number): Address | undefined {
    let total = 0
    for (const address of this.#addresses) total += weigh(address)
    let rest = this.#random() * total
    let last: Address | undefined
    for (const address of this.#addresses) {
      const weight = weigh(address)
      if (weight === 0) continue
      last = address
      rest -= weight
      if (rest < 0) break
    }
    return last
  }
}

function onlyOf(addresses: readonly Address[]): Address | undefined {
  const only = addresses.length === 1 ? addresses[0] : undefined
  for (const address of addresses) address.isOnly = address === only
  only?.state.becomeOnly(performance.now())
  return only
}

/** @param afterMs when the next trial is due */
function unavailable(afterMs: number): GatewayError {
  return new GatewayError('upstream.unavailable', {
    retryAfter: Math.max(1, Math.ceil(afterMs / 1000)),
    cause: new Error('no address of the upstream can be reached')
  })
}

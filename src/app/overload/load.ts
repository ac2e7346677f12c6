/**
 * The load of this process: its requests in flight, by client address, and how many it can carry.
 * That number shrinks while turns of the event loop last too long, and grows again slowly.
 */

export interface LoadBounds {
  /** Requests in flight that the process carries where turns are short. */
  readonly inFlight: number
  /** An address, or a user, may always have so many. */
  readonly inFlightPerAddress: number
  /** A turn of the event loop that lasts longer is a sign of overload. */
  readonly turn: number
}

interface Clock {
  readonly now?: () => number
  /** The length of a period. */
  readonly everyMs?: number
}

/** Requests that began within one period and are not answered yet. */
class Period {
  readonly byAddress = new Map<string, { count: number }>()
  total = 0
  /** Those that are within what their address may always have. */
  modest = 0
}

/**
 * A request counts for one to two periods at most: later it waits for a back-end, or is a stream,
 * and is no burden on the event loop.
 */
const periodMs = 2000
/** Late turns are overload if none in between was in time, for so long: a stall is none. */
const lateMs = 250
/** Of its capacity, a process keeps this part where turns are late for long. */
const shrinkTo = 0.5
const growthPerSecond = 0.1
/** Capacity is never less than so many addresses may always have: one is greedy, one is not. */
const minAddresses = 2
/** Addresses of one period beyond these are counted together. */
const maxAddresses = 50_000

export class Load {
  readonly #now: () => number
  readonly #rotation: NodeJS.Timeout
  #current = new Period()
  #former = new Period()
  #capacity = Infinity
  #grownAt: number
  #lateSince: number | undefined
  #turnBeganAt: number | undefined
  #turnEndedAt = -Infinity

  constructor({ now = () => performance.now(), everyMs = periodMs }: Clock = {}) {
    this.#now = now
    this.#grownAt = now()
    this.#rotation = setInterval(() => this.rotate(), everyMs).unref()
  }

  /** Counts a request. @returns what to call once when it is over */
  begin(address: string, { inFlightPerAddress }: LoadBounds): () => void {
    const period = this.#current
    const { byAddress } = period
    const key = byAddress.size < maxAddresses || byAddress.has(address) ? address : ''
    let ofAddress = byAddress.get(key)
    if (ofAddress === undefined) byAddress.set(key, (ofAddress = { count: 0 }))
    const counted = ofAddress
    if (++counted.count <= inFlightPerAddress) period.modest++
    period.total++
    return () => {
      if (counted.count-- <= inFlightPerAddress) period.modest--
      period.total--
    }
  }

  get total(): number {
    return this.#current.total + this.#former.total
  }

  /** Without those that greedy addresses have beyond what an address may always have. */
  get modest(): number {
    return this.#current.modest + this.#former.modest
  }

  /** Requests in flight of one address. */
  of(address: string): number {
    const current = this.#current.byAddress.get(address)?.count ?? 0
    return current + (this.#former.byAddress.get(address)?.count ?? 0)
  }

  /** Requests in flight that the process can carry now. */
  capacity({ inFlight }: LoadBounds): number {
    return Math.min(this.#capacity, inFlight)
  }

  /** Half of what is free: requests in flight that one address or user may have now. */
  share(bounds: LoadBounds): number {
    return Math.max(bounds.inFlightPerAddress, (this.capacity(bounds) - this.total) / 2)
  }

  /** Measures the rest of the turn of the event loop. Called under load only. */
  watchTurn(bounds: LoadBounds): void {
    if (this.#turnBeganAt !== undefined) return
    const now = this.#now()
    // No turn is measured in a quiet time: late ones before and after it are two stalls.
    if (now - this.#turnEndedAt > periodMs) this.#lateSince = undefined
    this.#turnBeganAt = now
    setImmediate(() => this.endTurn(bounds))
  }

  /** Ends the turn that `watchTurn` measures. */
  endTurn(bounds: LoadBounds): void {
    const now = this.#now()
    const isLate = now - (this.#turnBeganAt ?? now) > bounds.turn
    this.#turnBeganAt = undefined
    this.#turnEndedAt = now
    this.#grow(now)
    if (!isLate) {
      this.#lateSince = undefined
      return
    }
    this.#lateSince ??= now
    if (now - this.#lateSince < lateMs) return
    this.#lateSince = undefined
    this.#capacity = Math.max(
      minAddresses * bounds.inFlightPerAddress,
      shrinkTo * Math.min(this.capacity(bounds), this.total)
    )
  }

  /** Begins a new period; requests that began before the last one count no more. */
  rotate(): void {
    this.#former = this.#current
    this.#current = new Period()
    this.#grow(this.#now())
  }

  close(): void {
    clearInterval(this.#rotation)
  }

  #grow(now: number): void {
    this.#capacity *= 1 + (growthPerSecond * (now - this.#grownAt)) / 1000
    this.#grownAt = now
  }
}

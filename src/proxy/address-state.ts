/**
 * The circuit breaker of one address: whether it gets requests, decided from what became of the
 * last ones and from health checks. Times are milliseconds of any steady clock, given by callers.
 */

export interface BreakerConfig {
  readonly failures: number
  readonly openFor: number
  readonly maxOpenFor: number
  readonly slowStart: number
}

/**
 * `connect`: there was no connection, so nothing was written. `request`: a request failed by the
 * back-end's doing.
 */
export type Failure = 'connect' | 'request'

/** `open` gets no requests, `trial` none but the one that is under way. */
export type Breaker = 'closed' | 'open' | 'trial'

export interface Transition {
  readonly to: 'open' | 'trial' | 'closed' | 'unhealthy' | 'healthy'
  /** Of `open`: for how long. */
  readonly openMs?: number
  /** Of `open`: whether a trial failed, so that it was open before. */
  readonly isAgain?: boolean
  readonly failure?: Failure
}

/** An address that works again begins with this share of its weight. */
const minShare = 0.1

export class AddressState {
  readonly #config: BreakerConfig
  readonly #onTransition: (transition: Transition) => void
  readonly #random: () => number
  #breaker: Breaker = 'closed'
  /** Whether health checks say that it works; true without any. */
  #isHealthy = true
  #failures = 0
  /** Openings in a row, without a time of work in between. */
  #openings = 0
  #openUntil = 0
  #failure: Failure = 'request'
  #closedAt = -Infinity
  /** Began the trial that is under way. */
  #trialOwner: object | undefined
  #since = Date.now()

  constructor(
    config: BreakerConfig,
    onTransition: (transition: Transition) => void,
    random: () => number = Math.random
  ) {
    this.#config = config
    this.#onTransition = onTransition
    this.#random = random
  }

  get breaker(): Breaker {
    return this.#breaker
  }

  /** Whether health checks pass. */
  get isHealthy(): boolean {
    return this.#isHealthy
  }

  /** Whether it gets requests, beside others. */
  get isUsable(): boolean {
    return this.#breaker === 'closed' && this.#isHealthy
  }

  /** The last change of `isUsable`, in milliseconds since the epoch. */
  get since(): number {
    return this.#since
  }

  /** Of the last opening. */
  get failure(): Failure {
    return this.#failure
  }

  get openUntil(): number {
    return this.#openUntil
  }

  /** Whether a trial may begin. */
  isDue(now: number): boolean {
    return this.#breaker === 'open' && now >= this.#openUntil
  }

  /** Its share of its weight: it grows from a tenth to all in `slowStart`. */
  share(now: number): number {
    const { slowStart } = this.#config
    const age = now - this.#closedAt
    return age >= slowStart ? 1 : Math.max(minShare, age / slowStart)
  }

  /** For an address that is new beside others. */
  startSlowly(now: number): void {
    this.#closedAt = now
  }

  beginTrial(owner: object): void {
    this.#breaker = 'trial'
    this.#trialOwner = owner
    this.#onTransition({ to: 'trial' })
  }

  /**
   * Nothing was learned by the trial, such as when its client left: another one may begin. A
   * request that has the address while another tries it has no say.
   */
  abandonTrial(owner: object): void {
    if (this.#breaker !== 'trial' || this.#trialOwner !== owner) return
    this.#breaker = 'open'
    this.#trialOwner = undefined
  }

  /** No request tries the only address: it would stay open, or in a trial that is abandoned. */
  becomeOnly(now: number): void {
    if (this.#breaker !== 'closed' && this.#failure === 'request') this.#close(now)
  }

  /** A request, a connection of a trial, or enough health checks succeeded. */
  succeeded(now: number): void {
    if (this.#breaker === 'closed') this.#failures = 0
    else if (this.#breaker === 'trial') this.#close(now)
  }

  /** @param isOnly whether no other address could answer in its place */
  failed(failure: Failure, now: number, isOnly: boolean): void {
    if (this.#breaker === 'open') return
    const isIgnored = isOnly && failure !== 'connect'
    if (this.#breaker === 'trial') {
      if (isIgnored) this.#close(now)
      else this.#open(failure, now, isOnly)
      return
    }
    if (isIgnored) return
    this.#failures += failure === 'connect' && !isOnly ? this.#config.failures : 1
    if (this.#failures >= this.#config.failures) this.#open(failure, now, isOnly)
  }

  /** Sets the result of health checks, when it has changed. */
  setHealthy(isHealthy: boolean, now: number): void {
    if (this.#isHealthy === isHealthy) return
    const wasUsable = this.isUsable
    this.#isHealthy = isHealthy
    this.#noteChange(wasUsable)
    this.#onTransition({ to: isHealthy ? 'healthy' : 'unhealthy' })
    if (!isHealthy) return
    if (this.#breaker === 'closed') this.#closedAt = now
    else this.#close(now)
  }

  #open(failure: Failure, now: number, isOnly: boolean): void {
    const { openFor, maxOpenFor } = this.#config
    const isAgain = this.#breaker === 'trial'
    const isSoon = isAgain || now - this.#closedAt < maxOpenFor
    this.#openings = isSoon ? this.#openings + 1 : 1
    const growing = Math.min(maxOpenFor, openFor * 2 ** (this.#openings - 1))
    // Without another address a longer time only prolongs the outage. Replicas that opened at
    // once must not all try at once: a quarter more or less.
    const openMs = (isOnly ? openFor : growing) * (0.75 + this.#random() / 2)
    const wasUsable = this.isUsable
    this.#breaker = 'open'
    this.#trialOwner = undefined
    this.#noteChange(wasUsable)
    this.#failures = 0
    this.#failure = failure
    this.#openUntil = now + openMs
    this.#onTransition({ to: 'open', openMs, isAgain, failure })
  }

  #noteChange(wasUsable: boolean): void {
    if (this.isUsable !== wasUsable) this.#since = Date.now()
  }

  #close(now: number): void {
    const wasUsable = this.isUsable
    this.#breaker = 'closed'
    this.#trialOwner = undefined
    this.#noteChange(wasUsable)
    this.#failures = 0
    this.#closedAt = now
    this.#onTransition({ to: 'closed' })
  }
}

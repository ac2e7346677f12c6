/** A caller's need of a limit: the lowest number that lets all its requests pass. */
import { slices, type Rule } from '../counting/rules.ts'

/**
 * Of one caller and one limit. The number is the limit's `max`, or its `burst` where it has one.
 */
export interface RequiredLimit {
  /** Counts one more request. @returns the lowest number that lets it pass after all before it */
  readonly hit: (now: number) => number
  /**
   * After a hit: the most that this process adds to the number, so that the sum over all processes
   * lets everything pass. More than the result of `hit`, since processes start fixed windows at
   * different times and share a bucket's refill.
   */
  readonly upperBound: () => number
  /** Whether its counts have no effect any more. */
  readonly isOver: (now: number) => boolean
}

/** @param processes the number of processes that count together */
export function createRequiredLimit(rule: Rule, processes = 1): RequiredLimit {
  if (rule.kind === 'fixed') return new RequiredFixed(rule)
  return rule.kind === 'sliding' ? new RequiredSliding(rule) : new RequiredBucket(rule, processes)
}

class RequiredFixed implements RequiredLimit {
  readonly #windowMs: number
  #count = 0
  #end = 0
  #before = 0
  #beforeEnd = 0
  #now = 0
  constructor({ windowMs }: Rule) {
    this.#windowMs = windowMs
  }

  hit(now: number): number {
    if (this.#end <= now) {
      this.#before = this.#count
      this.#beforeEnd = this.#end
      this.#count = 0
      this.#end = now + this.#windowMs
    }
    this.#now = now
    return ++this.#count
  }

  upperBound(): number {
    return this.#count + (this.#beforeEnd > this.#now - this.#windowMs ? this.#before : 0)
  }
  isOver(now: number): boolean {
    return this.#end + this.#windowMs <= now
  }
}

class RequiredSliding implements RequiredLimit {
  readonly #slice: number
  readonly #counts: number[] = []
  #newest = 0
  #used = 0
  constructor({ windowMs }: Rule) {
    this.#slice = Math.ceil(windowMs / slices)
  }

  hit(now: number): number {
    const newest = Math.max(this.#newest, Math.floor(now / this.#slice))
    if (newest - this.#newest > slices) {
      this.#counts.length = this.#used = 0
      this.#newest = newest
    }
    while (this.#newest < newest) {
      const place = ++this.#newest % (slices + 1)
      this.#used -= this.#counts[place] ?? 0
      this.#counts[place] = 0
    }
    const place = newest % (slices + 1)
    this.#counts[place] = (this.#counts[place] ?? 0) + 1
    return ++this.#used
  }

  upperBound(): number {
    return this.#used
  }
  isOver(now: number): boolean {
    return now >= (this.#newest + slices + 1) * this.#slice
  }
}

/** Calculates as the rule does, in units in which a request costs `windowMs`. */
class RequiredBucket implements RequiredLimit {
  readonly #max: number
  readonly #windowMs: number
  readonly #processes: number
  #debt = 0
  /** As `#debt`, with this process' part of the refill. */
  #debtOfPart = 0
  #now = 0
  constructor({ windowMs, max }: Rule, processes: number) {
    this.#max = max
    this.#windowMs = windowMs
    this.#processes = processes
  }

  hit(now: number): number {
    const refill = Math.max(0, now - this.#now) * this.#max
    const debt = Math.max(0, this.#debt - refill)
    this.#debt = debt + this.#windowMs
    this.#debtOfPart = Math.max(0, this.#debtOfPart - refill) + this.#windowMs * this.#processes
    this.#now = now
    return Math.ceil(debt / this.#windowMs) + 1
  }

  upperBound(): number {
    return Math.ceil(this.#debtOfPart / (this.#windowMs * this.#processes))
  }
  isOver(now: number): boolean {
    return this.#debtOfPart <= (now - this.#now) * this.#max
  }
}

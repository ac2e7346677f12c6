/** A caller's need of a limit: the lowest number that lets all its requests pass. */
import { rounding, slices, type Rule } from '../counting/rules.ts'

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

class RequiredBucket implements RequiredLimit {
  readonly #each: number
  readonly #processes: number
  #full = 0
  /** As `#full`, with this process' part of the refill. */
  #fullOfPart = 0
  #now = 0
  constructor({ windowMs, max }: Rule, processes: number) {
    this.#each = windowMs / max
    this.#processes = processes
  }

  hit(now: number): number {
    const each = this.#each
    const full = Math.max(this.#full, now)
    const passes = (burst: number) => burst * each - (full - now) + rounding >= each
    let needed = Math.max(1, Math.ceil((full - now) / each) + 1)
    // Exactly as the rule calculates, with its rounding.
    while (needed > 1 && passes(needed - 1)) needed--
    while (!passes(needed)) needed++
    this.#full = full + each
    if (this.#processes > 1) {
      this.#fullOfPart = Math.max(this.#fullOfPart, now) + each * this.#processes
    } else this.#fullOfPart = this.#full
    this.#now = now
    return needed
  }

  upperBound(): number {
    return Math.ceil((this.#fullOfPart - this.#now - rounding) / (this.#each * this.#processes))
  }
  isOver(now: number): boolean {
    return this.#fullOfPart <= now
  }
}

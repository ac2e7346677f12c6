/** Of each limit the lowest number with which it would have refused nobody, were it alone. */
import { createRequiredLimit, type RequiredLimit } from '../usage/required-limit.ts'
import type { Rule } from '../counting/rules.ts'

/** The callers of one limit. */
interface Callers {
  readonly required: Map<string, RequiredLimit>
  /** The number of callers at which those whose counts are over are dropped. */
  sweepAt: number
}

interface Options {
  readonly create?: (rule: Rule) => RequiredLimit
  /** Of one limit: with fewer, no counts are dropped. */
  readonly minSwept?: number
}

export class LowestNumbers {
  readonly numbers = new Map<string, number>()
  readonly #callers = new Map<Rule, Callers>()
  readonly #create: (rule: Rule) => RequiredLimit
  readonly #minSwept: number

  constructor({ create = createRequiredLimit, minSwept = 100_000 }: Options = {}) {
    this.#create = create
    this.#minSwept = minSwept
  }

  raise(limit: string, needed: number): void {
    if (needed > (this.numbers.get(limit) ?? 0)) this.numbers.set(limit, needed)
  }

  /** Counts one more request of a key. */
  count(rule: Rule, key: string, time: number): void {
    let callers = this.#callers.get(rule)
    if (callers === undefined) {
      callers = { required: new Map(), sweepAt: this.#minSwept }
      this.#callers.set(rule, callers)
    }
    let required = callers.required.get(key)
    if (required === undefined) {
      this.#sweep(callers, time)
      callers.required.set(key, (required = this.#create(rule)))
    }
    this.raise(rule.name, required.hit(time))
  }

  /** Only when their number has doubled, since in a long window nobody's counts are over. */
  #sweep(callers: Callers, time: number): void {
    const { required } = callers
    if (required.size < callers.sweepAt) return
    for (const [key, each] of required) if (each.isOver(time)) required.delete(key)
    callers.sweepAt = Math.max(this.#minSwept, 2 * required.size)
  }
}

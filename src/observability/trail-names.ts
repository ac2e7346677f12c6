/** Numbers for the texts that return in many trails, such as names of routes and addresses. */
import type { TrailRule } from './trail.ts'

/** 0 stands for undefined. */
const noName = 0

export class TrailNames {
  readonly #numbers = new Map<string, number>()
  readonly #names: Array<string | undefined> = [undefined]
  readonly #rules = new Map<number, TrailRule>()
  /** A reload brings new objects for the same rules. */
  readonly #ruleNumbers = new WeakMap<TrailRule, number>()

  get size(): number {
    return this.#numbers.size
  }

  numberOf(name: string | undefined): number {
    if (name === undefined) return noName
    return this.#numbers.get(name) ?? this.#add(name)
  }

  nameOf(number: number): string | undefined {
    return this.#names[number]
  }

  numberOfRule(rule: TrailRule): number {
    let number = this.#ruleNumbers.get(rule)
    if (number === undefined) {
      const { name, rate, enforced } = rule
      number = this.numberOf(JSON.stringify({ name, rate, enforced }))
      this.#ruleNumbers.set(rule, number)
      this.#rules.set(number, rule)
    }
    return number
  }

  /** @param number from `numberOfRule` */
  ruleOf(number: number): TrailRule {
    return this.#rules.get(number) as TrailRule
  }

  #add(name: string): number {
    const number = this.#names.push(name) - 1
    this.#numbers.set(name, number)
    return number
  }
}

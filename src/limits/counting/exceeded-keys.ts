/** Remembers callers over a limit, so that their requests are refused without asking. */
import { BoundedMap } from '../../bounded-map.ts'
import type { Rule, TallyEntry, Verdict } from './rules.ts'
import { forgetSubject } from './forget-subject.ts'

const maxKeys = 100_000

/**
 * Keys that exceed a limit, until one more request is allowed. Bounded: keys are
 * attacker-controlled.
 */
export class ExceededKeys {
  /** Kept with its rule: after a reload replaced the rule, the entry no longer counts. */
  readonly #exceededUntil = new BoundedMap<{ readonly rule: Rule; readonly until: number }>(maxKeys)

  /** Milliseconds until one more request is allowed; 0 where the key is not known to exceed. */
  waitMs(key: string, rule: Rule, time: number): number {
    if (this.#exceededUntil.size === 0) return 0
    const exceeded = this.#exceededUntil.peek(key)
    if (exceeded === undefined) return 0
    if (exceeded.rule === rule && time < exceeded.until) return exceeded.until - time
    this.#exceededUntil.delete(key)
    return 0
  }

  /** @returns whether the key was not known to exceed */
  add({ rule, key }: TallyEntry, until: number, time: number): boolean {
    const isNews = this.waitMs(key, rule, time) === 0
    this.#exceededUntil.set(key, { rule, until })
    return isNews
  }

  forget(subject: string): void {
    forgetSubject(this.#exceededUntil, subject)
  }
}

export function exceededFor(waitMs: number): Verdict {
  return { exceeded: true, remaining: 0, resetMs: waitMs, retryMs: waitMs }
}

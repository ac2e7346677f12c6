/** Remembers callers over a limit, so that their requests are refused without asking. */
import { BoundedMap } from '../../bounded-map.ts'
import type { Rule, TallyEntry, Verdict } from './rules.ts'
import { forgetSubject } from './forget-subject.ts'

const maxKeys = 100_000

interface Exceeded {
  /** After a reload replaced the rule, the entry no longer counts. */
  readonly rule: Rule
  readonly until: number
  /** Another refusal before this time is no news. */
  readonly knownUntil: number
}

/**
 * Keys that exceed a limit, until one more request is allowed. Bounded: keys are
 * attacker-controlled.
 */
export class ExceededKeys {
  readonly #exceeded = new BoundedMap<Exceeded>(maxKeys)

  /** Milliseconds until one more request is allowed; 0 where the key is not known to exceed. */
  waitMs(key: string, rule: Rule, time: number): number {
    if (this.#exceeded.size === 0) return 0
    const exceeded = this.#exceeded.peek(key)
    if (exceeded === undefined) return 0
    if (exceeded.rule === rule && time < exceeded.until) return exceeded.until - time
    if (exceeded.rule !== rule || time >= exceeded.knownUntil) this.#exceeded.delete(key)
    return 0
  }

  /** @returns whether the key was not known to exceed */
  add({ rule, key }: TallyEntry, verdict: Verdict, time: number): boolean {
    const { retryMs, refusesMs = retryMs, resetMs } = verdict
    const former = this.#exceeded.peek(key)
    const isNews = former === undefined || former.rule !== rule || time >= former.knownUntil
    // Without Redis it is asked again each second. Between processes only the reset is told.
    const endsAt = time + Math.max(refusesMs, rule.kind === 'fixed' ? resetMs : 0)
    const knownUntil = isNews ? endsAt : Math.max(former.knownUntil, endsAt)
    this.#exceeded.set(key, { rule, until: time + retryMs, knownUntil })
    return isNews
  }

  forget(subject: string): void {
    forgetSubject(this.#exceeded, subject)
  }
}

export function exceededFor(waitMs: number): Verdict {
  return { exceeded: true, remaining: 0, resetMs: waitMs, retryMs: waitMs }
}

/** Lockouts that go on in this process while Redis is away, so that nobody may guess meanwhile. */
import type { LockoutRule, Lockouts } from './lockout.ts'
import { createSwitch } from './outage.ts'

interface Options {
  readonly shared: Lockouts
  readonly local: Lockouts
  readonly replicas: () => number
  readonly onAway: (away: boolean) => void
  readonly now?: () => number
}

/** Each process allows its part of the failures then, at least one; what Redis knew of locks is known again when it is back. */
export function withLocalLockouts ({ shared, local, replicas, onAway, now }: Options): Lockouts {
  const choose = createSwitch(onAway, now)
  const part = (rule: LockoutRule): LockoutRule => ({ ...rule, after: Math.max(1, Math.ceil(rule.after / replicas())) })
  return {
    attempt: (key, rule) => choose(() => shared.attempt(key, rule), () => local.attempt(key, part(rule))),
    look: (key, rule) => choose(() => shared.look(key, rule), () => local.look(key, part(rule))),
    giveBack: (key, rule, attempt) => choose(() => shared.giveBack(key, rule, attempt), () => local.giveBack(key, part(rule), attempt)),
    // Operators are told when Redis is away.
    list: () => shared.list(),
    lift: async keys => {
      await local.lift(keys)
      await shared.lift(keys)
    },
    close: () => {
      shared.close()
      local.close()
    }
  }
}

/** Lockouts that go on in this process while Redis is away, so that nobody may guess meanwhile. */
import { randomUUID } from 'node:crypto'
import type { LockoutRule, Lockouts } from './lockout.ts'
import { createSettlements, createSwitch } from '../counting/with-fallback.ts'

interface Options {
  readonly shared: Lockouts
  readonly local: Lockouts
  readonly replicas: () => number
  readonly onAway: (away: boolean) => void
  readonly now?: () => number
}

const localMark = 'local '

/**
 * Each process allows its part of the failures while Redis is away, at least one; what Redis knew
 * of locks is known again when it is back. An attempt is always given back where it was counted:
 * if Redis is away just then, as soon as it is back and before it is asked anything else. Redis may
 * have counted an attempt whose answer was lost, so that is given back too; it knows by the id
 * whether it did.
 */
export function withLocalLockouts({ shared, local, replicas, onAway, now }: Options): Lockouts {
  const choose = createSwitch(onAway, now)
  const part = (rule: LockoutRule): LockoutRule => ({
    ...rule,
    after: Math.max(1, Math.ceil(rule.after / replicas()))
  })
  const owed = createSettlements(choose)

  return {
    attempt: (key, rule, id = randomUUID()) => {
      let wasAsked = false
      return choose(
        () =>
          owed.first(() => {
            wasAsked = true
            return shared.attempt(key, rule, id)
          }),
        async () => {
          if (wasAsked) owed.add(() => shared.giveBack(key, rule, { id, locks: undefined }))
          return { ...(await local.attempt(key, part(rule), id)), isLocal: true }
        }
      )
    },
    look: (key, rule) =>
      choose(
        () => owed.first(() => shared.look(key, rule)),
        () => local.look(key, part(rule))
      ),
    giveBack: (key, rule, attempt) => {
      if (attempt.isLocal === true) return local.giveBack(key, part(rule), attempt)
      const giveBack = () => shared.giveBack(key, rule, attempt)
      return choose(
        () => owed.first(giveBack),
        async () => owed.add(giveBack)
      )
    },
    admit: (key, rule, place = randomUUID()) => {
      let wasAsked = false
      return choose(
        () =>
          owed.first(() => {
            wasAsked = true
            return shared.admit(key, rule, place)
          }),
        async () => {
          if (wasAsked) owed.add(() => shared.settle(key, rule, place, false))
          const admission = await local.admit(key, part(rule), place)
          const { waitMs } = admission
          return admission.place === undefined ? admission : { place: localMark + place, waitMs }
        }
      )
    },
    settle: (key, rule, place, failed) => {
      if (place.startsWith(localMark)) {
        return local.settle(key, part(rule), place.slice(localMark.length), failed)
      }
      return choose(
        () => owed.first(() => shared.settle(key, rule, place, failed)),
        async () => {
          owed.add(() => shared.settle(key, rule, place, failed))
          // Until Redis is back, this process is all that knows of the failure.
          return await local.settle(key, part(rule), place, failed)
        }
      )
    },
    // Operators are told when Redis is away.
    list: () => shared.list(),
    lift: async keys => {
      await local.lift(keys)
      await shared.lift(keys)
    },
    close: () => {
      owed.close()
      shared.close()
      local.close()
    }
  }
}

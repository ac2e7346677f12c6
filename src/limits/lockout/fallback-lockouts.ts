/**
 * Lockouts that continue in this process while Redis is away, so that nobody can guess meanwhile.
 */
import { randomUUID } from 'node:crypto'
import type { LockoutRule, Lockouts } from './lockout.ts'
import { createFallback, type FallbackOptions } from '../counting/with-fallback.ts'

interface Options extends FallbackOptions {
  readonly shared: Lockouts
  readonly local: Lockouts
  readonly replicas: () => number
}

const localMark = 'local '

/**
 * While Redis is away each process allows its part of the failures, at least one; locks of Redis
 * hold again when it is back. An attempt is refunded where it was counted: if Redis is away then,
 * as soon as it is back, before any other call. Redis may have counted an attempt whose reply was
 * lost: that is refunded too, and the id tells Redis whether it was counted.
 */
export function lockoutsWithFallback({ shared, local, replicas, ...options }: Options): Lockouts {
  const fallback = createFallback(options)
  const part = (rule: LockoutRule): LockoutRule => ({
    ...rule,
    after: Math.max(1, Math.ceil(rule.after / replicas()))
  })

  return {
    attempt: (key, rule, id = randomUUID()) => {
      let wasAsked = false
      return fallback.run(
        () => {
          wasAsked = true
          return shared.attempt(key, rule, id)
        },
        async () => {
          if (wasAsked) {
            fallback.settleLater(() => shared.refund(key, rule, { id, locks: undefined }))
          }
          return { ...(await local.attempt(key, part(rule), id)), isLocal: true }
        }
      )
    },
    look: (key, rule) =>
      fallback.run(
        () => shared.look(key, rule),
        () => local.look(key, part(rule))
      ),
    refund: (key, rule, attempt) => {
      if (attempt.isLocal === true) return local.refund(key, part(rule), attempt)
      const refund = () => shared.refund(key, rule, attempt)
      return fallback.run(refund, async () => fallback.settleLater(refund))
    },
    admit: (key, rule, place = randomUUID()) => {
      let wasAsked = false
      return fallback.run(
        () => {
          wasAsked = true
          return shared.admit(key, rule, place)
        },
        async () => {
          if (wasAsked) fallback.settleLater(() => shared.settle(key, rule, place, false))
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
      const settle = () => shared.settle(key, rule, place, failed)
      return fallback.run(settle, async () => {
        fallback.settleLater(settle)
        // Until Redis is back, only this process knows of the failure.
        return await local.settle(key, part(rule), place, failed)
      })
    },
    // Operators are told when Redis is away.
    list: () => shared.list(),
    lift: async keys => {
      await local.lift(keys)
      await shared.lift(keys)
    },
    close: () => {
      fallback.close()
      shared.close()
      local.close()
    }
  }
}

/** Lockouts of this process. */
import { aheadOf, steadyNow } from '../../steady-clock.ts'
import {
  type ActiveLock,
  type CountedAttempt,
  countAttempt,
  lockoutEnd,
  locksBefore,
  type LockoutRule,
  type Lockouts,
  type LockoutState,
  placeMs,
  placesLeft,
  refundAttempt
} from './lockout.ts'

const maxKeys = 100_000

interface KeptState {
  readonly state: LockoutState
  readonly endsAt: number
  /** Attempts that may be refunded, by id. */
  readonly attempts: Set<string>
}

const nothing: LockoutState = [0, 0, 0, 0]

export function createMemoryLockouts(now: () => number = steadyNow): Lockouts {
  const states = new StateTable(now)
  const places = new PlaceTable()
  let lastId = 0

  function count(key: string, rule: LockoutRule, id: string): Omit<CountedAttempt, 'id'> {
    const time = now()
    const kept = states.find(key, time)
    const { next, ...counted } = countAttempt(rule, kept?.state, time)
    if (next === undefined) return counted
    const attempts = kept?.attempts ?? new Set()
    attempts.add(id)
    // Failed attempts are never refunded.
    if (attempts.size > 2 * rule.after) attempts.delete(attempts.values().next().value ?? '')
    states.set(key, next, rule, attempts)
    return counted
  }

  return {
    async attempt(key, rule, id = String(++lastId)) {
      return { id, ...count(key, rule, id) }
    },
    async look(key, rule) {
      const time = now()
      return countAttempt(rule, states.find(key, time)?.state, time).waitMs
    },
    async refund(key, rule, { id, locks, ...before }) {
      const time = now()
      const kept = states.find(key, time)
      if (kept?.attempts.delete(id) !== true) return
      const attempt = { ...before, locks: locks ?? locksBefore(kept.state, time) }
      states.set(key, refundAttempt(rule, kept.state, attempt, time), rule, kept.attempts)
    },
    async admit(key, rule, place = String(++lastId)) {
      const time = now()
      const state = states.find(key, time)?.state ?? nothing
      const [, , , lockedUntil] = state
      if (time < lockedUntil) return { place: undefined, waitMs: lockedUntil - time }
      const isTaken = places.take(key, place, placesLeft(rule, state, time), time)
      return { place: isTaken ? place : undefined, waitMs: 0 }
    },
    async settle(key, rule, place, failed) {
      places.release(key, place, now())
      return failed ? count(key, rule, place).lockMs : 0
    },
    async list() {
      const ahead = aheadOf(now)
      return states.locked(now()).map(({ key, until }) => ({ key, until: until + ahead }))
    },
    async lift(keys) {
      for (const key of keys) states.delete(key)
    },
    close: () => {}
  }
}

/** Bounded: keys are attacker-controlled, so those that are not locked give way first. */
class StateTable {
  readonly #states = new Map<string, KeptState>()
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  find(key: string, time: number): KeptState | undefined {
    const kept = this.#states.get(key)
    return kept !== undefined && kept.endsAt > time ? kept : undefined
  }

  set(key: string, state: LockoutState, rule: LockoutRule, attempts: Set<string>): void {
    this.#states.delete(key)
    if (this.#states.size >= maxKeys) this.#makeRoom(this.#now())
    this.#states.set(key, { state, endsAt: lockoutEnd(state, rule.forgetMs), attempts })
  }

  delete(key: string): void {
    this.#states.delete(key)
  }

  /** Locked keys, the first to end first. */
  locked(time: number): ActiveLock[] {
    const locks: ActiveLock[] = []
    for (const [key, { state }] of this.#states) {
      const [, , , until] = state
      if (until > time) locks.push({ key, until })
    }
    return locks.toSorted((a, b) => a.until - b.until)
  }

  #makeRoom(time: number): void {
    for (const [key, { state, endsAt }] of this.#states) {
      const [, , , lockedUntil] = state
      if (endsAt <= time || lockedUntil <= time) this.#states.delete(key)
    }
    if (this.#states.size >= maxKeys) this.#states.delete(this.#states.keys().next().value ?? '')
  }
}

/** Places for password checks, by key: at most as many keys as running sign-ins. */
class PlaceTable {
  /** The latest end of each place. */
  readonly #places = new Map<string, Map<string, number>>()

  /** @returns whether `place` was taken, since fewer than `max` of the key's places were */
  take(key: string, place: string, max: number, time: number): boolean {
    const taken = this.#taken(key, time)
    if (taken.size >= max) return false
    taken.set(place, time + placeMs)
    this.#places.set(key, taken)
    return true
  }

  release(key: string, place: string, time: number): void {
    const taken = this.#taken(key, time)
    taken.delete(place)
    if (taken.size === 0) this.#places.delete(key)
  }

  #taken(key: string, time: number): Map<string, number> {
    const taken = this.#places.get(key) ?? new Map<string, number>()
    for (const [place, until] of taken) if (until <= time) taken.delete(place)
    return taken
  }
}

/** Sign-ins of one key, in the order in which they came: each waits for its evaluation. */
import type { Admission, LockoutRule, Lockouts } from './lockout.ts'

export interface AdmissionQueue {
  /**
   * Waits for a place, for at most `maxWaitMs` in which nobody before gets one.
   * @returns as `Lockouts.admit` does; without place and lock the time was over
   */
  readonly admit: (key: string, rule: LockoutRule) => Promise<Admission>
  /** @returns how long the key is locked by it; 0 where it is not */
  readonly settle: Lockouts['settle']
}

interface Waiter {
  readonly rule: LockoutRule
  readonly resolve: (admission: Admission) => void
  readonly reject: (error: unknown) => void
  readonly joinedAt: number
  timer?: NodeJS.Timeout
}

const maxWaitMs = 5000
/** In all: a hundred passwords on a busy machine take that long, and browsers wait for longer. */
const maxTotalMs = 30_000
/** Another process tells nobody when it gives a place back. */
const pollMs = 200
const timeIsOver: Admission = { place: undefined, waitMs: 0 }

type Places = Pick<Lockouts, 'admit' | 'settle'>

export function createAdmissionQueue(lockouts: Places): AdmissionQueue {
  /** Of keys that somebody waits for: as many as sign-ins are open. */
  const lines = new Map<string, Line>()
  return {
    admit: (key, rule) => {
      const line = lines.get(key)
      if (line !== undefined) return line.join(rule)
      const opened = new Line(key, lockouts)
      lines.set(key, opened)
      const admission = opened.join(rule)
      void opened.serve(() => lines.delete(key))
      return admission
    },
    settle: async (key, rule, place, failed) => {
      try {
        return await lockouts.settle(key, rule, place, failed)
      } finally {
        lines.get(key)?.noteRelease()
      }
    }
  }
}

/** Those who wait for a place of one key. */
class Line {
  readonly #key: string
  readonly #lockouts: Places
  /** The first to come first. */
  readonly #waiters = new Set<Waiter>()
  /** Grows with each place that this process gives back. */
  #releases = 0
  /** When the last waiter got a place: in a line that moves nobody is turned away. */
  #movedAt = -Infinity
  #onRelease: () => void = () => {}

  constructor(key: string, lockouts: Places) {
    this.#key = key
    this.#lockouts = lockouts
  }

  join(rule: LockoutRule): Promise<Admission> {
    const { promise, resolve, reject } = Promise.withResolvers<Admission>()
    const waiter: Waiter = { rule, resolve, reject, joinedAt: performance.now() }
    this.#setTimeLimit(waiter, maxWaitMs)
    this.#waiters.add(waiter)
    return promise
  }

  /** @param onEmpty called as soon as nobody waits: whoever comes then needs a line of its own */
  async serve(onEmpty: () => void): Promise<void> {
    for (let [first] = this.#waiters; first !== undefined; [first] = this.#waiters) {
      const releases = this.#releases
      try {
        const admission = await this.#lockouts.admit(this.#key, first.rule)
        if (admission.place !== undefined) await this.#admit(first, admission.place)
        else if (admission.waitMs > 0) this.#refuseAll(admission)
        else if (releases === this.#releases) await this.#nextRelease()
      } catch (error) {
        if (this.#leave(first)) first.reject(error)
      }
    }
    onEmpty()
  }

  /** A place was given back. */
  noteRelease(): void {
    this.#releases++
    this.#onRelease()
  }

  async #admit(waiter: Waiter, place: string): Promise<void> {
    this.#movedAt = performance.now()
    if (this.#leave(waiter)) waiter.resolve({ place, waitMs: 0 })
    else await this.#lockouts.settle(this.#key, waiter.rule, place, false)
  }

  #refuseAll(admission: Admission): void {
    for (const waiter of this.#waiters) {
      this.#leave(waiter)
      waiter.resolve(admission)
    }
  }

  /** @returns whether it still waited */
  #leave(waiter: Waiter): boolean {
    clearTimeout(waiter.timer)
    return this.#waiters.delete(waiter)
  }

  #setTimeLimit(waiter: Waiter, ms: number): void {
    waiter.timer = setTimeout(() => {
      const endsAt = Math.min(this.#movedAt + maxWaitMs, waiter.joinedAt + maxTotalMs)
      const left = endsAt - performance.now()
      if (left > 0) this.#setTimeLimit(waiter, left)
      else if (this.#leave(waiter)) waiter.resolve(timeIsOver)
    }, ms)
  }

  async #nextRelease(): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, pollMs)
      this.#onRelease = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    this.#onRelease = () => {}
  }
}

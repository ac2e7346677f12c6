/** Queues sign-ins of a key in the order of arrival: each waits for its password check. */
import { addAbortListener } from 'node:events'
import type { Admission, LockoutRule, Lockouts } from './lockout.ts'

export interface AdmissionQueue {
  /**
   * Waits for a place, at most `maxWaitMs` in which no earlier waiter gets one.
   * @param leaving ends the wait; whoever left holds up no other waiter
   * @returns as `Lockouts.admit`; neither place nor lock where the time was over
   * @throws the reason of `leaving`
   */
  readonly admit: (key: string, rule: LockoutRule, leaving: AbortSignal) => Promise<Admission>
  /** @returns the length of the lock that it causes, in milliseconds; 0 without one */
  readonly settle: Lockouts['settle']
}

interface Waiter {
  readonly rule: LockoutRule
  readonly resolve: (admission: Admission) => void
  readonly reject: (error: unknown) => void
  readonly joinedAt: number
  /** The listener for a client that leaves. */
  leaving?: Disposable
  timer?: NodeJS.Timeout
}

const maxWaitMs = 5000
/** The longest total wait: a hundred passwords take that long on a busy machine. */
const maxTotalMs = 30_000
/** Polls, since other processes do not announce when they release a place. */
const pollMs = 200
const timeIsOver: Admission = { place: undefined, waitMs: 0 }

type Places = Pick<Lockouts, 'admit' | 'settle'>

export function createAdmissionQueue(lockouts: Places): AdmissionQueue {
  /** Queues by key: at most as many as open sign-ins. */
  const lines = new Map<string, Line>()
  return {
    admit: async (key, rule, leaving) => {
      leaving.throwIfAborted()
      const line = lines.get(key)
      if (line !== undefined) return await line.join(rule, leaving)
      const opened = new Line(key, lockouts)
      lines.set(key, opened)
      const admission = opened.join(rule, leaving)
      void opened.serve(() => lines.delete(key))
      return await admission
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

/** The queue for the places of one key. */
class Line {
  readonly #key: string
  readonly #lockouts: Places
  /** In the order of arrival. */
  readonly #waiters = new Set<Waiter>()
  /** Rises with each place that this process releases. */
  #releases = 0
  /** The last time a waiter got a place: while the queue moves, no waiter times out. */
  #movedAt = -Infinity
  #onRelease: () => void = () => {}

  constructor(key: string, lockouts: Places) {
    this.#key = key
    this.#lockouts = lockouts
  }

  join(rule: LockoutRule, leaving: AbortSignal): Promise<Admission> {
    const { promise, resolve, reject } = Promise.withResolvers<Admission>()
    const waiter: Waiter = { rule, resolve, reject, joinedAt: performance.now() }
    waiter.leaving = addAbortListener(leaving, () => {
      if (this.#leave(waiter)) reject(leaving.reason)
    })
    this.#setTimeLimit(waiter, maxWaitMs)
    this.#waiters.add(waiter)
    return promise
  }

  /** @param onEmpty called as soon as the queue is empty: a later sign-in needs a new one */
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

  /** Called when a place was released. */
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

  /** @returns whether it was still waiting */
  #leave(waiter: Waiter): boolean {
    clearTimeout(waiter.timer)
    waiter.leaving?.[Symbol.dispose]()
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

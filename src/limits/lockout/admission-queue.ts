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

interface Line {
  /** The first to come first. */
  readonly waiters: Set<Waiter>
  /** Grows with each place that is given back here. */
  releases: number
  /** When the last of them got a place: who stands in a line that moves is not turned away. */
  movedAt: number
  onRelease: () => void
}

const maxWaitMs = 5000
/** In all: a hundred passwords on a busy machine take that long, and browsers wait for longer. */
const maxTotalMs = 30_000
/** Another process tells nobody when it gives a place back. */
const pollMs = 200
const timeIsOver: Admission = { place: undefined, waitMs: 0 }

function newLine(): Line {
  return { waiters: new Set(), releases: 0, movedAt: -Infinity, onRelease: () => {} }
}

type Places = Pick<Lockouts, 'admit' | 'settle'>

export function createAdmissionQueue(lockouts: Places): AdmissionQueue {
  /** Of keys that somebody waits for: as many as sign-ins are open. */
  const lines = new Map<string, Line>()

  function leave({ waiters }: Line, waiter: Waiter): boolean {
    clearTimeout(waiter.timer)
    return waiters.delete(waiter)
  }

  async function serve(key: string, line: Line): Promise<void> {
    for (let [first] = line.waiters; first !== undefined; [first] = line.waiters) {
      const { releases } = line
      try {
        const admission = await lockouts.admit(key, first.rule)
        if (admission.place !== undefined) await give(key, line, first, admission.place)
        else if (admission.waitMs > 0) refuseAll(line, admission)
        else if (releases === line.releases) await released(line)
      } catch (error) {
        if (leave(line, first)) first.reject(error)
      }
    }
    lines.delete(key)
  }

  async function give(key: string, line: Line, waiter: Waiter, place: string): Promise<void> {
    line.movedAt = performance.now()
    if (leave(line, waiter)) waiter.resolve({ place, waitMs: 0 })
    else await lockouts.settle(key, waiter.rule, place, false)
  }

  function waitFor(ms: number, line: Line, waiter: Waiter): void {
    waiter.timer = setTimeout(() => {
      const now = performance.now()
      const left = Math.min(line.movedAt + maxWaitMs, waiter.joinedAt + maxTotalMs) - now
      if (left > 0) return waitFor(left, line, waiter)
      if (leave(line, waiter)) waiter.resolve(timeIsOver)
    }, ms)
  }

  function refuseAll(line: Line, admission: Admission): void {
    for (const waiter of line.waiters) {
      leave(line, waiter)
      waiter.resolve(admission)
    }
  }

  async function released(line: Line): Promise<void> {
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, pollMs)
      line.onRelease = () => {
        clearTimeout(timer)
        resolve()
      }
    })
    line.onRelease = () => {}
  }

  return {
    admit: async (key, rule) => {
      const line = lines.get(key) ?? newLine()
      const { promise, resolve, reject } = Promise.withResolvers<Admission>()
      const waiter: Waiter = { rule, resolve, reject, joinedAt: performance.now() }
      waitFor(maxWaitMs, line, waiter)
      line.waiters.add(waiter)
      if (!lines.has(key)) {
        lines.set(key, line)
        void serve(key, line)
      }
      return await promise
    },
    settle: async (key, rule, place, failed) => {
      try {
        return await lockouts.settle(key, rule, place, failed)
      } finally {
        const line = lines.get(key)
        if (line !== undefined) {
          line.releases++
          line.onRelease()
        }
      }
    }
  }
}

/**
 * Where a bucket is used up while its sign-ins are still being judged here, the next ones wait: a
 * whole office may sign in at once, and guesses gain nothing.
 */
import { addAbortListener } from 'node:events'
import type { Bucket, Lockouts, Taken } from './lockouts.ts'

export const timeIsOver = 'time is over'

/** Of one key: there as long as a sign-in of it is judged. */
interface Line {
  running: number
  /** In their order; each is called with whether it may try again. */
  readonly waiting: Set<(mayTry: boolean) => void>
  /** Sends all away that wait, whenever for so long no sign-in of the key ended. */
  readonly timer: NodeJS.Timeout
}

const maxWaitMs = 5000

export class SignInLines {
  readonly #lockouts: Pick<Lockouts, 'take'>
  readonly #lines = new Map<string, Line>()

  get size(): number {
    return this.#lines.size
  }

  constructor(lockouts: Pick<Lockouts, 'take'>) {
    this.#lockouts = lockouts
  }

  /**
   * Waits for sign-ins that may give a failure back. Whoever took calls `end`.
   * @throws the reason of `leaving`
   */
  async take(buckets: readonly Bucket[], leaving: AbortSignal): Promise<Taken | typeof timeIsOver> {
    for (;;) {
      leaving.throwIfAborted()
      const before = buckets.map(({ key }) => this.#lines.get(key))
      const taken = await this.#lockouts.take(buckets)
      if (taken.isTaken) {
        for (const { key } of buckets) this.#lineOf(key).running++
        return taken
      }
      const full = taken.waitMs.findIndex(ms => ms > 0)
      const line = this.#lines.get(buckets[full]?.key ?? '')
      // A line that is gone may have given a failure back meanwhile.
      if (line === undefined && before[full] === undefined) return taken
      if (line !== undefined && !(await wait(line, leaving))) return timeIsOver
    }
  }

  /** @param returned the buckets to which the sign-in gave its failure back */
  end(buckets: readonly Bucket[], returned: readonly Bucket[]): void {
    for (const bucket of buckets) {
      const line = this.#lines.get(bucket.key)
      if (line === undefined) continue
      line.running--
      line.timer.refresh()
      if (line.running === 0) {
        // Nobody is left to be waited for.
        this.#lines.delete(bucket.key)
        clearInterval(line.timer)
        callAll(line.waiting, true)
      } else if (returned.includes(bucket)) {
        const [first] = line.waiting
        if (first === undefined) continue
        line.waiting.delete(first)
        first(true)
      }
    }
  }

  #lineOf(key: string): Line {
    let line = this.#lines.get(key)
    if (line === undefined) {
      const waiting: Line['waiting'] = new Set()
      const timer = setInterval(() => callAll(waiting, false), maxWaitMs)
      this.#lines.set(key, (line = { running: 0, waiting, timer }))
    }
    return line
  }
}

function callAll(waiting: Line['waiting'], mayTry: boolean): void {
  for (const call of waiting) call(mayTry)
}

/** @returns whether it may try again; otherwise its time is over */
async function wait({ waiting }: Line, leaving: AbortSignal): Promise<boolean> {
  const turn = Promise.withResolvers<boolean>()
  const listener = addAbortListener(leaving, () => turn.reject(leaving.reason))
  waiting.add(turn.resolve)
  try {
    return await turn.promise
  } finally {
    waiting.delete(turn.resolve)
    listener[Symbol.dispose]()
  }
}

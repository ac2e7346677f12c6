/**
 * Where a bucket is used up while its sign-ins are still being judged here, the next ones wait: a
 * whole office may sign in at once, and guesses gain nothing.
 */
import { addAbortListener } from 'node:events'
import type { Bucket, Lockouts, Taken } from './lockouts.ts'

export const timeIsOver = 'time is over'

/** Of one key: there as long as a sign-in of it is judged. */
class Line {
  running = 0
  /** In their order; each is called with whether it may try again. */
  readonly waiting = new Set<(mayTry: boolean) => void>()
  /** Sends all away that wait, whenever for so long no sign-in of the key ended. */
  readonly timer = setInterval(() => this.call(Infinity, false), 5000)

  call(count: number, mayTry: boolean): void {
    for (const call of [...this.waiting].slice(0, count)) {
      this.waiting.delete(call)
      call(mayTry)
    }
  }
}

export class SignInLines {
  readonly #lockouts: Pick<Lockouts, 'take'>
  readonly #lines = new Map<string, Line>()

  constructor(lockouts: Pick<Lockouts, 'take'>) {
    this.#lockouts = lockouts
  }

  /** Whoever took calls `end`. @throws the reason of `leaving` */
  async take(buckets: readonly Bucket[], leaving: AbortSignal): Promise<Taken | typeof timeIsOver> {
    for (;;) {
      leaving.throwIfAborted()
      const before = buckets.map(({ key }) => this.#lines.get(key))
      const taken = await this.#lockouts.take(buckets)
      if (taken.isTaken) {
        for (const { key } of buckets) this.#begin(key)
        return taken
      }
      const full = taken.waitMs.findIndex(ms => ms > 0)
      const line = this.#lines.get(buckets[full]?.key ?? '')
      // A line that is gone may have given a failure back meanwhile.
      if (line === undefined && before[full] === undefined) return taken
      if (line !== undefined && !(await wait(line, leaving))) return timeIsOver
    }
  }

  #begin(key: string): void {
    const line = this.#lines.get(key) ?? new Line()
    this.#lines.set(key, line)
    line.running++
  }

  /** The next that waits tries again: this one may have given its failures back. */
  end(buckets: readonly Bucket[]): void {
    for (const { key } of buckets) {
      const line = this.#lines.get(key)
      if (line === undefined) continue
      line.running--
      line.timer.refresh()
      line.call(line.running === 0 ? Infinity : 1, true)
      if (line.running > 0) continue
      this.#lines.delete(key)
      clearInterval(line.timer)
    }
  }
}

/** @returns whether it may try again, or has left; otherwise its time is over */
async function wait({ waiting }: Line, leaving: AbortSignal): Promise<boolean> {
  const turn = Promise.withResolvers<boolean>()
  const listener = addAbortListener(leaving, () => turn.resolve(true))
  waiting.add(turn.resolve)
  const mayTry = await turn.promise
  waiting.delete(turn.resolve)
  listener[Symbol.dispose]()
  return mayTry
}

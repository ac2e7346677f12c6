/**
 * Where a bucket of failures is used up while sign-ins of it are still being judged here, the next
 * ones wait: a whole office may sign in at once, and guesses gain nothing.
 */
import { addAbortListener } from 'node:events'
import type { Bucket, Lockouts, Taken } from './lockouts.ts'

/** One that got no place in time: others of the key are still being judged. */
export const timeIsOver = 'time is over'

/** Of one key: there as long as a sign-in of it is judged, or waits. */
interface Line {
  running: number
  /**
   * Those that wait, in their order: each is called with whether it may try again (otherwise its
   * time is over), which its timer does.
   */
  readonly waiting: Map<(mayTry: boolean) => void, NodeJS.Timeout>
}

/** So long one waits while none of the key ends. */
const maxWaitMs = 5000

export class SignInLines {
  readonly #lockouts: Pick<Lockouts, 'take'>
  readonly #lines = new Map<string, Line>()

  /** How many keys have one. */
  get size(): number {
    return this.#lines.size
  }

  constructor(lockouts: Pick<Lockouts, 'take'>) {
    this.#lockouts = lockouts
  }

  /**
   * Takes a failure from each bucket; waits where sign-ins that may give one back are being judged.
   * Whoever took calls `end`.
   * @param leaving ends the wait
   * @throws the reason of `leaving`
   */
  async take(buckets: readonly Bucket[], leaving: AbortSignal): Promise<Taken | typeof timeIsOver> {
    let line = buckets.find(({ key }) => (this.#lines.get(key)?.waiting.size ?? 0) > 0)?.key
    for (;;) {
      if (line !== undefined && !(await this.#wait(line, leaving))) return timeIsOver
      const before = buckets.map(({ key }) => this.#running(key))
      const taken = await this.#try(buckets, leaving).catch((error: unknown) => {
        this.#callNext(line)
        throw error
      })
      if (taken.isTaken) return taken
      const full = taken.waitMs.findIndex(ms => ms > 0)
      const { key } = buckets[full] as Bucket
      const next = this.#running(key) > 0 ? key : undefined
      if (line !== next) this.#callNext(line)
      // Otherwise one may have been given back meanwhile.
      if (next === undefined && before[full] === 0) return taken
      line = next
    }
  }

  /**
   * Called when a sign-in that took was judged.
   * @param returned the buckets to which it gave its failure back
   */
  end(buckets: readonly Bucket[], returned: readonly Bucket[]): void {
    for (const bucket of buckets) {
      const line = this.#lines.get(bucket.key)
      if (line === undefined) continue
      line.running--
      for (const timer of line.waiting.values()) timer.refresh()
      if (returned.includes(bucket) || line.running === 0) this.#callNext(bucket.key)
      this.#forget(bucket.key)
    }
  }

  async #try(buckets: readonly Bucket[], leaving: AbortSignal): Promise<Taken> {
    leaving.throwIfAborted()
    const taken = await this.#lockouts.take(buckets)
    if (taken.isTaken) for (const { key } of buckets) this.#lineOf(key).running++
    return taken
  }

  /** @returns whether it may try again; otherwise its time is over */
  async #wait(key: string, leaving: AbortSignal): Promise<boolean> {
    const { waiting } = this.#lineOf(key)
    const turn = Promise.withResolvers<boolean>()
    const call = (mayTry: boolean) => {
      waiting.delete(call)
      turn.resolve(mayTry)
    }
    const listener = addAbortListener(leaving, () => {
      waiting.delete(call)
      turn.reject(leaving.reason)
    })
    const timer = setTimeout(call, maxWaitMs, false)
    waiting.set(call, timer)
    try {
      return await turn.promise
    } finally {
      clearTimeout(timer)
      listener[Symbol.dispose]()
      this.#forget(key)
    }
  }

  #running(key: string): number {
    return this.#lines.get(key)?.running ?? 0
  }

  #callNext(key: string | undefined): void {
    if (key === undefined) return
    const [first] = this.#lines.get(key)?.waiting.keys() ?? []
    first?.(true)
  }

  #lineOf(key: string): Line {
    let line = this.#lines.get(key)
    if (line === undefined) this.#lines.set(key, (line = { running: 0, waiting: new Map() }))
    return line
  }

  #forget(key: string): void {
    const line = this.#lines.get(key)
    if (line?.running === 0 && line.waiting.size === 0) this.#lines.delete(key)
  }
}

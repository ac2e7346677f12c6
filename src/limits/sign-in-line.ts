/**
 * Where a bucket of failures is used up while sign-ins of it are still being judged here, the next
 * ones wait: a whole office may sign in at once, and guesses gain nothing.
 */
import { addAbortListener } from 'node:events'
import type { Bucket, Lockouts, Taken } from './lockouts.ts'

/** One that got no place in time: others of the key are still being judged. */
export const timeIsOver = 'time is over'

interface Waiter {
  /** Whether it may try again; otherwise its time is over. */
  readonly turn: PromiseWithResolvers<boolean>
  timer?: NodeJS.Timeout
}

/** Of one key: there as long as a sign-in of it is judged, or waits. */
interface Line {
  running: number
  /** How many of them have ended. */
  ends: number
  /** The first one came first. */
  readonly waiters: Set<Waiter>
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
    const others = buckets.find(({ key }) => (this.#lines.get(key)?.waiters.size ?? 0) > 0)
    let line = others?.key
    for (;;) {
      if (line !== undefined && !(await this.#wait(line, leaving))) return timeIsOver
      const ends = buckets.map(({ key }) => this.#lines.get(key)?.ends)
      const taken = await this.#try(buckets, leaving).catch((error: unknown) => {
        if (line !== undefined) this.#callNext(line)
        throw error
      })
      if (taken.isTaken) return taken
      if (line !== undefined && !isFull(line, buckets, taken)) this.#callNext(line)
      const full = taken.waitMs.findIndex(ms => ms > 0)
      const { key } = buckets[full] as Bucket
      const { running, ends: endsNow } = this.#lines.get(key) ?? {}
      if (endsNow !== ends[full]) {
        // One may have been given back meanwhile.
        line = undefined
        continue
      }
      // Nobody gives one back.
      if (running === undefined || running === 0) {
        this.#callNext(key)
        return taken
      }
      line = key
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
      line.ends++
      for (const { timer } of line.waiters) timer?.refresh()
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
    const line = this.#lineOf(key)
    const waiter: Waiter = { turn: Promise.withResolvers() }
    waiter.timer = setTimeout(() => {
      line.waiters.delete(waiter)
      waiter.turn.resolve(false)
    }, maxWaitMs)
    const listener = addAbortListener(leaving, () => {
      line.waiters.delete(waiter)
      waiter.turn.reject(leaving.reason)
    })
    line.waiters.add(waiter)
    try {
      return await waiter.turn.promise
    } finally {
      clearTimeout(waiter.timer)
      listener[Symbol.dispose]()
      this.#forget(key)
    }
  }

  #callNext(key: string): void {
    const { waiters } = this.#lines.get(key) ?? {}
    const [first] = waiters ?? []
    if (first === undefined) return
    waiters?.delete(first)
    first.turn.resolve(true)
  }

  #lineOf(key: string): Line {
    let line = this.#lines.get(key)
    if (line === undefined) {
      line = { running: 0, ends: 0, waiters: new Set() }
      this.#lines.set(key, line)
    }
    return line
  }

  #forget(key: string): void {
    const line = this.#lines.get(key)
    if (line?.running === 0 && line.waiters.size === 0) this.#lines.delete(key)
  }
}

function isFull(key: string, buckets: readonly Bucket[], { waitMs }: Taken): boolean {
  return buckets.some((bucket, index) => bucket.key === key && (waitMs[index] ?? 0) > 0)
}

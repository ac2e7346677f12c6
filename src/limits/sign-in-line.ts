/**
 * Where a bucket of failures is used up while sign-ins of it are still being judged here, the next
 * ones wait: a whole office may sign in at once, and guesses gain nothing.
 */
import { addAbortListener } from 'node:events'
import type { Bucket, Lockouts, Taken } from './lockouts.ts'

/** One that got no place in time: others of the key are still being judged. */
export const timeIsOver = 'time is over'

interface Waiter {
  readonly buckets: readonly Bucket[]
  /** Aborted when its client leaves. */
  readonly signal: AbortSignal
  readonly joinedAt: number
  readonly settle: PromiseWithResolvers<Taken | typeof timeIsOver>
  leaving?: Disposable
  timer?: NodeJS.Timeout
}

interface Line {
  /** Sign-ins of the key that are being judged. */
  running: number
  /** Rises whenever one of them ends. */
  ends: number
  endedAt: number
  readonly waiters: Set<Waiter>
  isServed: boolean
  onEnd: () => void
}

/** So long one waits while none of the key ends. */
const maxWaitMs = 5000

export class SignInLines {
  readonly #lockouts: Pick<Lockouts, 'take' | 'giveBack'>
  /** By the key of a bucket: only those with a sign-in in them. */
  readonly #lines = new Map<string, Line>()

  /** How many keys have one. */
  get size(): number {
    return this.#lines.size
  }

  constructor(lockouts: Pick<Lockouts, 'take' | 'giveBack'>) {
    this.#lockouts = lockouts
  }

  /**
   * Takes a failure from each bucket; waits where sign-ins that may give one back are being judged.
   * Whoever took calls `end`.
   * @param leaving ends the wait
   * @throws the reason of `leaving`
   */
  async take(buckets: readonly Bucket[], leaving: AbortSignal): Promise<Taken | typeof timeIsOver> {
    leaving.throwIfAborted()
    const before = buckets.map(({ key }) => this.#lines.get(key)?.ends)
    const others = buckets.find(({ key }) => (this.#lines.get(key)?.waiters.size ?? 0) > 0)
    if (others !== undefined) return await this.#join(others.key, buckets, leaving)
    const taken = await this.#lockouts.take(buckets)
    if (taken.isTaken) {
      this.#begin(buckets)
      return taken
    }
    const index = taken.waitMs.findIndex(ms => ms > 0)
    const { key } = buckets[index] as Bucket
    const line = this.#lines.get(key)
    // Nobody gives one back, unless somebody just did.
    if (line === undefined && before[index] === undefined) return taken
    return await this.#join(key, buckets, leaving)
  }

  /** Called when a sign-in that took was judged, and has given back what it may. */
  end(buckets: readonly Bucket[]): void {
    for (const { key } of buckets) {
      const line = this.#lines.get(key)
      if (line === undefined) continue
      line.running--
      line.ends++
      line.endedAt = performance.now()
      line.onEnd()
      this.#forget(key, line)
    }
  }

  #begin(buckets: readonly Bucket[]): void {
    for (const { key } of buckets) this.#lineOf(key).running++
  }

  #lineOf(key: string): Line {
    let line = this.#lines.get(key)
    if (line === undefined) {
      line = {
        running: 0,
        ends: 0,
        endedAt: -Infinity,
        waiters: new Set(),
        isServed: false,
        onEnd: () => {}
      }
      this.#lines.set(key, line)
    }
    return line
  }

  #forget(key: string, line: Line): void {
    if (line.running === 0 && !line.isServed) this.#lines.delete(key)
  }

  async #join(
    key: string,
    buckets: readonly Bucket[],
    leaving: AbortSignal
  ): Promise<Taken | typeof timeIsOver> {
    leaving.throwIfAborted()
    const line = this.#lineOf(key)
    const waiter: Waiter = {
      buckets,
      signal: leaving,
      joinedAt: performance.now(),
      settle: Promise.withResolvers()
    }
    waiter.leaving = addAbortListener(leaving, () => {
      if (leave(line, waiter)) waiter.settle.reject(leaving.reason)
    })
    setTimeLimit(line, waiter, maxWaitMs)
    line.waiters.add(waiter)
    if (!line.isServed) void this.#serve(key, line)
    return await waiter.settle.promise
  }

  /** Lets in one after the other, as failures are given back. */
  async #serve(key: string, line: Line): Promise<void> {
    line.isServed = true
    for (let [first] = line.waiters; first !== undefined; [first] = line.waiters) {
      const { ends } = line
      try {
        const taken = await this.#lockouts.take(first.buckets)
        if (taken.isTaken) await this.#admit(line, first, taken)
        else if (isFullElsewhere(key, first, taken)) this.#move(line, first, taken)
        else if (line.running > 0) await nextEnd(line, ends)
        else if (ends === line.ends) for (const each of line.waiters) settle(line, each, taken)
      } catch (error) {
        if (leave(line, first)) first.settle.reject(error)
      }
    }
    line.isServed = false
    this.#forget(key, line)
  }

  /** To the line of the bucket that holds it up, where there is one. */
  #move(line: Line, waiter: Waiter, taken: Taken): void {
    const { key = '' } = waiter.buckets[taken.waitMs.findIndex(ms => ms > 0)] ?? {}
    if (!this.#lines.has(key)) return settle(line, waiter, taken)
    if (leave(line, waiter)) {
      waiter.settle.resolve(this.#join(key, waiter.buckets, waiter.signal))
    }
  }

  async #admit(line: Line, waiter: Waiter, taken: Taken): Promise<void> {
    if (!leave(line, waiter)) return await this.#lockouts.giveBack(waiter.buckets, taken)
    this.#begin(waiter.buckets)
    waiter.settle.resolve(taken)
  }
}

/** Whether it is another bucket than the line's that holds this one up. */
function isFullElsewhere(key: string, { buckets }: Waiter, { waitMs }: Taken): boolean {
  return buckets.every((bucket, index) => bucket.key !== key || waitMs[index] === 0)
}

/** @returns whether it was still waiting */
function leave({ waiters }: Line, waiter: Waiter): boolean {
  clearTimeout(waiter.timer)
  waiter.leaving?.[Symbol.dispose]()
  return waiters.delete(waiter)
}

function settle(line: Line, waiter: Waiter, answer: Taken | typeof timeIsOver): void {
  if (leave(line, waiter)) waiter.settle.resolve(answer)
}

function setTimeLimit(line: Line, waiter: Waiter, ms: number): void {
  waiter.timer = setTimeout(() => {
    const left = Math.max(line.endedAt, waiter.joinedAt) + maxWaitMs - performance.now()
    if (left > 0) return setTimeLimit(line, waiter, left)
    settle(line, waiter, timeIsOver)
    line.onEnd()
  }, ms)
}

/** Waits for the next end, or for the first of the line to give up; not where one ended meanwhile. */
async function nextEnd(line: Line, ends: number): Promise<void> {
  if (line.ends !== ends) return
  await new Promise<void>(resolve => {
    line.onEnd = resolve
  })
  line.onEnd = () => {}
}

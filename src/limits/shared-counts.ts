/**
 * Counts of limits, told to Redis in the background: few requests wait, and limits need no Redis.
 * Small limits are taken in Redis at each request: there a few more would be many.
 */
import { BoundedMap } from '../bounded-map.ts'
import { eachMs, fullAfter, look, type Rate, type Verdict } from './gcra.ts'
import { steadyClock } from '../steady-clock.ts'
import type { CountStore } from './redis-counts.ts'

interface Entry {
  rate: Rate
  full: number
  untold: number
  isReported: boolean
}

/** Limits of at most so many at once are taken in Redis. */
const exactUpTo = 60
const tellEveryMs = 100
/** So many commands leave in one write. */
const atOnce = 500
/** A caller is told of at once when it used a twentieth of what it has left since it was told of. */
const hurried = 20
const firstBackOffMs = 500
const longestBackOffMs = 5000
/** Of hostile callers: those that were not seen for the longest time are forgotten. */
const maxKeys = 100_000

export class SharedCounts {
  readonly #store: CountStore | undefined
  /** Used since Redis was told last, also where they refused: an operator may have reset them. */
  readonly #due = new Map<string, Entry>()
  readonly #entries = new BoundedMap<Entry>(maxKeys, key => this.#due.delete(key))
  #timer: NodeJS.Timeout | undefined
  #telling: Promise<void> | undefined
  /** While Redis is away: the wait before it is told again; else 0. */
  #backOffMs = 0

  /** @param store undefined for a process that is alone */
  constructor(store: CountStore | undefined) {
    this.#store = store
  }

  get isAway(): boolean {
    return this.#backOffMs > 0
  }

  isExact({ burst }: Rate): boolean {
    return burst <= exactUpTo && this.#store !== undefined && !this.isAway
  }

  /** `remaining` is the rest after it. */
  hit(key: string, rate: Rate): Verdict | Promise<Verdict> {
    const entry = this.#entry(key, rate)
    if (this.#store === undefined || !this.isExact(rate)) return this.#hitHere(key, entry)
    // What Redis refused before is refused here: a change is learned in the background.
    const isRefused = look(rate, entry.full, steadyClock.now()).exceeded
    return isRefused ? this.#hitHere(key, entry) : this.#take(this.#store, key, entry)
  }

  look(key: string, rate: Rate): Verdict {
    return look(rate, this.#entry(key, rate).full, steadyClock.now())
  }

  /** Whether a refusal is the first one since a request of that key passed. */
  isNews(key: string): boolean {
    const entry = this.#entries.peek(key)
    if (entry === undefined || entry.isReported) return false
    entry.isReported = true
    return true
  }

  async forget(caller: string): Promise<void> {
    await this.#store?.forget(caller)
    for (const key of this.#entries.keys()) {
      if (key.startsWith(`${caller} `)) this.#entries.delete(key)
    }
  }

  clear(): void {
    this.#entries.clear()
  }

  async ofCaller(caller: string) {
    if (this.#store !== undefined) return await this.#store.ofCaller(caller)
    return [...this.#entries.entries()]
      .filter(([key]) => key.startsWith(`${caller} `))
      .map(([key, entry]) => ({ limit: key.slice(caller.length + 1), used: usedOf(entry) }))
  }

  async flush(): Promise<void> {
    if (this.#store === undefined) return
    this.#telling ??= this.#tell(this.#store).finally(() => {
      this.#telling = undefined
      if (this.#due.size > 0) this.#schedule()
    })
    await this.#telling
  }

  async close(): Promise<void> {
    await this.#telling
    await this.flush()
    clearTimeout(this.#timer)
  }

  #entry(key: string, rate: Rate): Entry {
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { rate, full: 0, untold: 0, isReported: false }
      this.#entries.set(key, entry)
    } else if (entry.rate !== rate) {
      // A reload may have changed the rate: what was used stays.
      const now = steadyClock.now()
      entry.full = fullAfter(rate, now, usedOf(entry), now)
      entry.rate = rate
    }
    return entry
  }

  #hitHere(key: string, entry: Entry): Verdict {
    const { rate } = entry
    const now = steadyClock.now()
    const verdict = look(rate, entry.full, now)
    this.#note(key, entry)
    if (verdict.exceeded) return verdict
    entry.full = fullAfter(rate, entry.full, 1, now)
    entry.untold++
    entry.isReported = false
    const after = look(rate, entry.full, now)
    if (entry.untold * hurried >= after.remaining && !this.isAway) void this.flush()
    return passed(after)
  }

  async #take(store: CountStore, key: string, entry: Entry): Promise<Verdict> {
    const { rate } = entry
    let fullIn: number
    try {
      fullIn = await store.take(key, rate)
    } catch {
      if (!this.isAway) this.#backOff()
      return this.#hitHere(key, entry)
    }
    const now = steadyClock.now()
    learn(entry, Math.abs(fullIn), now)
    const verdict = look(rate, now + Math.abs(fullIn), now)
    if (fullIn < 0) return { ...verdict, exceeded: true, retryMs: Math.max(1, verdict.retryMs) }
    entry.isReported = false
    return passed(verdict)
  }

  #note(key: string, entry: Entry): void {
    if (this.#store === undefined || this.#due.get(key) === entry) return
    this.#due.set(key, entry)
    this.#schedule()
  }

  #schedule(): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        void this.flush()
      },
      Math.max(tellEveryMs, this.#backOffMs)
    ).unref()
  }

  async #tell(store: CountStore): Promise<void> {
    const due = [...this.#due]
    const [first] = due
    if (first === undefined) return
    try {
      // A Redis that was stopped counts later what it was told meanwhile: it is told nothing twice.
      if (this.isAway) await store.tell(first[0], first[1].rate, 0)
      for (let start = 0; start < due.length; start += atOnce) {
        const some = due.slice(start, start + atOnce)
        await Promise.all(some.map(([key, entry]) => this.#tellOf(store, key, entry)))
      }
      this.#backOffMs = 0
    } catch {
      this.#backOff()
    }
  }

  async #tellOf(store: CountStore, key: string, entry: Entry): Promise<void> {
    // Of a late count only the part that is not free again by now is told.
    const count = Math.min(entry.untold, usedOf(entry))
    entry.untold = 0
    this.#due.delete(key)
    try {
      learn(entry, await store.tell(key, entry.rate, count), steadyClock.now())
    } catch (error) {
      entry.untold += count
      this.#note(key, entry)
      throw error
    }
  }

  #backOff(): void {
    this.#backOffMs = Math.min(longestBackOffMs, Math.max(firstBackOffMs, this.#backOffMs * 2))
  }
}

/** Takes the count of Redis, and adds the requests that passed here meanwhile. */
function learn(entry: Entry, fullIn: number, now: number): void {
  entry.full = fullAfter(entry.rate, now + fullIn, entry.untold, now)
}

function usedOf({ rate, full }: Pick<Entry, 'rate' | 'full'>): number {
  return Math.max(0, full - steadyClock.now()) / eachMs(rate)
}

/** What is left after a request that passed: whether one more would is another question. */
function passed(after: Verdict): Verdict {
  return { ...after, exceeded: false, retryMs: 0 }
}

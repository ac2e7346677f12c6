/**
 * The counts of limits. They are kept in this process and told to Redis in the background, so that
 * few requests wait for Redis, and limits go on while it is away. Small limits are taken in Redis
 * at each request: there a few more would be many.
 */
import { LRUCache } from 'lru-cache'
import { eachMs, fullAfter, look, type Rate, type Verdict } from './gcra.ts'
import { steadyClock } from '../steady-clock.ts'

export interface Told {
  readonly key: string
  readonly rate: Rate
  /** Requests that passed since it was told last, without those that are free again. */
  readonly count: number
}

/** Use of one limit by a caller. */
export interface UsedLimit {
  /** The limit's part of the key. */
  readonly limit: string
  /** Requests that are not free again. */
  readonly used: number
}

/** State of a bucket that all replicas share; undefined where its key holds something else. */
export type Learned = number | undefined

/** The counts that replicas share. Keys are `CALLER LIMIT`: a caller holds no blank. */
export interface CountStore {
  /** Counts what is told. @returns milliseconds until each bucket is full again */
  readonly tell: (told: readonly Told[]) => Promise<readonly Learned[]>
  /**
   * Takes one where there is room.
   * @returns milliseconds until the bucket is full again; below 0 where there was no room
   */
  readonly take: (key: string, rate: Rate) => Promise<Learned>
}

interface Entry {
  rate: Rate
  /** When its bucket is full again. */
  full: number
  untold: number
  /** Used since it was told last, also where it refused: an operator may have reset it. */
  isDue: boolean
  isReported: boolean
}

/** Limits of at most so many at once are taken in Redis. */
const exactUpTo = 60
const tellEveryMs = 100
/** A caller is told of at once when it used a twentieth of what it has left since it was told of. */
const hurried = 20
const firstBackOffMs = 500
const longestBackOffMs = 5000
/** Of hostile callers: those that were not seen for the longest time are forgotten. */
const maxKeys = 100_000

export class SharedCounts {
  readonly #entries = new LRUCache<string, Entry>({ max: maxKeys })
  readonly #store: CountStore | undefined
  readonly #onAway: (isAway: boolean) => void
  readonly #due = new Map<string, Entry>()
  #timer: NodeJS.Timeout | undefined
  #telling: Promise<void> | undefined
  /** While Redis is away: the wait before it is told again; else 0. */
  #backOffMs = 0

  /** @param store undefined for a process that is alone */
  constructor(store: CountStore | undefined, onAway: (isAway: boolean) => void = () => {}) {
    this.#store = store
    this.#onAway = onAway
  }

  /** Whether a request waits for Redis at this limit. */
  isExact({ burst }: Rate): boolean {
    return burst <= exactUpTo && this.#store !== undefined && this.#backOffMs === 0
  }

  /** Counts one request, unless it exceeds. `remaining` is the rest after it. */
  hit(key: string, rate: Rate): Verdict | Promise<Verdict> {
    const entry = this.#entry(key, rate)
    if (this.#store === undefined || !this.isExact(rate)) return this.#hitHere(key, entry)
    // What Redis refused before is refused here: a change is learned in the background.
    const isRefused = look(rate, entry.full, steadyClock.now()).exceeded
    return isRefused ? this.#hitHere(key, entry) : this.#take(this.#store, key, entry)
  }

  /** What `hit` would say, without counting. */
  look(key: string, rate: Rate): Verdict {
    const entry = this.#entries.get(key)
    const now = steadyClock.now()
    return look(rate, entry === undefined ? now : this.#at(entry, rate).full, now)
  }

  /** Whether a refusal is the first one since a request of that key passed. */
  isNews(key: string): boolean {
    const entry = this.#entries.peek(key)
    if (entry === undefined || entry.isReported) return false
    entry.isReported = true
    return true
  }

  /** Forgets what this process knows of a caller. */
  forget(caller: string): void {
    for (const key of this.#entries.keys()) {
      if (!key.startsWith(`${caller} `)) continue
      this.#entries.delete(key)
      this.#due.delete(key)
    }
  }

  /** Counts all callers anew. */
  clear(): void {
    this.#entries.clear()
    this.#due.clear()
  }

  /** The counts of a caller in this process. */
  ofCaller(caller: string): UsedLimit[] {
    return [...this.#entries.entries()]
      .filter(([key]) => key.startsWith(`${caller} `))
      .map(([key, entry]) => ({ limit: key.slice(caller.length + 1), used: usedOf(entry) }))
  }

  /** Tells what passed, and learns what passed elsewhere. */
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
    this.#timer = undefined
  }

  #entry(key: string, rate: Rate): Entry {
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { rate, full: 0, untold: 0, isDue: false, isReported: false }
      this.#entries.set(key, entry)
    }
    return this.#at(entry, rate)
  }

  /** A reload may have changed the rate: what was used stays. */
  #at(entry: Entry, rate: Rate): Entry {
    if (entry.rate === rate) return entry
    const now = steadyClock.now()
    entry.full = fullAfter(rate, now, usedOf(entry), now)
    entry.rate = rate
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
    if (entry.untold * hurried >= after.remaining && this.#backOffMs === 0) void this.flush()
    return passed(after)
  }

  async #take(store: CountStore, key: string, entry: Entry): Promise<Verdict> {
    const { rate } = entry
    let fullIn: Learned
    try {
      fullIn = await store.take(key, rate)
    } catch {
      if (this.#backOffMs === 0) this.#setAway()
    }
    if (fullIn === undefined) return this.#hitHere(key, entry)
    const now = steadyClock.now()
    entry.full = fullAfter(rate, now + Math.abs(fullIn), entry.untold, now)
    const verdict = look(rate, now + Math.abs(fullIn), now)
    if (fullIn < 0) return { ...verdict, exceeded: true, retryMs: Math.max(1, verdict.retryMs) }
    entry.isReported = false
    return passed(verdict)
  }

  #note(key: string, entry: Entry): void {
    if (entry.isDue || this.#store === undefined) return
    entry.isDue = true
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
    if (due.length === 0) return
    this.#due.clear()
    for (const [, entry] of due) entry.isDue = false
    const tell = (of: typeof due, counts: readonly number[]) =>
      store.tell(of.map(([key, { rate }], index) => ({ key, rate, count: counts[index] ?? 0 })))
    let counts: number[] = []
    try {
      // A Redis that was stopped counts later what it was told meanwhile: it is told nothing twice.
      if (this.#backOffMs > 0) await tell(due.slice(0, 1), [0])
      counts = due.map(([, entry]) => toTell(entry))
      for (const [, entry] of due) entry.untold = 0
      const learned = await tell(due, counts)
      this.#setBack()
      const now = steadyClock.now()
      due.forEach(([, entry], index) => {
        const fullIn = learned[index]
        if (fullIn === undefined) return
        entry.full = fullAfter(entry.rate, now + fullIn, entry.untold, now)
      })
    } catch {
      this.#setAway()
      due.forEach(([key, entry], index) => {
        entry.untold += counts[index] ?? 0
        this.#note(key, entry)
      })
    }
  }

  #setAway(): void {
    if (this.#backOffMs === 0) this.#onAway(true)
    this.#backOffMs = Math.min(longestBackOffMs, Math.max(firstBackOffMs, this.#backOffMs * 2))
  }

  #setBack(): void {
    if (this.#backOffMs > 0) this.#onAway(false)
    this.#backOffMs = 0
  }
}

/** What was told late is told only as far as it is not free again already. */
function toTell(entry: Entry): number {
  return Math.min(entry.untold, usedOf(entry))
}

function usedOf({ rate, full }: Pick<Entry, 'rate' | 'full'>): number {
  return Math.max(0, full - steadyClock.now()) / eachMs(rate)
}

/** What is left after a request that passed: whether one more would is another question. */
function passed(after: Verdict): Verdict {
  return { ...after, exceeded: false, retryMs: 0 }
}

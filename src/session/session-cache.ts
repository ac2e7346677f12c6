/**
 * This process' cache of the store, so that a session's requests need no round trip. Valid because
 * the store announces every change, and because silence makes it stale.
 */
import { recentlyUsed } from '../bounded-map.ts'
import type { SessionStore, StoredRecord } from './store.ts'

interface Options<T extends object> {
  readonly store: Pick<SessionStore, 'read' | 'epoch' | 'follow'>
  /** Turns a stored record into the cached value; undefined is not cached. */
  readonly parse: (key: string, stored: StoredRecord) => T | undefined
  /** The longest time that a change can go unnoticed, whatever fails. */
  readonly maxStalenessMs: number
  readonly maxEntries?: number
  /** Called for each change of a record that the store announces, by anyone. */
  readonly onChanged?: (key: string) => void
  /** Monotonic: a wall clock that jumps must not make silence look like health. */
  readonly ticks?: () => number
}

/** A read in progress, shared by all callers for the key. */
interface PendingRead<T> {
  readonly promise: Promise<T | undefined>
  /** The record changed since the read began: its result is used once, and not kept. */
  isOutdated: boolean
}

export class SessionCache<T extends object> {
  /** For metrics and tests. */
  readonly stats = { hits: 0, misses: 0 }
  readonly #store: Options<T>['store']
  readonly #parse: Options<T>['parse']
  readonly #maxStalenessMs: number
  readonly #ticks: () => number
  /**
   * The least recently used go first: those that many requests ask for stay, however many there
   * are.
   */
  readonly #entries
  readonly #pending = new Map<string, PendingRead<T>>()
  #isFollowed = false
  #heartbeatAt = 0
  #epoch: number | undefined
  /** Rises with each change of the epoch: a read that a change overtook is not kept. */
  #epochChanges = 0

  constructor(options: Options<T>) {
    const { store, parse, maxStalenessMs, maxEntries = 50_000, onChanged } = options
    this.#store = store
    this.#parse = parse
    this.#maxStalenessMs = maxStalenessMs
    this.#ticks = options.ticks ?? (() => performance.now())
    this.#entries = recentlyUsed<T>(maxEntries)
    store.follow({
      onUp: () => {
        this.clear()
        this.#isFollowed = true
        this.#heartbeatAt = this.#ticks()
      },
      onDown: () => {
        this.#isFollowed = false
        this.clear()
      },
      onHeartbeat: agoMs => {
        this.#heartbeatAt = this.#ticks() - agoMs
      },
      onChanged: key => {
        this.drop(key)
        onChanged?.(key)
      },
      onEpoch: () => this.dropEpoch()
    })
  }

  /**
   * Without a heartbeat for `maxStalenessMs` nothing in the cache counts: silence is not health.
   */
  get isFresh(): boolean {
    return this.#isFollowed && this.#ticks() - this.#heartbeatAt < this.#maxStalenessMs
  }

  /** The cached value; undefined where the store has to be asked. */
  getCached(key: string): { readonly value: T; readonly epoch: number } | undefined {
    const value = this.#entries.get(key)
    const epoch = this.#epoch
    if (value === undefined || epoch === undefined || !this.isFresh) return undefined
    this.stats.hits++
    return { value, epoch }
  }

  /**
   * @param isCurrent whether a cached value says what the store would
   * @throws StoreUnavailable
   */
  async read(key: string, isCurrent: (value: T) => boolean = () => true): Promise<T | undefined> {
    const cached = this.isFresh ? this.#entries.get(key) : undefined
    if (cached !== undefined && isCurrent(cached)) {
      this.stats.hits++
      return cached
    }
    const running = this.#pending.get(key)
    if (running !== undefined && !running.isOutdated) return await running.promise
    const pending: PendingRead<T> = { promise: this.#load(key), isOutdated: false }
    this.#pending.set(key, pending)
    try {
      const value = await pending.promise
      if (value !== undefined && !pending.isOutdated && this.isFresh) {
        this.#entries.set(key, value)
      }
      return value
    } finally {
      if (this.#pending.get(key) === pending) this.#pending.delete(key)
    }
  }

  async #load(key: string): Promise<T | undefined> {
    this.stats.misses++
    const stored = await this.#store.read(key)
    return stored === undefined ? undefined : this.#parse(key, stored)
  }

  /** @throws StoreUnavailable */
  async epoch(): Promise<number> {
    if (this.#epoch !== undefined && this.isFresh) return this.#epoch
    const changes = this.#epochChanges
    const epoch = await this.#store.epoch()
    if (this.isFresh && changes === this.#epochChanges) this.#epoch = epoch
    return epoch
  }

  /** Changes the cached value: the store has changed, and does not announce it. */
  update(key: string, change: (value: T) => T): void {
    const value = this.#entries.get(key)
    if (value !== undefined) this.#entries.set(key, change(value))
    this.#outdate(key)
  }

  drop(key: string): void {
    this.#entries.delete(key)
    this.#outdate(key)
  }

  #outdate(key: string): void {
    const pending = this.#pending.get(key)
    if (pending !== undefined) pending.isOutdated = true
  }

  dropEpoch(): void {
    this.#epoch = undefined
    this.#epochChanges++
  }

  /** Only values parsed from now on count; running reads are not kept. */
  clear(): void {
    this.#entries.clear()
    this.dropEpoch()
    for (const pending of this.#pending.values()) pending.isOutdated = true
  }
}

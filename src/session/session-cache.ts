/** What this process remembers of the store, so that a session's requests cost it nothing; honest because every change is told. */
import { recentlyUsed } from './recently-used.ts'
import type { StoredRecord, SessionStore } from './store.ts'

export interface SessionCache<T extends object> {
  /** @throws StoreUnavailable */
  readonly read: (key: string) => Promise<T | undefined>
  /** What is known without asking; undefined where the store has to be asked. */
  readonly getCached: (key: string) => { readonly value: T; readonly epoch: number } | undefined
  /** @throws StoreUnavailable */
  readonly epoch: () => Promise<number>
  readonly drop: (key: string) => void
  /** What is parsed from now on counts, also of what is being read. */
  readonly forgetAll: () => void
  readonly dropEpoch: () => void
  /** For metrics and tests. */
  readonly stats: { hits: number; misses: number }
}

interface Options<T extends object> {
  readonly store: SessionStore
  /** Turns what was read into what is remembered; undefined is not remembered. */
  readonly parse: (key: string, found: StoredRecord) => T | undefined
  /** The longest time that a change can go unnoticed, whatever fails. */
  readonly maxStalenessMs: number
  readonly maxEntries?: number
  /** Monotonic: a wall clock that jumps must not make silence look like health. */
  readonly ticks?: () => number
}

interface Slot<T> {
  readonly promise: Promise<T | undefined>
  dirty: boolean
}

export function createSessionCache<T extends object>({
  store,
  parse,
  maxStalenessMs,
  maxEntries = 50_000,
  ticks = () => performance.now()
}: Options<T>): SessionCache<T> {
  // The least recently used go first: those that many requests ask for stay, however many there are.
  const entries = recentlyUsed<T>(maxEntries)
  const reading = new Map<string, Slot<T>>()
  const stats = { hits: 0, misses: 0 }
  let followed = false
  let aliveAt = 0
  let epoch: number | undefined
  let epochTold = 0

  const forgetAll = () => {
    entries.clear()
    epoch = undefined
    epochTold++
    for (const slot of reading.values()) slot.dirty = true
  }
  /** An answer that was overtaken by the news of a change is used once, and not kept. */
  const drop = (key: string) => {
    entries.delete(key)
    const slot = reading.get(key)
    if (slot !== undefined) slot.dirty = true
  }

  const dropEpoch = () => {
    epoch = undefined
    epochTold++
  }

  store.follow({
    onUp: () => {
      forgetAll()
      followed = true
      aliveAt = ticks()
    },
    onDown: () => {
      followed = false
      forgetAll()
    },
    onHeartbeat: agoMs => {
      aliveAt = ticks() - agoMs
    },
    onChanged: drop,
    onEpoch: dropEpoch
  })

  /** Silence is not health: without a sign of life for so long, nothing that is remembered counts. */
  const isFresh = () => followed && ticks() - aliveAt < maxStalenessMs

  async function load(key: string): Promise<T | undefined> {
    stats.misses++
    const found = await store.read(key)
    return found === undefined ? undefined : parse(key, found)
  }

  function getCached(key: string): { value: T; epoch: number } | undefined {
    const value = entries.get(key)
    if (value === undefined || epoch === undefined || !isFresh()) return undefined
    stats.hits++
    return { value, epoch }
  }

  async function read(key: string): Promise<T | undefined> {
    if (isFresh()) {
      const known = entries.get(key)
      if (known !== undefined) {
        stats.hits++
        return known
      }
    }
    const running = reading.get(key)
    if (running !== undefined && !running.dirty) return await running.promise
    const slot: Slot<T> = { promise: load(key), dirty: false }
    reading.set(key, slot)
    try {
      const value = await slot.promise
      if (value !== undefined && !slot.dirty && isFresh()) entries.set(key, value)
      return value
    } finally {
      if (reading.get(key) === slot) reading.delete(key)
    }
  }

  async function currentEpoch(): Promise<number> {
    if (epoch !== undefined && isFresh()) return epoch
    const told = epochTold
    const found = await store.epoch()
    if (isFresh() && told === epochTold) epoch = found
    return found
  }

  return { read, getCached, epoch: currentEpoch, drop, dropEpoch, forgetAll, stats }
}

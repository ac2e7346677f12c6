/** Live sessions, so that requests need no round trip while the store announces every change. */
import { recentlyUsed } from '../bounded-map.ts'
import type { SessionStore } from './store.ts'
import type { Evaluation, Live } from './types.ts'

const maxEntries = 50_000

export class SessionCache {
  readonly #store: SessionStore
  readonly #entries = recentlyUsed<Live>(maxEntries)
  /** The latest read of each key, until the record changes: then its result is not kept. */
  readonly #reading = new Map<string, Promise<Evaluation>>()

  constructor(store: SessionStore) {
    this.#store = store
    store.follow({ onChanged: key => this.drop(key), onReset: () => this.clear() })
  }

  get(key: string): Live | undefined {
    return this.#store.isFollowed() ? this.#entries.get(key) : undefined
  }

  async keep(key: string, reading: Promise<Evaluation>): Promise<Evaluation> {
    this.#reading.set(key, reading)
    const isLatest = () => this.#reading.get(key) === reading
    try {
      const evaluation = await reading
      if (!isLatest() || !this.#store.isFollowed()) return evaluation
      if ('live' in evaluation) this.#entries.set(key, evaluation.live)
      else this.#entries.delete(key)
      return evaluation
    } finally {
      if (isLatest()) this.#reading.delete(key)
    }
  }

  drop(key: string): void {
    this.#entries.delete(key)
    this.#reading.delete(key)
  }

  clear(): void {
    this.#entries.clear()
    this.#reading.clear()
  }
}

/**
 * Live sessions as the store has them, so that a session's requests need no round trip. What is
 * kept counts while the store announces every change.
 */
import { recentlyUsed } from '../bounded-map.ts'
import type { SessionStore } from './store.ts'
import type { Evaluation, Live } from './types.ts'

const maxEntries = 50_000

/** A read in progress, shared by all callers for the key. */
interface PendingRead {
  readonly evaluation: Promise<Evaluation>
  /** The record changed since the read began: its result is used once, and not kept. */
  isOutdated: boolean
}

interface Options {
  readonly store: Pick<SessionStore, 'follow' | 'isFollowed'>
  /** Reads the store. @throws StoreUnavailable */
  readonly load: (key: string) => Promise<Evaluation>
}

export class SessionCache {
  readonly #store: Options['store']
  readonly #load: Options['load']
  readonly #entries = recentlyUsed<Live>(maxEntries)
  readonly #pending = new Map<string, PendingRead>()

  constructor({ store, load }: Options) {
    this.#store = store
    this.#load = load
    store.follow({ onChanged: key => this.drop(key), onReset: () => this.clear() })
  }

  /** Undefined where the store has to be asked. */
  get(key: string): Live | undefined {
    return this.#store.isFollowed() ? this.#entries.get(key) : undefined
  }

  /** The session as the store has it now, which is kept. @throws StoreUnavailable */
  async read(key: string): Promise<Evaluation> {
    const running = this.#pending.get(key)
    if (running !== undefined && !running.isOutdated) return await running.evaluation
    const pending: PendingRead = { evaluation: this.#load(key), isOutdated: false }
    this.#pending.set(key, pending)
    try {
      const evaluation = await pending.evaluation
      if (pending.isOutdated || !this.#store.isFollowed()) return evaluation
      if ('live' in evaluation) this.#entries.set(key, evaluation.live)
      else this.#entries.delete(key)
      return evaluation
    } finally {
      if (this.#pending.get(key) === pending) this.#pending.delete(key)
    }
  }

  drop(key: string): void {
    this.#entries.delete(key)
    const pending = this.#pending.get(key)
    if (pending !== undefined) pending.isOutdated = true
  }

  /** Only what is read from now on counts. */
  clear(): void {
    this.#entries.clear()
    for (const pending of this.#pending.values()) pending.isOutdated = true
  }
}

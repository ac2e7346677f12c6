/** Bounded memory in which the least recently used go first. */
import { LRUCache } from 'lru-cache'

type Value = string | number | object

/**
 * The same text in memory of its own. A part of a text, such as a cookie of a header, keeps the
 * whole text alive: up to 16 KiB for each that is remembered.
 */
export const ownText = (text: string): string => Buffer.from(text).toString()

/**
 * As long as half of it is free nothing is about to go, so that who was used last need not be
 * known.
 */
class RecentlyUsed<V extends Value> extends LRUCache<string, V> {
  readonly #roomy: number

  /**
   * It grows with what it holds: by `max` alone the library would take its memory at once,
   * 1 MB and 5 ms for 50,000 entries.
   */
  constructor(maxEntries: number) {
    super({ maxSize: maxEntries, sizeCalculation: () => 1 })
    this.#roomy = maxEntries / 2
  }

  override get(key: string): V | undefined {
    return this.size < this.#roomy ? this.peek(key) : super.get(key)
  }

  override set(key: string, value: V): this {
    return super.set(ownText(key), value)
  }
}

export function recentlyUsed<V extends Value>(maxEntries: number): LRUCache<string, V> {
  return new RecentlyUsed<V>(maxEntries)
}

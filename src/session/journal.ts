/**
 * What this process has written of sessions in the last minutes. A new primary of Redis may not
 * have received it, so it is written again when one is connected.
 */
import { BoundedMap } from '../bounded-map.ts'

const keptMs = 5 * 60_000
const maxEntries = 20_000

interface Entry {
  readonly at: number
  readonly isOpening: boolean
  /** @param ageMs of the entry */
  readonly write: (ageMs: number) => Promise<unknown>
}

export class Journal {
  readonly #entries = new BoundedMap<Entry>(maxEntries)

  /**
   * @param name what is written: an earlier write of it counts no more
   * @param isOpening whether the write opens a session
   */
  add(name: string, write: Entry['write'], isOpening = false): void {
    this.#entries.delete(name)
    this.#entries.set(name, { at: performance.now(), write, isOpening })
    this.#dropOld()
  }

  /**
   * Writes all at once, in their order, so that whatever is sent next comes after them.
   * @param isOther to another server than before: one that restarted empty has lost the sessions
   */
  replay(isOther: boolean): void {
    this.#dropOld()
    for (const [, { at, write, isOpening }] of this.#entries.oldestFirst()) {
      if (isOther || !isOpening) write(performance.now() - at).catch(() => {})
    }
  }

  #dropOld(): void {
    for (const [name, { at }] of this.#entries.oldestFirst()) {
      if (performance.now() - at < keptMs) return
      this.#entries.delete(name)
    }
  }
}

/** Recent writes of sessions: a new primary of Redis, which may not have them, gets them again. */
import { BoundedMap } from '../bounded-map.ts'

const keptMs = 5 * 60_000
const maxEntries = 20_000

interface Entry {
  readonly at: number
  readonly isOpening: boolean
  readonly write: (ageMs: number) => Promise<unknown>
}

export class Journal {
  readonly #entries = new BoundedMap<Entry>(maxEntries)

  /** @param name of what is written: its earlier write counts no more */
  add(name: string, write: Entry['write'], isOpening = false): void {
    this.#entries.delete(name)
    this.#entries.set(name, { at: performance.now(), write, isOpening })
    this.#dropOld()
  }

  /** @param isOther to another server: one that restarted empty has lost the sessions */
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

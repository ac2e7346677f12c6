/** The last trails of a process, as bytes: the oldest give way. */
import { maxTrailBytes, TrailBytes, type TrailKey } from './trail-bytes.ts'
import type { Trail } from './trail.ts'

/** Room for a trail: an ordinary one has 250 bytes. */
export const bytesPerTrail = 320
/** A number of a name has 16 bits. One trail brings a few hundred new names at most. */
const maxNames = 60_000

export class TrailRing {
  /** The first byte of each trail, from that of `#oldest` on. */
  readonly #starts: Uint32Array
  #bytes: TrailBytes
  #oldest = 0
  #length = 0
  /** The first byte of the next trail. */
  #end = 0
  #overwritten = 0

  /** @param size the most trails; fewer are kept where they are long */
  constructor(size: number) {
    this.#starts = new Uint32Array(size)
    this.#bytes = new TrailBytes(size === 0 ? 0 : size * bytesPerTrail + maxTrailBytes)
  }

  get length(): number {
    return this.#length
  }

  get overwritten(): number {
    return this.#overwritten
  }

  get oldest(): Trail | undefined {
    return this.#length === 0 ? undefined : this.#bytes.read(this.#startOf(0))
  }

  add(trail: Trail): void {
    const size = this.#starts.length
    if (size === 0) return
    if (this.#bytes.names > maxNames) this.#clear()
    if (this.#length === size) this.#dropOldest()
    if (this.#end + maxTrailBytes > this.#bytes.size) this.#end = 0
    const start = this.#end
    this.#end = this.#bytes.write(trail, start)
    this.#dropFrom(start, this.#end)
    this.#starts[(this.#oldest + this.#length) % size] = start
    this.#length++
  }

  /** @returns the newest `count` that match, newest first */
  newest(count: number, matches: (key: TrailKey) => boolean): Trail[] {
    const trails: Trail[] = []
    for (let index = this.#length - 1; index >= 0 && trails.length < count; index--) {
      const start = this.#startOf(index)
      if (matches(this.#bytes.readKey(start))) trails.push(this.#bytes.read(start))
    }
    return trails
  }

  #startOf(index: number): number {
    return this.#starts[(this.#oldest + index) % this.#starts.length] as number
  }

  /** Drops the oldest trails as far as they begin within these bytes. */
  #dropFrom(start: number, end: number): void {
    while (this.#length > 0) {
      const oldest = this.#startOf(0)
      if (oldest < start || oldest >= end) return
      this.#dropOldest()
    }
  }

  #dropOldest(): void {
    this.#oldest = this.#oldest + 1 === this.#starts.length ? 0 : this.#oldest + 1
    this.#length--
    this.#overwritten++
  }

  /** Names of replaced configs and addresses do not grow without bound. */
  #clear(): void {
    this.#bytes = new TrailBytes(this.#bytes.size)
    this.#overwritten += this.#length
    this.#oldest = 0
    this.#length = 0
    this.#end = 0
  }
}

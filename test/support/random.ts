/** Random choices that are the same for the same seed (mulberry32). */
import { randomInt } from 'node:crypto'

export type Random = ReturnType<typeof createRandom>

export const freshSeed = () => randomInt(2 ** 31)

export function createRandom(seed: number) {
  let state = seed | 0
  /** From 0 to below 1. */
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296
  }
  /** Both bounds included. */
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    integer,
    chance: (probability: number) => next() < probability,
    pick: <T>(choices: readonly T[]) => choices[integer(0, choices.length - 1)] as T,
    bytes: (length: number) => Buffer.from(Array.from({ length }, () => integer(0, 255)))
  }
}

/** A seed of its own for the n-th part of a run, so that a part can be repeated without the others. */
export function seedOf(seed: number, part: number): number {
  let mixed = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(part + 1, 0xc2b2ae35)
  mixed ^= mixed >>> 15
  return Math.imul(mixed, 0x27d4eb2f) | 0
}

/** A seed of its own for a text. */
export function seedOfText(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return hash | 0
}

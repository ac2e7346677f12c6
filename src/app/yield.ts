/** Splits the long work of a build, so that requests are handled in between. */
import { setImmediate as pendingEvents } from 'node:timers/promises'

/** The longest that a request waits for a piece of the work. */
const maxWorkMs = 2

/** @returns a function to call and await after each small step; most calls return at once */
export function createYield(): () => Promise<void> {
  let startedAt = performance.now()
  return async () => {
    if (performance.now() - startedAt < maxWorkMs) return
    await pendingEvents()
    startedAt = performance.now()
  }
}

/** Long work in short pieces: requests have their turn in between. */
import { setImmediate as turn } from 'node:timers/promises'

/** Longer nobody shall wait for a piece of work. */
const longestMs = 2

/** @returns to be called, and waited for, after each small step; it rarely waits */
export function takeTurns(): () => Promise<void> {
  let began = performance.now()
  return async () => {
    if (performance.now() - began < longestMs) return
    await turn()
    began = performance.now()
  }
}

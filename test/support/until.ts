/** Bounded waiting: a failure is told in a minute, with what was waited for, and never hangs a file. */
import { setTimeout as wait } from 'node:timers/promises'

/** Longer than any machine is too busy for: it tells what is late from what never comes. */
const defaultWithinMs = 60_000
const pollMs = 5

/**
 * Asks until the condition holds; a condition that throws does not hold yet.
 * @throws after `withinMs`, naming what was waited for and the condition's last error
 */
export async function until(
  what: string,
  condition: () => Promise<boolean> | boolean,
  withinMs: number = defaultWithinMs
): Promise<void> {
  const giveUpAt = performance.now() + withinMs
  for (;;) {
    let lastError: unknown
    try {
      if (await condition()) return
    } catch (error) {
      lastError = error
    }
    if (performance.now() > giveUpAt) {
      throw new Error(`not within ${withinMs} ms: ${what}`, { cause: lastError })
    }
    await wait(pollMs)
  }
}

/** Acts again and again. @returns ends it: resolves with the act that is under way */
export function again(act: () => Promise<unknown>): () => Promise<void> {
  const state = { isOver: false }
  const acting = (async () => {
    while (!state.isOver) await act()
  })()
  return async () => {
    state.isOver = true
    await acting
  }
}

/**
 * How often everyone's sessions were ended: a count that only rises, and that the store may forget.
 */
import type { SessionStore } from './store.ts'

export interface ForgottenEpoch {
  /** What the store said. */
  readonly found: number
  /** The greatest that this process knows of. */
  readonly greatest: number
}

/**
 * A store whose epoch never falls: where it says less than it said before, or than a session
 * carries, it has forgotten. It is told the greatest epoch again; until it has taken that,
 * everything that asks fails.
 * @param onForgotten called each time
 */
export function guardEpoch(store: SessionStore, onForgotten: (forgotten: ForgottenEpoch) => void) {
  let greatest = 0

  /** @throws StoreUnavailable */
  async function epoch(): Promise<number> {
    const stored = await store.epoch()
    if (stored >= greatest) {
      greatest = stored
      return stored
    }
    // The answer may have been overtaken by that of a later question.
    const again = await store.epoch()
    return again >= greatest ? again : await restore(again)
  }

  async function restore(found: number): Promise<number> {
    onForgotten({ found, greatest })
    await store.restoreEpoch(greatest)
    return greatest
  }

  /**
   * The epoch, where a session carries a greater one than is cached.
   * @throws StoreUnavailable
   */
  async function epochAtLeast(ofSession: number): Promise<number> {
    const stored = await epoch()
    if (stored >= ofSession) return stored
    greatest = Math.max(greatest, ofSession)
    return await restore(stored)
  }

  /** Bumps it above all that this process knows, also where the store has forgotten. */
  const bumpEpoch = async (): Promise<number> => await store.bumpEpoch(await epoch())

  return { ...store, epoch, epochAtLeast, bumpEpoch }
}

/**
 * The epoch: the number of times that everyone's sessions were ended. It only rises, but the store
 * may lose it.
 */
import type { SessionStore } from './store.ts'

export interface ForgottenEpoch {
  /** The epoch in the store. */
  readonly found: number
  /** The greatest epoch that this process knows. */
  readonly greatest: number
}

/**
 * A store whose epoch never falls. Where it gives less than before, or less than a session carries,
 * it has lost it: the greatest known epoch is written again, and until that succeeds every call
 * fails.
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
    // A later call may have overtaken this reply.
    const again = await store.epoch()
    return again >= greatest ? again : await restore(again)
  }

  async function restore(stored: number): Promise<number> {
    onForgotten({ found: stored, greatest })
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

  /** Raises it above every epoch that this process knows, also where the store has lost it. */
  const bumpEpoch = async (): Promise<number> => await store.bumpEpoch(await epoch())

  return { ...store, epoch, epochAtLeast, bumpEpoch }
}

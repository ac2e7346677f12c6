/** The idle clock of sessions: set anew by use, in the store at most once a minute. */
import type { Duration } from '../config/schema/primitives.ts'
import { type Live, tombstoneMs } from './evaluate.ts'
import { recentlyUsed } from '../bounded-map.ts'
import type { SessionStore } from './store.ts'

interface Options {
  readonly store: SessionStore
  readonly drop: (key: string) => void
  readonly now: () => number
  readonly ticks: () => number
  /** Called when the store could not be told; the request goes on. */
  readonly onFailed: (error: unknown) => void
}

const touchAtMostEveryMs: Duration = 60_000
const maxTouches = 50_000

export function createIdleClock({ store, drop, now, ticks, onFailed }: Options) {
  /**
   * When this process last touched a session. Kept apart from the cache, whose entry each touch
   * drops.
   */
  const touchedAt = recentlyUsed<number>(maxTouches)

  /**
   * Records that a session is used: sets its idle clock anew, at the cost of one write a minute at
   * most. The idle clock runs on beyond the absolute end, which is evaluated apart: it tells the
   * last use, and a session that is used up to its absolute end must not be called idle before.
   * @returns when it ends now unless it is used
   */
  function use({ session, key, idleEnd }: Live): number {
    const full = now() + session.idleMs
    const every = Math.min(touchAtMostEveryMs, session.idleMs / 4)
    const isTouched = ticks() - (touchedAt.get(key) ?? -Infinity) < every
    if (full - idleEnd < every || isTouched) return idleEnd
    touchedAt.set(key, ticks())
    store.touch(key, session.idleMs + tombstoneMs, tombstoneMs).catch(onFailed)
    return full
  }

  /** Sets the idle clock anew now. @throws StoreUnavailable */
  async function extend({ session, key }: Live): Promise<number> {
    await store.touch(key, session.idleMs + tombstoneMs, tombstoneMs)
    drop(key)
    touchedAt.set(key, ticks())
    return now() + session.idleMs
  }

  return { use, extend, forget: (key: string) => touchedAt.delete(key) }
}

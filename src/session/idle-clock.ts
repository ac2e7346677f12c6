/** The idle clock of sessions: set anew by use, in the store at most once a minute. */
import type { Duration } from '../config/schema/primitives.ts'
import { type Live, tombstoneMs } from './evaluate.ts'
import { recentlyUsed } from '../bounded-map.ts'
import type { Session } from './record.ts'
import type { SessionStore } from './store.ts'

interface Options {
  readonly store: SessionStore
  /** Without sessions that somebody has changed since: their end is read anew. */
  readonly touchedAt: ReturnType<typeof createTouches>
  readonly drop: (key: string) => void
  readonly now: () => number
  readonly ticks: () => number
  /** Called when the store could not be written; the request goes on. */
  readonly onFailed: (error: unknown) => void
}

const touchAtMostEveryMs: Duration = 60_000
const maxTouches = 50_000

/** Use within this time of a write is not written again. */
export function touchEveryMs({ idleMs }: Pick<Session, 'idleMs'>): number {
  return Math.min(touchAtMostEveryMs, idleMs / 4)
}

/**
 * The times this process last touched sessions. Apart from the cache, since each touch drops the
 * cache's entry.
 */
export function createTouches() {
  return recentlyUsed<number>(maxTouches)
}

export function createIdleClock({ store, touchedAt, drop, now, ticks, onFailed }: Options) {
  /**
   * Records that a session is used: restarts its idle clock, with at most one write a minute. The
   * idle clock runs on beyond the absolute end, which is evaluated apart: a session used up to its
   * absolute end must not count as idle before.
   * @returns its end unless it is used again
   */
  function use({ session, key, idleEnd }: Live): number {
    const full = now() + session.idleMs
    const every = touchEveryMs(session)
    const isTouched = ticks() - (touchedAt.get(key) ?? -Infinity) < every
    if (full - idleEnd < every || isTouched) return idleEnd
    touchedAt.set(key, ticks())
    store.touch(key, session.idleMs + tombstoneMs, tombstoneMs).catch(onFailed)
    return full
  }

  /** Restarts the idle clock now. @throws StoreUnavailable */
  async function extend({ session, key }: Live): Promise<number> {
    await store.touch(key, session.idleMs + tombstoneMs, tombstoneMs)
    drop(key)
    touchedAt.set(key, ticks())
    return now() + session.idleMs
  }

  return { use, extend }
}
